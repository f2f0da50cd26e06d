"""Explainers: one file per family; model and targets in, explanations out."""

from graphgauge.explainers.base import BaseExplainer
from graphgauge.explainers.gradients import InputXGradient, IntegratedGradients, Saliency
from graphgauge.explainers.random_scores import RandomExplainer

EXPLAINERS: dict[str, type[BaseExplainer]] = {
    explainer.name: explainer for explainer in (Saliency, InputXGradient, IntegratedGradients, RandomExplainer)
}

__all__ = ["EXPLAINERS", "BaseExplainer", "InputXGradient", "IntegratedGradients", "RandomExplainer", "Saliency"]
