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

from graphgauge.core.errors import BadSetting, GraphgaugeWarning, MissingExtra
from graphgauge.core.registry import lookup
from graphgauge.explainers.base import BaseExplainer
from graphgauge.explainers.pyg import PyGExplainer, known_algorithms

GROUP = "graphgauge.explainers"
PYG = "pyg:"
OURS = ("graphgauge", "PyG")  #: plug-ins cannot replace explainers of these sources


def explainer_names() -> list[str]:
    """All names that `find_explainer` knows, sorted."""
    return sorted(sources())


def find_explainer(name: str, /, **params: Any) -> BaseExplainer:
    """Build the explainer with this name.

    The ``explainer`` and ``params`` of a stored explanation give the same explainer again.

    Args:
        name: A name in `explainer_names`.
        **params: Parameters of the explainer.

    Raises:
        UnknownName: No explainer has this name.
        BadSetting: The parameters do not fit the explainer.
        MissingExtra: The package of a plug-in cannot be imported.

    >>> find_explainer("integrated_gradients", steps=20)
    IntegratedGradients(explain_output='prob', edge_factor='message', steps=20)
    """
    make = explainer_class(name)
    if make is PyGExplainer:
        params = {"algorithm": name.removeprefix(PYG), **params}
    check_params(name, make, params)
    explainer = make(**params)
    if explainer.name != name:
        raise BadSetting(
            f"the explainer {name!r} was asked for, but params {params!r} make {explainer.name!r}: "
            "leave one out."
        )
    return explainer


def explainer_class(name: str) -> type[BaseExplainer]:
    """Return the class with this name, importing a plug-in if necessary."""
    from graphgauge.explainers import EXPLAINERS

    source = lookup(sources(), name, "explainer")
    plugs = [plug for plug in plug_ins() if plug.name == name]
    if source not in OURS:
        return loaded(plugs)
    if plugs:
        warnings.warn(
            f"the explainer {name!r} of {packages(plugs)} is left out: {source} has one of that "
            "name. Rename the plug-in.",
            GraphgaugeWarning,
            stacklevel=3,
        )
    return PyGExplainer if source == "PyG" else EXPLAINERS[name]


def sources() -> dict[str, str]:
    """Map every name to its source: "graphgauge", "PyG", or the packages of plug-ins."""
    from graphgauge.explainers import EXPLAINERS

    plugs = plug_ins()
    plugged = {
        plug.name: packages([other for other in plugs if other.name == plug.name]) for plug in plugs
    }
    of_pyg = dict.fromkeys((PYG + name for name in known_algorithms()), "PyG")
    return {**plugged, **of_pyg, **dict.fromkeys(EXPLAINERS, "graphgauge")}


def plug_ins() -> list[EntryPoint]:
    """List the plug-ins of installed packages without importing them; duplicates count once."""
    return list(scanned(entry_points, tuple((place, changed(place)) for place in sys.path)))


@lru_cache(maxsize=1)
def scanned(
    look: Callable[..., Iterable[EntryPoint]], places: tuple[tuple[str, int], ...]
) -> tuple[EntryPoint, ...]:
    """Return the entry points that ``look`` finds, cached because reading all packages takes about
    10 ms.

    ``places`` is the cache key: entry points are read again if the import path or one of its
    folders has changed, as happens when a package is installed or removed.
    """
    return tuple(sorted(set(look(group=GROUP)), key=lambda plug: (plug.name, plug.value)))


def changed(place: str) -> int:
    """Modification time of a folder or archive on the import path in ns, or -1 if it does not
    exist.
    """
    try:
        return os.stat(place or os.curdir).st_mtime_ns
    except (OSError, ValueError):
        return -1


def packages(plugs: list[EntryPoint]) -> str:
    """Format the names of the packages that offer these plug-ins."""
    return ", ".join(plug.dist.name if plug.dist is not None else plug.value for plug in plugs)


def loaded(plugs: list[EntryPoint]) -> type[BaseExplainer]:
    """Import the class of a plug-in. Errors name the package that offers it."""
    if len(plugs) > 1:
        raise BadSetting(
            f"the explainer {plugs[0].name!r} is offered by {packages(plugs)}: uninstall all but "
            "one."
        )
    (plug,) = plugs
    try:
        explainer = plug.load()
    except Exception as error:
        raise MissingExtra(
            f"the explainer {plug.name!r} comes from {packages(plugs)} ({plug.value}), which "
            f"cannot be imported: {type(error).__name__}: {error}. Update that package, or "
            "uninstall it."
        ) from error
    if not (isinstance(explainer, type) and issubclass(explainer, BaseExplainer)):
        raise BadSetting(
            f"the explainer {plug.name!r} of {packages(plugs)} must be a subclass of "
            f"BaseExplainer, but is {explainer!r}."
        )
    return explainer


def check_params(name: str, make: type[BaseExplainer], params: dict[str, Any]) -> None:
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
