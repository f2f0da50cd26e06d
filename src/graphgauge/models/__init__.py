"""Wrappers that give every network the same predictions; computation graphs; disjoint unions."""

from graphgauge.models.base import BaseModel
from graphgauge.models.checks import CheckResult, check_model
from graphgauge.models.computation import ComputationGraph, ComputationGraphs
from graphgauge.models.promises import MODEL_CHECKS
from graphgauge.models.union import Union
from graphgauge.models.weights import load_weights
from graphgauge.models.wrappers import (
    GraphClassificationModel,
    GraphRegressionModel,
    LinkClassificationModel,
    LinkRegressionModel,
    NodeClassificationModel,
    NodeRegressionModel,
)

__all__ = [
    "MODEL_CHECKS",
    "BaseModel",
    "CheckResult",
    "ComputationGraph",
    "ComputationGraphs",
    "GraphClassificationModel",
    "GraphRegressionModel",
    "LinkClassificationModel",
    "LinkRegressionModel",
    "NodeClassificationModel",
    "NodeRegressionModel",
    "Union",
    "check_model",
    "load_weights",
]
