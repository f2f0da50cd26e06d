"""Explainers: one file per family; model and targets in, explanations out."""

from graphgauge.explainers.base import BaseExplainer
from graphgauge.explainers.gnn_explainer import GNNExplainer
from graphgauge.explainers.gradients import InputXGradient, IntegratedGradients, Saliency
from graphgauge.explainers.graphmask import GraphMask
from graphgauge.explainers.lrp import LRP
from graphgauge.explainers.random_scores import RandomExplainer
from graphgauge.explainers.rectifiers import Deconvolution, GuidedBackprop

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
        RandomExplainer,
    )
}

__all__ = [
    "EXPLAINERS",
    "LRP",
    "BaseExplainer",
    "Deconvolution",
    "GNNExplainer",
    "GraphMask",
    "GuidedBackprop",
    "InputXGradient",
    "IntegratedGradients",
    "RandomExplainer",
    "Saliency",
]
