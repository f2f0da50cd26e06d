"""Substitution of features by those of a reference.

A target has 2 F candidates: its own F features, and F features of all its neighbours together.
(Links have 3 F, with a block for each end; graphs have F, for all nodes; a node without neighbours
has its own F.) Candidate b F + j substitutes feature j in the nodes of block b: each of these nodes
takes the value of its *donor*, a node of the reference (see `references`).

The first linear map of a network is updated from step to step instead of being computed anew for
every copy. With the columns j_1, j_2 ... of the weight W in the order of a line, and d the donor of
node v,

    (x W')_v after k steps = (x W')_v + Σ_{i <= k, j_i in v's block} (x_d,j_i - x_v,j_i) W_j_i

The sum is accumulated in double precision from the first step on, so that a copy gets the same bits
in every batch. Only a few steps are in memory at a time, however long the line is.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from graphgauge.core import can_run_kernels
from graphgauge.execution import BatchFeatures, GatheredFeatures, GraphBatch
from graphgauge.perturbation.deletion_curves import CurveLines, GraphEdits
from graphgauge.perturbation.triton_changes import add_changes
from graphgauge.subgraphs import ComputationGraphs, ragged_ranges

_MAX_CELLS_AT_ONCE = 2**24  #: cells that are compared in one call
_STEPS_AT_ONCE = 8  #: steps of a line whose changes are in memory together, in double precision


@dataclass(frozen=True)
class FeatureEdits(GraphEdits):
    """Substitution of features; each pair of a target and a reference is one case."""

    graphs: ComputationGraphs
    graph: Tensor  #: (Q,)
    #: (sum of n,) row of the data's x from which each node of each case takes its values
    donor: Tensor
    donor_ptr: Tensor  #: (Q + 1,)
    kind: str = "features"

    @property
    def num_features(self) -> int:
        """Number of features F."""
        return self.graphs.source.x.size(1)

    @property
    def num_blocks(self) -> int:
        """Number of blocks of candidates; the neighbours' block is the last."""
        return self.graphs.target_row.size(1) + 1

    @property
    def candidates(self) -> Tensor:
        """Number of candidates of each case; targets without neighbours lack that block. (Q,)"""
        return count_feature_candidates(self.graphs)[self.graph]

    @cached_property
    def matters(self) -> Tensor:
        """Whether a substitution changes a value. (Q * blocks, F) bool"""
        x, matters = self.graphs.source.x, []
        size = self.donor_ptr.diff()
        per_part = max(1, _MAX_CELLS_AT_ONCE // max(self.num_features, 1))
        for part in torch.arange(len(self.graph), device=x.device).split(
            _cases_per_part(size, per_part)
        ):
            case, place = ragged_ranges(self.donor_ptr[part], size[part])
            position = place - self.donor_ptr[part][case]
            graph = self.graph[part][case]
            differs = (
                x[self.donor[place]] != x[self.graphs.node[self.graphs.node_ptr[graph] + position]]
            )
            row = case * self.num_blocks + _candidate_block(self.graphs, graph, position)
            count = torch.zeros(len(part) * self.num_blocks, self.num_features, device=x.device)
            matters.append(count.index_add_(0, row, differs.to(count)) > 0)
        none = torch.zeros(0, self.num_features, dtype=torch.bool, device=x.device)
        return torch.cat([none, *matters])

    def changes(self, lines: CurveLines) -> Tensor:
        """Whether a step changes a value. (M, K) bool"""
        block, column = lines.order // self.num_features, lines.order % self.num_features
        is_there = lines.order >= 0
        row = lines.case[:, None] * self.num_blocks + torch.where(is_there, block, 0)
        return is_there & self.matters[row, column]

    def edit(self, union: GraphBatch, lines: CurveLines, line: Tensor, step: Tensor) -> GraphBatch:
        """Substitute the features that come first in each copy's line."""
        return union.with_features(SubstitutedFeatures.from_edits(self, union, lines, line, step))


def _most_and_equal_changes(line: Tensor, num_changes: Tensor) -> tuple[int, int, int]:
    """The largest number of changes, and how many copies have one like them in their line: among
    those that are changed, and among all.

    Args:
        line: The line of each copy.  (K,)
        num_changes: The number of changes that each copy gets.  (K,)
    """
    if not len(line):
        return 0, 0, 0
    most = num_changes.max()
    key = (line * (most + 1) + num_changes).sort().values
    is_alike = key[1:] == key[:-1]
    is_equal = is_alike & (key[1:] % (most + 1) > 0)
    largest, equal, alike = torch.stack([most, is_equal.sum(), is_alike.sum()]).tolist()
    return int(largest), int(equal), int(alike)


def _cases_per_part(size: Tensor, most: int) -> list[int]:
    """How many consecutive cases of ``size`` nodes make parts of about ``most`` nodes. (Q,)"""
    if not len(size):
        return [0]
    return (size.cumsum(0) // most).unique_consecutive(return_counts=True)[1].tolist()


def count_feature_candidates(graphs: ComputationGraphs) -> Tensor:
    """F candidates for each block that a target has. (T,)"""
    ends = graphs.target_row.size(1)
    return (ends + (graphs.num_nodes > ends).long()) * graphs.source.x.size(1)


def _candidate_block(graphs: ComputationGraphs, graph: Tensor, position: Tensor) -> Tensor:
    """The block of nodes at ``position`` in graphs number ``graph``. (n,), (n,) -> (n,)

    It is the number of their end for nodes of the target, and the neighbours' block for others.
    """
    is_end = graphs.target_row[graph] == position[:, None]
    number = torch.arange(is_end.size(1), device=position.device)
    return torch.where(is_end.any(1), (is_end * number).sum(1), is_end.size(1))


@dataclass(frozen=True)
class SubstitutedFeatures(BatchFeatures):
    """Features of a batch of edited copies.

    The copies belong to L lines. The nodes of each line are listed once, as *pairs* of line and
    node.
    """

    base: BatchFeatures
    source: Tensor  #: (N, F)
    order: Tensor  #: (L, S) candidates that change something, in order, then -1
    num_features: int
    pair_line: Tensor  #: (pairs,)
    pair_block: Tensor  #: (pairs,)
    pair_node: Tensor  #: (pairs,) row of source
    pair_donor: Tensor  #: (pairs,) row of source
    at: Tensor  #: (rows of scored nodes,) row of each in the batch
    pair: Tensor  #: (rows of scored nodes,)
    step: Tensor  #: (rows of scored nodes,) number of changes made, from 0
    copies_differ: bool  #: whether all copies of a line that are changed have different steps
    has_all_rows: bool  #: whether every row of the batch is in ``at``, unchanged ones once a pair

    @staticmethod
    def from_edits(
        edits: FeatureEdits, union: GraphBatch, lines: CurveLines, line: Tensor, step: Tensor
    ) -> "SubstitutedFeatures":
        """Build the features from the line and step of each copy.

        Args:
            edits: The substitutions of Q cases.
            union: A batch of K unedited copies of the targets' computation graphs.
            lines: The lines.
            line: The line of each copy (K,), in rising order.
            step: The number of edits that each copy gets (K,).
        """
        graphs = edits.graphs
        distinct, line_of_copy = line.unique(return_inverse=True)
        present = CurveLines(lines.case[distinct], lines.order[distinct])
        changes = edits.changes(present)
        num_changes = torch.where(
            step > 0, changes.cumsum(1)[line_of_copy, (step - 1).clamp(min=0)], 0
        )
        most_changes, num_equal, num_alike = _most_and_equal_changes(line_of_copy, num_changes)
        graph = edits.graph[present.case]
        pair_line, pair_place = ragged_ranges(
            edits.donor_ptr[present.case], edits.donor_ptr.diff()[present.case]
        )
        position = pair_place - edits.donor_ptr[present.case][pair_line]
        pair_start = graphs.num_nodes[graph].cumsum(0) - graphs.num_nodes[graph]
        is_scored = union.is_scored
        copy = union.node_copy[is_scored]
        return SubstitutedFeatures(
            base=union.features,
            source=graphs.source.x,
            order=keep_changing_steps(present.order, changes, most_changes),
            num_features=edits.num_features,
            pair_line=pair_line,
            pair_block=_candidate_block(graphs, graph[pair_line], position),
            pair_node=graphs.node[graphs.node_ptr[graph[pair_line]] + position],
            pair_donor=edits.donor[pair_place],
            at=union.node_at[is_scored],
            pair=pair_start[line_of_copy][copy] + union.node_position[is_scored],
            step=num_changes[copy],
            copies_differ=num_equal == 0,
            has_all_rows=num_alike == 0 and len(copy) == union.num_rows,
        )

    @property
    def like(self) -> Tensor:
        """A tensor with the type and device of the features."""
        return self.source

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""
        return self.base.shape

    @cached_property
    def written(self) -> Tensor:
        """The features as one tensor: each row has its donor's values in the substituted
        columns.
        """
        blocks = int(self.pair_block.max()) + 1 if len(self.pair_block) else 1
        num_lines, most_changes = self.order.shape
        device, never = self.order.device, torch.iinfo(torch.int32).max
        when = torch.full(
            (num_lines, blocks * self.num_features), never, dtype=torch.int32, device=device
        )
        is_there = (self.order >= 0) & (self.order < blocks * self.num_features)
        turn = torch.arange(1, most_changes + 1, dtype=torch.int32, device=device)
        turn = turn.expand_as(self.order)
        when[is_there.nonzero()[:, 0], self.order[is_there]] = turn[is_there]
        when = when.view(-1, self.num_features)[self.pair_line * blocks + self.pair_block]
        original = self.source[self.pair_node[self.pair]]
        donated = self.source[self.pair_donor[self.pair]]
        rows = torch.where(when[self.pair] <= self.step[:, None], donated, original)
        return self.base.written.index_copy(0, self.at, rows)

    def linear(self, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The linear map of the unedited rows, plus the accumulated changes."""
        if not self.order.size(1):
            return self.base.linear(weight, bias)
        if can_run_kernels(weight) and self.copies_differ and self.shape[0] < 2**31:
            return self._linear_by_kernel(weight, bias)
        rows = self.base.linear(weight, bias)
        columns = weight.double().t()
        total = rows.new_zeros(len(self.pair_line), weight.size(0), dtype=torch.float64)
        rows, by_step = rows.clone(), self.step.argsort(stable=True)
        # The number of rows without a change, then of rows that end in each part of the steps.
        count = torch.bincount((self.step - 1) // _STEPS_AT_ONCE + 1, minlength=1).tolist()
        for number, chosen in enumerate(by_step.split(count)[1:]):
            steps = slice(number * _STEPS_AT_ONCE, (number + 1) * _STEPS_AT_ONCE)
            column = columns[self.order[:, steps] % self.num_features][self.pair_line]
            sums = self.changes(steps)[:, :, None] * column
            sums[:, 0] += total
            sums.cumsum_(1)  # (pairs, AT_A_TIME, H)
            total = sums[:, -1].clone()
            at = self.at[chosen]
            change = sums[self.pair[chosen], self.step[chosen] - 1 - steps.start]
            rows[at] = (rows[at].double() + change).to(rows.dtype)
        return rows

    def _linear_by_kernel(self, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The same by a kernel, which takes unedited rows from the table that they repeat, if all
        rows are found in it.
        """
        table, rows = None, None
        if isinstance(self.base, GatheredFeatures) and self.has_all_rows:
            mapped = self.base.linear_table(weight, bias)
            table, rows = (mapped, self.table_row), mapped.new_empty(self.shape[0], len(weight))
        if rows is None:
            rows = self.base.linear(weight, bias).contiguous()
        pairs = (self.pair_line, self.pair_block, self.pair_node, self.pair_donor)
        columns = weight.detach().double().t().contiguous()
        source = self.source.contiguous()
        add_changes(rows, self.row_of_steps, self.order, pairs, source, columns, table)
        return rows

    @cached_property
    def row_of_steps(self) -> Tensor:
        """The row of the batch that ends after 0, 1, 2 ... steps of each pair, -1 for none.

        Only if copies differ; of unchanged rows, one is there.  (pairs, 1 + steps) int32
        """
        num_pairs, width = len(self.pair_line), self.order.size(1) + 1
        row_of = self.at.new_full((num_pairs * width,), -1, dtype=torch.int32)
        row_of[self.pair * width + self.step] = self.at.int()
        return row_of.view(num_pairs, width)

    @cached_property
    def table_row(self) -> Tensor:
        """The row of the base's table that each pair's node has.  (pairs,) int32"""
        assert isinstance(self.base, GatheredFeatures)
        row = self.at.new_zeros(len(self.pair_line), dtype=torch.int32)
        row[self.pair] = self.base.index[self.at].int()
        return row

    def changes(self, steps: slice) -> Tensor:
        """By how much each step changes its column, in each pair; 0 outside the block. (pairs,
        steps)
        """
        order = self.order[:, steps]
        column = (order % self.num_features)[self.pair_line]
        block = (order // self.num_features)[self.pair_line]
        applies = (order[self.pair_line] >= 0) & (block == self.pair_block[:, None])
        donated = self.source[self.pair_donor[:, None], column].double()
        original = self.source[self.pair_node[:, None], column].double()
        return torch.where(applies, donated - original, 0)


def keep_changing_steps(order: Tensor, changes: Tensor, size: int) -> Tensor:
    """The first steps that change something, moved together.

    Args:
        order: Candidates in the order of their edits (L, K).
        changes: Whether a step changes anything (L, K) bool.
        size: The largest number of steps that are kept.

    Returns:
        The candidates of these steps (L, size), then -1.

    >>> order = torch.tensor([[4, 2, 7]])
    >>> keep_changing_steps(order, torch.tensor([[True, False, True]]), 3)
    tensor([[ 4,  7, -1]])
    """
    place = changes.cumsum(1) - 1
    is_kept = changes & (place < size)
    compacted = order.new_full((len(order), size), -1)
    compacted[is_kept.nonzero()[:, 0], place[is_kept]] = order[is_kept]
    return compacted
