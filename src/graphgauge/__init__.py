"""graphgauge: how good are the explanations of a graph neural network, and which explainer can be
trusted?

Importing graphgauge loads nothing heavy: each name is imported when it is first used.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0.dev0"

#: every public name and the module it lives in
PUBLIC = {
    **dict.fromkeys(
        (
            "BaseModel",
            "NodeClassificationModel",
            "NodeRegressionModel",
            "LinkClassificationModel",
            "LinkRegressionModel",
            "GraphClassificationModel",
            "GraphRegressionModel",
            "check_model",
        ),
        "graphgauge.models",
    ),
    **dict.fromkeys(
        (
            "LRP",
            "BaseExplainer",
            "CallableExplainer",
            "Deconvolution",
            "GNNExplainer",
            "GraphMask",
            "GuidedBackprop",
            "InputXGradient",
            "IntegratedGradients",
            "Occlusion",
            "OtherTaskExplainer",
            "PyGExplainer",
            "RandomExplainer",
            "Saliency",
            "check_explainer",
            "explainer_names",
            "find_explainer",
        ),
        "graphgauge.explainers",
    ),
    "check_metric": "graphgauge.metrics",
    **dict.fromkeys(("Evaluator", "Results", "concat", "sample_targets"), "graphgauge.evaluation"),
    "Names": "graphgauge.narrative",
    "Project": "graphgauge.lifecycle",
    **dict.fromkeys(
        (
            "draw_explanation",
            "plot_deletion_curve",
            "plot_edge_bars",
            "plot_feature_bars",
            "plot_fronts",
            "plot_pareto",
            "plot_stability_strips",
            "write_analysis",
        ),
        "graphgauge.report",
    ),
    "Xplanation": "graphgauge.core.xplanation",
    "GraphgaugeError": "graphgauge.core.errors",
}

#: rooms that can be reached as ``graphgauge.models`` without importing them first
ROOMS = (
    "benchmark",
    "core",
    "datasets",
    "evaluation",
    "explainers",
    "guidelines",
    "lifecycle",
    "metrics",
    "models",
    "monitor",
    "narrative",
    "perturbation",
    "report",
    "serve",
    "store",
)

__all__ = ["__version__", *PUBLIC]


def __getattr__(name: str) -> Any:
    if name in PUBLIC:
        return getattr(import_module(PUBLIC[name]), name)
    if name in ROOMS:
        return import_module(f"graphgauge.{name}")
    raise AttributeError(f"module 'graphgauge' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *PUBLIC, *ROOMS})
