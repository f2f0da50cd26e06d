"""Explainers that give no scores: counterfactuals, prototypes, sentences, rules.

The Evaluator measures their time and records that there are no scores to measure.
"""

import time
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import torch

from graphgauge.core.randomness import seeded_globally
from graphgauge.core.xplanation import Target, Xplanation
from graphgauge.explainers.base import BaseExplainer, Scores
from graphgauge.models import BaseModel, ComputationGraphs


@dataclass(frozen=True)
class OtherTaskExplainer(BaseExplainer):
    """An explainer whose explanations are no scores. A subclass has a name, says `deterministic` and implements `outcome`.

    Its explanations carry what `outcome` returned in ``outcome``, and None where others have scores.
    """

    signed = False

    def explain(self, model: BaseModel, targets: Any, seed: int = 0) -> list[Xplanation]:
        """One explanation per target, made one after another."""
        xs = super().explain(model, targets, seed)
        for x in xs:
            start = time.perf_counter()
            with model.session(), torch.enable_grad(), seeded_globally(x.seed or 0):
                x.outcome = self.outcome(model, x.target, x.seed or 0)
            x.seconds = (x.seconds or 0.0) + time.perf_counter() - start
        return xs

    def scores(self, model: BaseModel, graphs: ComputationGraphs, seeds: list[int]) -> Scores:
        """None."""
        return Scores(None, None)

    @abstractmethod
    def outcome(self, model: BaseModel, target: Target, seed: int) -> Any:
        """The explanation of one target, drawing from ``seed`` or from the global random states, which are seeded with it."""
