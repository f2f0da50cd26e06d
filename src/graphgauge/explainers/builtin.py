"""The explainers that graphgauge brings, by name."""

from graphgauge.explainers.base import BaseExplainer
from graphgauge.explainers.gnn_explainer import GNNExplainer
from graphgauge.explainers.gradients import InputXGradient, IntegratedGradients, Saliency
from graphgauge.explainers.graphmask import GraphMask
from graphgauge.explainers.guided_backprop import Deconvolution, GuidedBackprop
from graphgauge.explainers.lrp import LRP
from graphgauge.explainers.occlusion import Occlusion
from graphgauge.explainers.random_scores import RandomExplainer

#: name -> explainer class
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
