"""Import objects from the user's own Python code by strings such as ``shop.networks:make_net``.

Modules are looked up in the folder of the project file first, then wherever Python looks.
"""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from types import ModuleType

from graphgauge.core import BadModel


@contextmanager
def importable_folder(folder: Path) -> Iterator[None]:
    """Let imports find the modules in a folder, within a ``with`` block only."""
    place = str(folder.resolve())
    sys.path.insert(0, place)
    try:
        yield
    finally:
        sys.path.remove(place)


def import_user_object(address: str, folder: Path) -> object:
    """Import the object behind ``module:name``.

    Args:
        address: Such as ``shop.networks:make_net``; the name may have dots.
        folder: Folder of the project file, in which an error says that it was looked for. Modules
            are found there inside `importable_folder` only.

    Raises:
        BadModel: The module cannot be imported, or does not define the name.
    """
    module_name, _, name = address.partition(":")
    module = _import_user_module(module_name, folder)
    try:
        return reduce(getattr, name.split("."), module)
    except AttributeError as error:
        own = ", ".join(
            key
            for key, value in vars(module).items()
            if getattr(value, "__module__", "") == module_name
        )
        raise BadModel(
            f"{address} was asked for, but {module_name} has no {name}. "
            f"It defines: {own or 'nothing'}."
        ) from error


def _import_user_module(name: str, folder: Path) -> ModuleType:
    """Import a module, or raise `BadModel` with the reason why that fails."""
    importlib.invalidate_caches()
    try:
        module = importlib.import_module(name)
    except Exception as error:
        raise BadModel(
            f"the module {name} cannot be imported: {type(error).__name__}: {error}. "
            f"It was looked for in {folder.resolve()} and where Python finds packages: "
            "put the module beside the project file, or install its package."
        ) from error
    _check_module_origin(module, folder)
    return module


def _check_module_origin(module: ModuleType, folder: Path) -> None:
    """Raise `BadModel` if another module of the same name was imported before from elsewhere."""
    first = module.__name__.partition(".")[0]
    here = [
        path for path in (folder / f"{first}.py", folder / first / "__init__.py") if path.exists()
    ]
    found = getattr(sys.modules[first], "__file__", None)
    if here and found and Path(found).resolve() not in [path.resolve() for path in here]:
        raise BadModel(
            f"{here[0]} was meant, but another module {first} was imported before, "
            f"from {found}: rename one of them."
        )
