"""Which features and edges are told: the strongest supporting ones, and the strongest opposing
ones.

For scores s and top_k = k,

    order "signed"      top: the k largest s > 0          opposing: the k smallest s < 0
    order "magnitude"   the k largest |s| > 0, then split by sign into top and opposing

as far as the explainer's scores carry a sign; otherwise nothing opposes, and top is the k largest
of the scores that are not 0. Equal scores keep the order in which features and edges are listed.
Features are the entries of the metrics' priority vector: those of the target (of each end of a
link), and those of all other nodes pooled.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from graphgauge.core.errors import BadSetting
from graphgauge.core.ranks import largest_first
from graphgauge.core.registry import lookup
from graphgauge.core.xplanation import POOLINGS, Xplanation
from graphgauge.narrative.names import Names

ORDERS = ("signed", "magnitude")
OWNERS = {"node": ("target",), "link": ("first", "second"), "graph": ()}


@dataclass(frozen=True)
class Ranking:
    """How many are told, in which order, whether scores carry a sign, and how the scores of
    neighbours are pooled.
    """

    top_k: int = 3
    order: str = "signed"
    signed: bool = True
    pooling: str = "max"

    def __post_init__(self) -> None:
        if isinstance(self.top_k, bool) or not hasattr(self.top_k, "__index__") or self.top_k < 1:
            raise BadSetting(
                f"top_k must be a whole number, 1 or more, but {self.top_k!r} was given."
            )
        lookup(dict.fromkeys(ORDERS), self.order, "order of scores")
        lookup(POOLINGS, self.pooling, "pooling")

    def split(self, scores: Sequence[float] | Tensor) -> tuple[list[int], list[int]]:
        """Positions of the supporting and of the opposing scores, the strongest first.

        >>> Ranking(top_k=2).split([0.1, -3.0, 0.5, 0.2, -0.4])
        ([2, 3], [1, 4])
        >>> Ranking(top_k=2, order="magnitude").split([0.1, -3.0, 0.5, 0.2, -0.4])
        ([2], [1])
        """
        own = torch.as_tensor(scores, dtype=torch.float64)
        strength = own.abs() if self.order == "magnitude" else own
        best = self.largest(strength, strength > 0 if self.signed else own != 0)
        if not self.signed:
            return best, []
        if self.order == "magnitude":
            return [k for k in best if own[k] > 0], [k for k in best if own[k] < 0]
        return best, self.largest(-own, own < 0)

    def largest(self, strength: Tensor, is_told: Tensor) -> list[int]:
        """Positions of the top_k largest of those that can be told."""
        told = is_told.nonzero()[:, 0]
        return told[largest_first(strength[told], int(self.top_k))].tolist()


@dataclass(frozen=True)
class Column:
    """One feature, or a group of features that is told as one."""

    index: int | None  #: None: a group
    name: str


def folded(x: Xplanation, names: Names) -> tuple[Xplanation, list[Column]]:
    """The explanation with the columns of each feature group added up, after the columns of single
    features.
    """
    score = x.need("feature_score")
    if not names.feature_groups:
        return x, [
            Column(number, names.of_one("features", number)) for number in range(score.size(1))
        ]
    groups = {noun[1]: sorted(members) for noun, members in names.feature_groups.items()}
    taken = {number for members in groups.values() for number in members}
    single = [number for number in range(score.size(1)) if number not in taken]
    sums = [score[:, members].sum(1, keepdim=True) for members in groups.values()]
    columns = [
        *(Column(number, names.of_one("features", number)) for number in single),
        *(Column(None, name) for name in groups),
    ]
    return replace(x, feature_score=torch.cat([score[:, single], *sums], 1)), columns


def entries(x: Xplanation, pooling: str) -> tuple[Tensor, list[str]]:
    """Feature scores as the metrics rank them, and whose each row is.  (rows, F): each target node, then all others pooled"""
    view = x.target_view(pooling)
    others = ["nodes" if x.level == "graph" else "neighbours"] * len(view.neighbours)
    return torch.cat([view.target, view.neighbours]), [*OWNERS[x.level], *others]
