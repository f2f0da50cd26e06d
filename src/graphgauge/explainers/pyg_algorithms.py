"""The algorithms of `torch_geometric.explain`: their known properties, and how they are built."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from graphgauge.core import BadSetting, lookup
from graphgauge.explainers.sequential import OBJECT_PREFIX


@dataclass(frozen=True)
class AlgorithmTraits:
    """Known properties of a PyG algorithm."""

    signed: bool = False
    deterministic: bool = False
    scores_features: bool = True
    explanation_type: str = "model"


#: PyG's own algorithms; others count as unsigned and random unless the caller says otherwise
ALGORITHM_TRAITS = {
    "GNNExplainer": AlgorithmTraits(),
    "GraphMaskExplainer": AlgorithmTraits(),
    "DummyExplainer": AlgorithmTraits(),
    "AttentionExplainer": AlgorithmTraits(deterministic=True, scores_features=False),
    "PGExplainer": AlgorithmTraits(
        deterministic=True, scores_features=False, explanation_type="phenomenon"
    ),
    "CaptumExplainer": AlgorithmTraits(signed=True, deterministic=True),
}


def pyg_algorithms() -> dict[str, Any]:
    """The algorithms in `torch_geometric.explain`, by name."""
    from torch_geometric.explain import algorithm

    return {
        name: getattr(algorithm, name) for name in algorithm.classes if name != "ExplainerAlgorithm"
    }


def check_pyg_algorithm(algorithm: Any, options: Mapping[str, Any]) -> None:
    """Raise BadSetting for anything that is not a PyG algorithm."""
    from torch_geometric.explain import ExplainerAlgorithm

    if isinstance(algorithm, str) and algorithm.startswith(OBJECT_PREFIX):
        raise BadSetting(
            f"this explainer was made from an {algorithm}, which params cannot hold: hand over the "
            "object again."
        )
    if isinstance(algorithm, str):
        lookup(pyg_algorithms(), algorithm, "PyG algorithm")
    elif isinstance(algorithm, ExplainerAlgorithm) and options:
        raise BadSetting(
            f"options build an algorithm by name or class, but {type(algorithm).__name__} is "
            "built: leave them out."
        )
    elif not isinstance(algorithm, ExplainerAlgorithm) and not callable(algorithm):
        raise BadSetting(
            "algorithm must be the name, the class or an object of a torch_geometric.explain "
            f"algorithm, but is {algorithm!r}."
        )


def is_untrained(algorithm: Any) -> bool:
    """Whether an algorithm must be trained before use, as PGExplainer must, and has not been."""
    return hasattr(algorithm, "_curr_epoch") and algorithm._curr_epoch < algorithm.epochs - 1


def build_isolated_algorithm(make: Any, options: Mapping[str, Any]) -> Any:
    """Build an algorithm whose options are its own.

    GraphMaskExplainer changes a dictionary that all of its objects share.
    """
    shared = vars(make).get("coeffs") if isinstance(make, type) else None
    if shared is None:
        return make(**options)
    try:
        make.coeffs = dict(shared)
        algorithm = make(**options)
        algorithm.coeffs = make.coeffs
        return algorithm
    finally:
        make.coeffs = shared


@contextmanager
def suppress_captum_warnings() -> Iterator[None]:
    """Suppress warnings of Captum about tensors that PyG creates."""
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="Input Tensor . did not already require gradients"
        )
        warnings.filterwarnings("ignore", message="Setting backward hooks on ReLU activations")
        yield
