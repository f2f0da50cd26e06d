"""Evaluation: explainers x metrics x targets -> results; settings and presets."""

from graphgauge.evaluation.accuracy import ModelAccuracy, model_accuracy
from graphgauge.evaluation.cells import FAULTS, STATUSES, Cell
from graphgauge.evaluation.concatenation import concat
from graphgauge.evaluation.evaluator import Evaluator
from graphgauge.evaluation.results import Results, Row
from graphgauge.evaluation.sampling import sample_targets
from graphgauge.evaluation.settings import PRESETS, Settings
from graphgauge.evaluation.stories import Case, Story

__all__ = [
    "FAULTS",
    "PRESETS",
    "STATUSES",
    "Case",
    "Cell",
    "Evaluator",
    "ModelAccuracy",
    "Results",
    "Row",
    "Settings",
    "Story",
    "concat",
    "model_accuracy",
    "sample_targets",
]
