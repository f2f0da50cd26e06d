"""Explainers without scores, such as counterfactuals, prototypes, sentences or rules.

The Evaluator measures their time and records that there are no scores to evaluate.
"""

import time
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from graphgauge.core import (
    Target,
    Xplanation,
    advance_progress,
    derive_seed,
    progress_bar,
    temporary_global_seed,
)
from graphgauge.explainers.base import BaseExplainer
from graphgauge.explainers.explained_class import accepts_label
from graphgauge.explainers.explanations import Scores
from graphgauge.models import BaseModel, preserve_network
from graphgauge.subgraphs import ComputationGraphs


@dataclass(frozen=True)
class OtherTaskExplainer(BaseExplainer):
    """Base class of explainers whose explanations have no scores.

    A subclass sets ``name`` and ``deterministic`` and implements `outcome`. Each explanation stores
    what `outcome` returned in ``outcome``, and has None in place of scores.

    >>> from dataclasses import dataclass
    >>> import torch, graphgauge as gg
    >>> from torch_geometric.data import Data
    >>> from torch_geometric.nn import GCN
    >>> @dataclass(frozen=True)
    ... class InDegree(gg.OtherTaskExplainer):
    ...     name, deterministic = "in_degree", True
    ...
    ...     def outcome(self, model, target, seed):
    ...         degree = int((model.data.edge_index[1] == target).sum())
    ...         return f"in-degree {degree}"
    >>> data = Data(x=torch.rand(6, 4), edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]))
    >>> model = gg.NodeClassificationModel(GCN(4, 8, 2, 3), data, output="logits")
    >>> InDegree().explain(model, [2])[0].outcome
    'in-degree 1'
    """

    signed = False

    @property
    def explains_labels(self) -> bool:
        """Whether `outcome` has a parameter ``label``."""
        return accepts_label(self.outcome)

    def explain_in_session(
        self, model: BaseModel, targets: Any, seed: int, label: Tensor | None = None
    ) -> Sequence[Xplanation]:
        """Explain one target after another."""
        xs = super().explain_in_session(model, targets, seed, label)
        with progress_bar(len(xs), self.name):
            for x in xs:
                start = time.perf_counter()
                target_seed = derive_seed(seed, self.name, x.target, x.occurrence)
                options = {}
                if x.label is not None and self.explains_labels:
                    options["label"] = x.label
                with (
                    preserve_network(model.net),
                    torch.enable_grad(),
                    temporary_global_seed(target_seed),
                ):
                    x.outcome = self.outcome(model, x.target, target_seed, **options)
                x.seconds = (x.seconds or 0.0) + time.perf_counter() - start
                advance_progress(1)
        return xs

    def scores(self, model: BaseModel, graphs: ComputationGraphs, seeds: list[int]) -> Scores:
        """Return no scores."""
        return Scores(None, None)

    @abstractmethod
    def outcome(self, model: BaseModel, target: Target, seed: int) -> Any:
        """Explain one target. This is the method that a subclass implements.

        A subclass may add a parameter ``label``; it receives the class to explain if the caller
        chose one.

        Args:
            model: The wrapped network.
            target: The target.
            seed: Seed for random draws; the global random states are seeded with it too.
        """
