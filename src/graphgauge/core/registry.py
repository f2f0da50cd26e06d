"""Objects found by their name in a table, or by the address that they can be imported from."""

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, TypeVar

from graphgauge.core.errors import UnknownName

_T = TypeVar("_T")


def lookup(table: Mapping[str, _T], name: str, kind: str) -> _T:
    """Return ``table[name]``, or say which names there are.

    Args:
        table: The objects by name.
        name: The name that was asked for.
        kind: What the objects are, as a word of the error message, such as "net".

    Raises:
        UnknownName: The table does not have the name. The message lists the names that it has, and
            a similar one if there is any.

    >>> lookup({"gcn": 1, "gat": 2}, "gcm", "net")
    Traceback (most recent call last):
    ...
    graphgauge.core.errors.UnknownName: No net is called 'gcm'. Did you mean 'gcn'? Known: gat, gcn.
    """
    if name in table:
        return table[name]
    same = {key.lower(): key for key in table}.get(str(name).lower())
    close = [same] if same else get_close_matches(str(name), table, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise UnknownName(
        f"No {kind} is called {name!r}.{hint} Known: {', '.join(sorted(table)) or 'none'}."
    )


def import_object(address: str) -> Any:  # it can be anything
    """Import the object at an address, ``module:name``.

    >>> import_object("posixpath:join")("a", "b")
    'a/b'
    """
    module, _, name = address.partition(":")
    return getattr(import_module(module), name)
