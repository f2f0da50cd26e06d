"""Explainers: one file per method. A wrapped model and targets go in, explanations come out."""

from graphgauge.explainers.base import BaseExplainer
from graphgauge.explainers.callables import CallableExplainer
from graphgauge.explainers.checks import check_explainer
from graphgauge.explainers.chosen_classes import classes_to_explain
from graphgauge.explainers.gnn_explainer import GNNExplainer
from graphgauge.explainers.gradients import InputXGradient, IntegratedGradients, Saliency
from graphgauge.explainers.graphmask import GraphMask
from graphgauge.explainers.lrp import LRP
from graphgauge.explainers.occlusion import Occlusion
from graphgauge.explainers.other_tasks import OtherTaskExplainer
from graphgauge.explainers.promises import EXPLAINER_CHECKS
from graphgauge.explainers.pyg import PyGExplainer
from graphgauge.explainers.random_scores import RandomExplainer
from graphgauge.explainers.rectifiers import Deconvolution, GuidedBackprop
from graphgauge.explainers.registry import explainer_names, find_explainer

EXPLAINERS: dict[str, type[BaseExplainer]] = {
    explainer.name: explainer
    for explainer in (
        Saliency,
        InputXGradient,
        IntegratedGradients,
        GuidedBackprop,
        Deconvolution,
        LRP,
        GNNExplainer,
        GraphMask,
        Occlusion,
        RandomExplainer,
    )
}

__all__ = [
    "EXPLAINERS",
    "EXPLAINER_CHECKS",
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
    "classes_to_explain",
    "explainer_names",
    "find_explainer",
]
