"""Explainers that give no scores: counterfactuals, prototypes, sentences, rules.

The Evaluator measures their time and records that there are no scores to measure.
"""

import time
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from graphgauge.core.progress import advance, progress
from graphgauge.core.randomness import seeded_globally
from graphgauge.core.seeds import derive_seed
from graphgauge.core.xplanation import Target, Xplanation
from graphgauge.explainers.base import BaseExplainer, Scores
from graphgauge.explainers.chosen_classes import takes_label
from graphgauge.models import BaseModel, ComputationGraphs
from graphgauge.models.guard import untouched


@dataclass(frozen=True)
class OtherTaskExplainer(BaseExplainer):
    """An explainer whose explanations are no scores. A subclass has a name, says `deterministic`
    and implements `outcome`.

    Its explanations carry what `outcome` returned in ``outcome``, and None where others have
    scores.
    """

    signed = False

    @property
    def explains_labels(self) -> bool:
        """Whether `outcome` takes a class, as its parameter ``label``."""
        return takes_label(self.outcome)

    def explanations(
        self, model: BaseModel, targets: Any, seed: int, label: Tensor | None = None
    ) -> list[Xplanation]:
        """One explanation per target, made one after another."""
        xs = super().explanations(model, targets, seed, label)
        with progress(len(xs), self.name):
            for x in xs:
                start, own = (
                    time.perf_counter(),
                    derive_seed(seed, self.name, x.target, x.occurrence),
                )
                with untouched(model.net), torch.enable_grad(), seeded_globally(own):
                    chosen = (
                        {"label": x.label} if x.label is not None and self.explains_labels else {}
                    )
                    x.outcome = self.outcome(model, x.target, own, **chosen)
                x.seconds = (x.seconds or 0.0) + time.perf_counter() - start
                advance(1)
        return xs

    def scores(self, model: BaseModel, graphs: ComputationGraphs, seeds: list[int]) -> Scores:
        """None."""
        return Scores(None, None)

    @abstractmethod
    def outcome(self, model: BaseModel, target: Target, seed: int) -> Any:
        """The explanation of one target, drawing from ``seed`` or from the global random states,
        which are seeded with it.

        With a parameter ``label`` it is told the class to explain where one was chosen.
        """
