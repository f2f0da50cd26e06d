"""Explainers by name, for the command line and experiment files.

The names are those of graphgauge's explainers, of PyG's algorithms ("pyg:GNNExplainer" and so on),
and of plug-ins. A package offers an explainer as a plug-in with an entry point:

    [project.entry-points."graphgauge.explainers"]
    my_explainer = "my_package.module:MyExplainer"

A plug-in is imported when it is requested by name, not before. It cannot replace an explainer of
graphgauge or PyG.
"""

import inspect
import os
import sys
import warnings
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from graphgauge.core import BadSetting, GraphgaugeWarning, MissingExtra, lookup
from graphgauge.explainers.base import BaseExplainer
from graphgauge.explainers.pyg_adapter import PyGExplainer
from graphgauge.explainers.pyg_algorithms import pyg_algorithms

ENTRY_POINT_GROUP = "graphgauge.explainers"
PYG_PREFIX = "pyg:"
_BUILT_IN_SOURCES = ("graphgauge", "PyG")  #: plug-ins cannot replace explainers of these sources


def explainer_names() -> list[str]:
    """All names that `find_explainer` knows.

    Returns:
        The names of graphgauge's explainers, of PyG's algorithms with the prefix "pyg:", and of
        installed plug-ins, sorted.

    >>> [name for name in gg.explainer_names() if "graphmask" in name.lower()]
    ['graphmask', 'pyg:GraphMaskExplainer']
    """
    return sorted(explainer_sources())


def find_explainer(name: str, /, **params: Any) -> BaseExplainer:
    """Build the explainer with this name.

    The ``explainer`` and ``params`` of a stored explanation give the same explainer again.

    Args:
        name: A name in `explainer_names`.
        **params: Parameters of the explainer. Those that are left out have their default values.

    Returns:
        The explainer. Its ``name`` is the one that was asked for.

    Raises:
        UnknownName: No explainer has this name.
        BadSetting: The parameters do not fit the explainer.
        MissingExtra: The package of a plug-in cannot be imported.

    >>> find_explainer("integrated_gradients", steps=20)
    IntegratedGradients(explain_output='prob', edge_factor='message', steps=20)
    """
    make = find_explainer_class(name)
    if make is PyGExplainer:
        params = {"algorithm": name.removeprefix(PYG_PREFIX), **params}
    _check_explainer_params(name, make, params)
    explainer = make(**params)
    if explainer.name != name:
        raise BadSetting(
            f"the explainer {name!r} was asked for, but params {params!r} make {explainer.name!r}: "
            "leave one out."
        )
    return explainer


def find_explainer_class(name: str) -> type[BaseExplainer]:
    """Return the class with this name, importing a plug-in if necessary."""
    from graphgauge.explainers.builtin import EXPLAINERS

    source = lookup(explainer_sources(), name, "explainer")
    plugs = [plug for plug in _find_plugins() if plug.name == name]
    if source not in _BUILT_IN_SOURCES:
        return _load_plugin(plugs)
    if plugs:
        warnings.warn(
            f"the explainer {name!r} of {_join_package_names(plugs)} is left out: {source} has "
            "one of that name. Rename the plug-in.",
            GraphgaugeWarning,
            stacklevel=3,
        )
    return PyGExplainer if source == "PyG" else EXPLAINERS[name]


def explainer_sources() -> dict[str, str]:
    """Map every name to its source: "graphgauge", "PyG", or the packages of plug-ins."""
    from graphgauge.explainers.builtin import EXPLAINERS

    plugs = _find_plugins()
    plugged = {
        plug.name: _join_package_names([other for other in plugs if other.name == plug.name])
        for plug in plugs
    }
    of_pyg = dict.fromkeys((PYG_PREFIX + name for name in pyg_algorithms()), "PyG")
    return {**plugged, **of_pyg, **dict.fromkeys(EXPLAINERS, "graphgauge")}


def _find_plugins() -> list[EntryPoint]:
    """List the plug-ins of installed packages without importing them; duplicates count once."""
    return list(
        _scan_entry_points(entry_points, tuple((place, _folder_mtime(place)) for place in sys.path))
    )


@lru_cache(maxsize=1)
def _scan_entry_points(
    look: Callable[..., Iterable[EntryPoint]], places: tuple[tuple[str, int], ...]
) -> tuple[EntryPoint, ...]:
    """Return the entry points that ``look`` finds, cached because reading all packages takes about
    10 ms.

    ``places`` is the cache key: entry points are read again if the import path or one of its
    folders has changed, as happens when a package is installed or removed.
    """
    return tuple(
        sorted(set(look(group=ENTRY_POINT_GROUP)), key=lambda plug: (plug.name, plug.value))
    )


def _folder_mtime(place: str) -> int:
    """Modification time of a folder or archive on the import path in ns, or -1 if it does not
    exist.
    """
    try:
        return os.stat(place or os.curdir).st_mtime_ns
    except (OSError, ValueError):
        return -1


def _join_package_names(plugs: list[EntryPoint]) -> str:
    """Format the names of the packages that offer these plug-ins."""
    return ", ".join(plug.dist.name if plug.dist is not None else plug.value for plug in plugs)


def _load_plugin(plugs: list[EntryPoint]) -> type[BaseExplainer]:
    """Import the class of a plug-in. Errors name the package that offers it."""
    if len(plugs) > 1:
        raise BadSetting(
            f"the explainer {plugs[0].name!r} is offered by {_join_package_names(plugs)}: "
            "uninstall all but one."
        )
    (plug,) = plugs
    try:
        explainer = plug.load()
    except Exception as error:
        raise MissingExtra(
            f"the explainer {plug.name!r} comes from {_join_package_names(plugs)} ({plug.value}), "
            f"which cannot be imported: {type(error).__name__}: {error}. Update that package, or "
            "uninstall it."
        ) from error
    if not (isinstance(explainer, type) and issubclass(explainer, BaseExplainer)):
        raise BadSetting(
            f"the explainer {plug.name!r} of {_join_package_names(plugs)} must be a subclass of "
            f"BaseExplainer, but is {explainer!r}."
        )
    return explainer


def _check_explainer_params(name: str, make: type[BaseExplainer], params: dict[str, Any]) -> None:
    """Raise BadSetting for parameters that the explainer does not have."""
    signature = inspect.signature(make)
    try:
        signature.bind(**params)
    except TypeError as error:
        valid = ", ".join(signature.parameters) or "none"
        raise BadSetting(
            f"the explainer {name!r} cannot be built with {sorted(params)}: {error}. Its "
            f"parameters: {valid}."
        ) from error
