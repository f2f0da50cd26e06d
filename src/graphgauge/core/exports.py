"""The exported names of a room: listed in its ``__init__.pyi``, imported when they are first used.

The stub is the only list: `lazy_loader` reads it at run time, type checkers and editors read it
when code is written, and a test compares both. Names of earlier versions still work, with a
DeprecationWarning (`core.renamed_names`).
"""

import warnings
from collections.abc import Callable

import lazy_loader

from graphgauge.core.registry import import_object
from graphgauge.core.renamed_names import RENAMED


def attach_exports(
    package: str, file: str
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package from the stub beside it.

    Args:
        package: ``__name__`` of the package.
        file: ``__file__`` of its ``__init__.py``; the stub is ``__init__.pyi`` in the same folder.
    """
    import_lazily, _, names = lazy_loader.attach_stub(package, file)
    exported = sorted(names)

    def get_attribute(name: str) -> object:
        if name in exported:
            return import_lazily(name)
        if f"{package}.{name}" in RENAMED:
            new = RENAMED[f"{package}.{name}"]
            warn_renamed(f"{package}.{name}", new)
            return import_object(":".join(new.rsplit(".", 1)))
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get_attribute, lambda: list(exported), exported


def warn_renamed(old: str, new: str) -> None:
    """Warn whoever called the caller that ``old`` is now called ``new``."""
    warnings.warn(
        f"{old} is now {new}; the old name works until the next release.",
        DeprecationWarning,
        stacklevel=3,
    )
