"""Which features and edges a text names: the strongest supporting and opposing ones.

For scores s and top_k = k,

    order "signed"      top: the k largest s > 0          opposing: the k smallest s < 0
    order "magnitude"   the k largest |s| > 0, then split by sign into top and opposing

if the explainer's scores carry a sign; otherwise nothing opposes, and top is the k largest of the
scores that are not 0. Equal scores keep the order in which features and edges are listed. Features
are the entries of the metrics' priority vector: those of the target (of each end of a link), and
those of all other nodes, pooled.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from graphgauge.core import POOLINGS, BadSetting, Xplanation, largest_positions, lookup
from graphgauge.narrative.names import Names

_SCORE_ORDERS = ("signed", "magnitude")
_ROW_OWNERS = {"node": ("target",), "link": ("first", "second"), "graph": ()}


@dataclass(frozen=True)
class ScoreSelection:
    """How many to name, in which order, whether scores have a sign, how neighbours are pooled."""

    top_k: int = 3
    order: str = "signed"
    signed: bool = True
    pooling: str = "max"

    def __post_init__(self) -> None:
        if isinstance(self.top_k, bool) or not hasattr(self.top_k, "__index__") or self.top_k < 1:
            raise BadSetting(
                f"top_k must be a whole number, 1 or more, but {self.top_k!r} was given."
            )
        lookup(dict.fromkeys(_SCORE_ORDERS), self.order, "order of scores")
        lookup(POOLINGS, self.pooling, "pooling")

    def split(self, scores: Sequence[float] | Tensor) -> tuple[list[int], list[int]]:
        """Return positions of the supporting and of the opposing scores, the strongest first.

        >>> ScoreSelection(top_k=2).split([0.1, -3.0, 0.5, 0.2, -0.4])
        ([2, 3], [1, 4])
        >>> ScoreSelection(top_k=2, order="magnitude").split([0.1, -3.0, 0.5, 0.2, -0.4])
        ([2], [1])
        """
        values = torch.as_tensor(scores, dtype=torch.float64)
        strength = values.abs() if self.order == "magnitude" else values
        best = self.largest(strength, strength > 0 if self.signed else values != 0)
        if not self.signed:
            return best, []
        if self.order == "magnitude":
            return [k for k in best if values[k] > 0], [k for k in best if values[k] < 0]
        return best, self.largest(-values, values < 0)

    def largest(self, strength: Tensor, can_be_named: Tensor) -> list[int]:
        """Return positions of the top_k largest of those that can be named."""
        positions = can_be_named.nonzero()[:, 0]
        return positions[largest_positions(strength[positions], int(self.top_k))].tolist()


@dataclass(frozen=True)
class FeatureColumn:
    """One feature, or a group of features that counts as one."""

    index: int | None  #: None: a group
    name: str


def fold_feature_groups(x: Xplanation, names: Names) -> tuple[Xplanation, list[FeatureColumn]]:
    """Add up the columns of each feature group; they follow the columns of single features."""
    score = x.need("feature_score")
    if not names.feature_groups:
        return x, [
            FeatureColumn(number, names.name_of("features", number))
            for number in range(score.size(1))
        ]
    groups = {noun[1]: sorted(members) for noun, members in names.feature_groups.items()}
    taken = {number for members in groups.values() for number in members}
    single = [number for number in range(score.size(1)) if number not in taken]
    sums = [score[:, members].sum(1, keepdim=True) for members in groups.values()]
    columns = [
        *(FeatureColumn(number, names.name_of("features", number)) for number in single),
        *(FeatureColumn(None, name) for name in groups),
    ]
    return replace(x, feature_score=torch.cat([score[:, single], *sums], 1)), columns


def ranked_feature_rows(x: Xplanation, pooling: str) -> tuple[Tensor, list[str]]:
    """Return feature scores as the metrics rank them, and whose each row is.

    The rows are those of each target node, then all others pooled.  (rows, F)
    """
    view = x.target_view(pooling)
    others = ["nodes" if x.level == "graph" else "neighbours"] * len(view.neighbours)
    return torch.cat([view.target, view.neighbours]), [*_ROW_OWNERS[x.level], *others]
