"""Methods of a lower room that live in a higher one, resolved when they are called."""

from collections.abc import Callable
from importlib import import_module
from typing import Any


def later(address: str) -> Callable[..., Any]:
    """A function that imports ``module:name`` on its first call and passes its arguments on.

    >>> join = later("posixpath:join")
    >>> join("a", "b")
    'a/b'
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        return resolve(address)(*args, **kwargs)

    call.__name__ = address.rpartition(":")[2]
    call.__doc__ = f"See `{address}`."
    call.address = address  # type: ignore[attr-defined]
    return call


def resolve(address: str) -> Any:
    """The object behind ``module:name``."""
    module, _, name = address.partition(":")
    return getattr(import_module(module), name)
