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
            return _renamed_object(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get_attribute, lambda: list(exported), exported


def _renamed_object(old: str) -> object:
    new = RENAMED[old]
    warnings.warn(
        f"{old} is now {new}; the old name works until the next release.",
        DeprecationWarning,
        stacklevel=3,
    )
    return import_object(":".join(new.rsplit(".", 1)))
