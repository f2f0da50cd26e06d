"""Scores of several explanations of each of many targets, packed, and how alike they are.

The scores of one side of R explanations of a target are R rows: of its relevant edges, or of the
features of its nodes. Rows of different targets have different lengths. To compare them at once,
targets with rows of the same length are put together (`groups_of_rows`). On a GPU, where each
group costs several launches, lengths are rounded up to a power of two, and rows are filled with 0,
which changes no length of a vector. On a CPU they are not, so that sums keep their bits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from graphgauge.core import Xplanation
from graphgauge.evaluation.candidate_scores import EMPTY, NAN_ATTRIBUTION, NO_SCORES
from graphgauge.explainers import Explanations
from graphgauge.metrics import half_distance
from graphgauge.subgraphs import ComputationGraphs, pointers_from_counts, ragged_ranges

#: scores that are compared in one call, unless one target has more
_CELLS_AT_ONCE = 2**24
#: scores of pairs whose distances are computed in one call on a CPU, unless two pairs have more
_CELLS_OF_PAIRS = 2**16


@dataclass(frozen=True)
class RepeatedScores:
    """Scores of one side of R explanations of each of T targets.

    Args:
        side: "feature" or "edge".
        repeats: The number R of explanations of each target.
        value: Rows of scores: those of the first explanation of the first target, of its second
            explanation, and so on (F is 1 for edges); None if the explainer gives none.
            (R times the sum of rows, F)
        num_rows: Number of nodes or edges of each target.  (T,)
        is_own: Which nodes are the target's own; all edges.  (sum of rows,) bool
        lacks_scores: Which targets have an explanation without scores of this side.
    """

    side: str
    repeats: int
    value: Tensor | None
    num_rows: Tensor
    is_own: Tensor
    lacks_scores: Sequence[bool]

    @staticmethod
    def from_packed(xs: Explanations, repeats: int, side: str) -> "RepeatedScores":
        """Take packed explanations as they are, ``repeats`` of each target one after another.

        Args:
            xs: The explanations.
            repeats: Number of explanations of each target.
            side: "feature" or "edge".
        """
        first = torch.arange(0, len(xs), repeats, device=xs.graphs.num_nodes.device)
        graphs = xs.graphs.take(first)
        if side == "edge":
            value, num_rows = xs.edge_score, graphs.num_edges
        else:
            value, num_rows = xs.feature_score, graphs.num_nodes
        is_own = torch.full((int(num_rows.sum()),), side == "edge", device=num_rows.device)
        if side == "feature":
            start = pointers_from_counts(num_rows)[:-1]
            is_own[(graphs.target_row + start[:, None]).flatten()] = True
        lacks = [value is None] * len(graphs)
        return RepeatedScores(side, repeats, _as_matrix(value), num_rows, is_own, lacks)

    @staticmethod
    def from_list(xs: Sequence[Xplanation], repeats: int, side: str) -> "RepeatedScores":
        """Pack single explanations, ``repeats`` of each target one after another.

        Args:
            xs: The explanations; those of one target score the same nodes and edges.
            repeats: Number of explanations of each target.
            side: "feature" or "edge".
        """
        of_targets = xs[::repeats]
        if side == "edge":
            scores = [x.edge_score for x in xs]
            is_own = [torch.ones_like(x.edges, dtype=torch.bool) for x in of_targets]
        else:
            scores = [x.feature_score for x in xs]
            is_own = [_target_node_mask(x) for x in of_targets]
        lacks = [
            any(score is None for score in scores[k : k + repeats])
            for k in range(0, len(xs), repeats)
        ]
        sizes = [len(own) for own in is_own for _ in range(repeats)]
        value = _as_matrix(_join_scores(scores, sizes))
        num_rows = torch.tensor([len(own) for own in is_own], device=xs[0].nodes.device)
        return RepeatedScores(side, repeats, value, num_rows, torch.cat(is_own), lacks)

    def __len__(self) -> int:
        return len(self.num_rows)

    @cached_property
    def row_lists(self) -> tuple[list[int], list[int]]:
        """The first row of each target's first explanation, and the number of its rows."""
        start = pointers_from_counts(self.num_rows * self.repeats)[:-1]
        return start.tolist(), self.num_rows.tolist()

    @cached_property
    def status(self) -> list[str]:
        """Why the scores of each target cannot be compared; '' if they can."""
        if self.value is None:
            is_bad = [False] * len(self)
        else:
            owner = torch.repeat_interleave(self.num_rows * self.repeats)
            bad = (~self.value.isfinite()).any(1)
            is_bad = self.num_rows.new_zeros(len(self)).index_add_(0, owner, bad.long()).tolist()
        sizes = self.row_lists[1] if self.side == "edge" else [1] * len(self)
        return [
            EMPTY if not size else NO_SCORES if lacks else NAN_ATTRIBUTION if bad else ""
            for size, lacks, bad in zip(sizes, self.lacks_scores, is_bad, strict=True)
        ]

    @cached_property
    def num_zero(self) -> list[int]:
        """In how many explanations of each target all scores are 0."""
        if self.value is None:
            return [0] * len(self)
        size = self.num_rows.repeat_interleave(self.repeats)
        owner = torch.repeat_interleave(size)
        is_filled = (self.value != 0).any(1).long()
        filled = size.new_zeros(len(size)).index_add_(0, owner, is_filled)
        return (filled == 0).view(-1, self.repeats).sum(1).tolist()

    @cached_property
    def is_lonely(self) -> list[bool]:
        """Which targets have no other node, so that their own features alone are scored."""
        others = self.num_rows.new_zeros(len(self)).index_add_(
            0, torch.repeat_interleave(self.num_rows), (~self.is_own).long()
        )
        return [self.side == "feature" and not count for count in others.tolist()]

    @property
    def blocks(self) -> tuple[Tensor, ...]:
        """The rows that are compared together: all edges; the target's own nodes, and the others.
        (sum of rows,) bool
        """
        return (self.is_own,) if self.side == "edge" else (self.is_own, ~self.is_own)

    def of_target(self, k: int) -> tuple[Tensor, Tensor]:
        """The scores of target number k, (R, n, F) or (R, E_rel), and which nodes are its own."""
        assert self.value is not None
        starts, sizes = self.row_lists
        rows = self.value[starts[k] : starts[k] + self.repeats * sizes[k]]
        scores = rows.view(self.repeats, sizes[k], rows.size(1))
        first = starts[k] // self.repeats
        own = self.is_own[first : first + sizes[k]]
        return (scores[:, :, 0] if self.side == "edge" else scores), own

    def similarity(self, first: Tensor, second: Tensor) -> Tensor:
        """How alike explanations number ``first`` and ``second`` of each target are.

        (P,), (P,) -> (T, P), on the CPU; NaN for targets that cannot be compared

        Args:
            first: Numbers from 0 to R - 1.
            second: As many numbers.
        """
        shape = (len(self), len(first))
        if self.value is None:
            return torch.full(shape, torch.nan)
        device = self.value.device
        total, count = self.value.new_zeros(shape), self.value.new_zeros(len(self), 1)
        for block in self.blocks:
            for target, scores in self.groups_of_rows(block):
                total[target] += _distances(scores, first.to(device), second.to(device))
                count[target] += 1
        is_known = torch.tensor([not why for why in self.status], device=device)[:, None]
        return torch.where(is_known & (count > 0), 1 - total / count, torch.nan).cpu()

    def groups_of_rows(self, block: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Targets with about as many scores in a block, and these scores.

        (sum of rows,) bool -> (G,), (G, R, n)

        Args:
            block: Which of a target's rows count.
        """
        assert self.value is not None
        device, width = self.value.device, self.value.size(1)
        owner = torch.repeat_interleave(self.num_rows)
        (place,) = block.nonzero(as_tuple=True)
        count = torch.zeros_like(self.num_rows).index_add_(0, owner[place], torch.ones_like(place))
        ptr = pointers_from_counts(count)
        start = pointers_from_counts(self.num_rows)[:-1]
        filled = _filled_lengths(count)
        for size in filled.unique().tolist():
            if not size or not width:
                continue
            per_part = max(1, _CELLS_AT_ONCE // (size * width * self.repeats))
            for target in (filled == size).nonzero()[:, 0].split(per_part):
                slot = torch.arange(size, device=device)
                is_there = slot < count[target, None]
                row = place[(ptr[target, None] + slot).clamp(max=len(place) - 1)]
                row = row - start[target, None] + self.repeats * start[target, None]
                step = (
                    torch.arange(self.repeats, device=device)[:, None]
                    * self.num_rows[target][:, None, None]
                )
                at = torch.where(is_there[:, None], row[:, None] + step, 0)
                scores = self.value[at]
                if not bool(is_there.all()):
                    scores = torch.where(is_there[:, None, :, None], scores, 0)
                yield target, scores.flatten(2)


def _distances(scores: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Half the distance of pairs of explanations.  (G, R, n), (P,), (P,) -> (G, P)

    On a CPU, a few pairs are copied at a time, to take less memory. There are two or more of them:
    a single one would be summed in another order by several threads.
    """
    cells = len(scores) * len(first) * scores.size(2)
    is_split = scores.device.type == "cpu"
    parts = max(1, min(len(first) // 2, cells // _CELLS_OF_PAIRS)) if is_split else 1
    pairs = zip(first.tensor_split(parts), second.tensor_split(parts), strict=True)
    return torch.cat([half_distance(scores[:, one], scores[:, two]) for one, two in pairs], 1)


def _join_scores(scores: Sequence[Tensor | None], sizes: Sequence[int]) -> Tensor | None:
    """Concatenate scores, with zeros for explanations that have none; None if all have none."""
    given = next((score for score in scores if score is not None), None)
    if given is None:
        return None
    return torch.cat(
        [
            given.new_zeros(size, *given.shape[1:]) if score is None else score
            for score, size in zip(scores, sizes, strict=True)
        ]
    )


def _as_matrix(score: Tensor | None) -> Tensor | None:
    """Scores of edges as rows of one score; those of features as they are."""
    return score[:, None] if score is not None and score.dim() == 1 else score


def _target_node_mask(x: Xplanation) -> Tensor:
    """Which nodes are the target's own.  (n,) bool"""
    ends = torch.tensor(x.target_nodes, dtype=torch.int64, device=x.nodes.device)
    return torch.isin(x.nodes, ends)


def _filled_lengths(count: Tensor) -> Tensor:
    """To what length rows of ``count`` (n,) scores are filled up.  (n,) -> (n,)"""
    return count if count.device.type == "cpu" else _next_power_of_two(count)


def _next_power_of_two(count: Tensor) -> Tensor:
    """The least power of two that is not smaller, or 0.  (n,) -> (n,)

    >>> _next_power_of_two(torch.tensor([0, 1, 5, 8]))
    tensor([0, 1, 8, 8])
    """
    power = torch.exp2(count.clamp(min=1).double().log2().ceil()).long()
    return torch.where(count > 0, power, 0)


def have_same_edges(xs: Explanations, graphs: ComputationGraphs, repeats: int) -> bool:
    """Whether packed explanations score the relevant edges of these graphs, in their order.

    Args:
        xs: The explanations, ``repeats`` of each graph.
        graphs: The computation graphs.
        repeats: Number of explanations of each.
    """
    made, count = xs.graphs, graphs.num_edges
    first = torch.arange(0, len(made), repeats, device=count.device)
    if not torch.equal(made.num_edges[first], count):
        return False
    mine = made.edge[ragged_ranges(made.edge_ptr[first], count)[1]]
    return torch.equal(mine, graphs.edge[ragged_ranges(graphs.edge_ptr[:-1], count)[1]])
