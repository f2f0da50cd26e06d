"""The executor: runs work on many copies of computation graphs inside a memory budget.

    outputs = executor.map(work, graphs, index)        work: union of some copies -> (copies, ...) tensor

Copies are processed in their order in as few unions as the budget allows. The cost of one copy is
measured once per kind of work, by counting the bytes that it allocates. A union that still does not
fit is halved until it does. The result does not depend on where the list of copies is split.

Most networks take n times the bytes for n copies. Some take n * n times, such as those that build a
dense adjacency matrix. So before a large union is planned, smaller unions that fit even then are
measured, each larger than the one before.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from graphgauge.core import BadSetting, OutOfMemory, budget_bytes
from graphgauge.execution.aligned_layout import ROW_ALIGNMENT
from graphgauge.execution.disjoint_union import GraphBatch
from graphgauge.execution.edge_tracking import EdgeTracker
from graphgauge.execution.forward_signature import ForwardAdapter
from graphgauge.execution.fused_messages import (
    MessageFusion,
    NotFusable,
    can_be_fused,
    fuse_messages,
)
from graphgauge.execution.graph_copies import CopySizes, GraphCopies
from graphgauge.execution.memory_cost import (
    AllocationCounter,
    CopyCost,
    is_out_of_memory,
    release_memory,
)
from graphgauge.execution.message_masking import (
    EdgeFactors,
    MessageEdit,
    MessageScaling,
    UnmatchedEdges,
    edit_messages,
    mask_messages,
)
from graphgauge.execution.message_pruning import MessagePruner, prune_messages
from graphgauge.execution.norm_cache import share_normalisation, share_self_loops
from graphgauge.execution.output_rows import as_rows, label_column
from graphgauge.subgraphs import HALOS, ComputationGraphs

_T = TypeVar("_T")
BatchFunction = Callable[[GraphBatch], Tensor]

#: bytes allocated per union and thread beyond which a CPU hardly gets faster, or slower (measured:
#: docs/performance.md)
_FASTEST_BYTES_PER_THREAD = 256 * 2**20

#: a copy so many times the size of the one whose cost is known is measured itself
_REMEASURE_RATIO = 2

#: a union that takes so many times the bytes of its copies one by one shows that bytes grow faster
#: than copies
_SUPERLINEAR_RATIO = 1.1

#: how copies can share a call of the network
TOGETHER, WITH_BATCH, ALONE = "together", "together with batch=", "one by one"


@dataclass
class Executor:
    """Runs a network on unions of copies.

    Args:
        call: The network and how to call it.
        budget: Memory budget; by default a share of the free memory.
        joining: How copies share a call: together, together with batch=, or one by one.
        copies_input: Copy the input first, for networks that write into it.
        cuts: For each round of messages, whether messages that cannot arrive are left out.
        fuses: Whether messages that no hook needs are multiplied instead of being written out.
        tracks_edges: Whether a layer was found to run on some of the edges only.
        lazy: Whether features may stay unwritten if no gradient is needed.
        costs: Measured costs of a copy by kind of work.
        halvings: How often a union did not fit.
    """

    call: ForwardAdapter
    budget: int | str | None = None
    joining: str = TOGETHER
    copies_input: bool = False
    cuts: tuple[bool, ...] = ()
    fuses: bool = False
    tracks_edges: bool = False
    lazy: bool = False
    costs: dict[str, CopyCost] = field(default_factory=dict)
    halvings: int = 0

    def outputs(
        self,
        union: GraphBatch,
        edit: MessageEdit | None = None,
        every_message: bool = False,
        written: bool = False,
    ) -> Tensor:
        """Raw rows of the network for the copies' targets, differentiable.  (K, columns)

        Args:
            union: The copies.
            edit: A function that receives the messages that layers send, and may replace them.
            every_message: Also send messages that cannot arrive.
            written: Write all messages out, for rules that must find each operation of a layer.
        """
        fuses = self.fuses and not written and can_be_fused(self.call.net)
        try:
            return self.answers(union, edit, every_message, fuses)
        except NotFusable:
            self.fuses = False
            return self.outputs(union, edit, every_message, written)
        except UnmatchedEdges:
            if self.tracks_edges:
                raise
            self.tracks_edges = True
            return self.answers(union, edit, every_message, False)

    def answers(
        self, union: GraphBatch, edit: MessageEdit | None, every_message: bool, fuses: bool
    ) -> Tensor:
        """As `outputs`; if it ``fuses``, all layers must be sparse products."""
        unwritten = (
            self.lazy and edit is None and not self.copies_input and not torch.is_grad_enabled()
        )
        lazy = unwritten or union.features.has_gradient
        g = union.data(self.passes_batch(union), lazy)
        if self.copies_input:
            g = g.clone()
        reach = None if every_message else self.reach(union)
        net, shared = self.call.net, (union.normalised, union.looped)
        is_tracked = self.tracks_edges and (edit is not None or union.edge_mask is not None)
        tracker = EdgeTracker(g.edge_index) if is_tracked else None
        messages = self.messages(union, edit, reach, fuses and tracker is None, tracker)
        with (
            share_normalisation(net, shared[0]),
            share_self_loops(net, shared[1]),
            messages,
            tracker or nullcontext(),
        ):
            raw = self.call(g)
        rows, label = union.select_target_rows(as_rows(raw)), union.graphs.label
        return rows if label is None else label_column(rows, label[union.graph_index])

    @contextmanager
    def messages(
        self,
        union: GraphBatch,
        edit: MessageEdit | None,
        reach: MessagePruner | None,
        fuses: bool,
        tracker: EdgeTracker | None,
    ) -> Iterator[None]:
        """Apply the mask, the edit and the pruning to the messages of one pass."""
        net, edge_index, mask = self.call.net, union.edge_index, union.full_mask()
        scaling = None if mask is None else EdgeFactors(mask)
        if fuses and (edit is None or (isinstance(edit, MessageScaling) and mask is None)):
            with (
                prune_messages(net, reach),
                fuse_messages(net, MessageFusion(union, reach, scaling if edit is None else edit)),
            ):
                yield
            return
        seen = (
            nullcontext()
            if edit is None
            else edit_messages(net, edge_index, edit, union.edge_use, reach, tracker)
        )
        masked = mask_messages(
            net, edge_index, mask, memo=union.edge_use, reach=reach, tracker=tracker
        )
        with masked, seen, prune_messages(net, reach):
            yield

    def reach(self, union: GraphBatch) -> MessagePruner | None:
        """The pruning of messages that cannot arrive; None if more than degrees may depend on edges
        outside.
        """
        return (
            MessagePruner(union, self.cuts)
            if any(self.cuts) and union.graphs.widest_halo <= HALOS.index("in and out")
            else None
        )

    def passes_batch(self, union: GraphBatch) -> bool:
        """Whether the network is given ``batch``: always in graph tasks, otherwise only if it is
        needed.
        """
        has_to = self.joining == WITH_BATCH or self.call.needs_batch or "batch" in union.node_attrs
        return self.call.takes_batch and (has_to or union.target_rows.size(1) == 0)

    def map(
        self,
        work: BatchFunction,
        graphs: ComputationGraphs,
        of: Tensor | None = None,
        kind: str | None = None,
    ) -> Tensor:
        """Concatenated rows of ``work`` on copies of ``graphs[of]`` (default: each graph once).
        (K, ...)
        """
        return self.rows(work, GraphCopies.of_graphs(graphs, of), kind or _qualified_name(work))

    def rows(self, work: BatchFunction, copies: "GraphCopies", kind: str) -> Tensor:
        """Concatenated rows of ``work`` on ``copies``.  (K, ...)"""
        rows: list[Tensor] = []

        def checked(union: GraphBatch) -> Tensor:
            return _check_one_row_per_copy(work(union), len(union))

        self.run(checked, rows.append, copies, kind)
        return (
            torch.cat(rows)
            if rows
            else copies.graph_index.new_zeros(0, dtype=torch.get_default_dtype())
        )

    def for_each(
        self,
        work: Callable[[GraphBatch], _T],
        consume: Callable[[_T], None],
        graphs: ComputationGraphs,
        of: Tensor | None = None,
        kind: str | None = None,
        probe: Callable[[GraphBatch], Any] | None = None,
    ) -> None:
        """Run ``work`` on unions of copies of ``graphs[of]`` and give each result to ``consume``,
        in order.

        Args:
            work: A pure function of a union. It may run once more on some copies to measure them,
                and again on halves of a union that does not fit.
            consume: Receives each result once, in the order of the copies.
            graphs: The graphs to copy.
            of: Which graph each copy is of (K,); by default each graph once.
            kind: The name under which the cost of a copy is stored; by default the function's name.
                Needed if the same function can need more memory another time.
            probe: What the cost is measured on instead: one round of work that repeats itself.
        """
        self.run(
            work, consume, GraphCopies.of_graphs(graphs, of), kind or _qualified_name(work), probe
        )

    def run(
        self,
        work: Callable[[GraphBatch], _T],
        consume: Callable[[_T], None],
        copies: "GraphCopies",
        kind: str,
        probe: Callable[[GraphBatch], Any] | None = None,
    ) -> None:
        """Run ``work`` on unions of as many ``copies`` at a time as fit."""
        filled = self.plan(probe or work, copies, kind)
        start, most = 0, len(copies)
        while start < len(copies):
            end = min(_end_of_batch(filled, start), start + most)
            done = self.attempt(work, copies, start, end)
            if done is None:
                most = max(1, (end - start) // 2)
                continue
            consume(done[0])
            start = end

    def attempt(
        self,
        work: Callable[[GraphBatch], _T],
        copies: "GraphCopies",
        start: int,
        end: int,
        again: bool = True,
    ) -> tuple[_T] | None:
        """The result of the work on copies start..end-1, or None if their union does not fit into
        memory.

        A single copy is tried a second time, after memory of earlier work was released.
        """
        try:
            return (work(self.union(copies, start, end)),)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            if end - start == 1 and not again:
                graph = copies.graphs[int(copies.graph_index[start])]
                raise OutOfMemory(
                    f"one copy of the computation graph of target {graph.target} "
                    f"({len(graph.all_nodes)} nodes, "
                    f"{len(graph.all_edges)} edges) does not fit into memory. "
                    "Use fewer hops (num_hops=), a machine with more memory, or leave this target "
                    "out."
                ) from None
        copies.latest.clear()
        release_memory()
        if end - start == 1:
            return self.attempt(work, copies, start, end, again=False)
        self.halvings += 1
        return None

    def union(self, copies: "GraphCopies", start: int, end: int) -> GraphBatch:
        """The union of copies start..end-1, with filling only if copies share calls on a CPU."""
        return copies.union(start, end, self.align(copies.graph_index))

    def align(self, of: Tensor) -> int:
        """The alignment of each copy's rows."""
        return 1 if self.joining == ALONE or of.device.type != "cpu" else ROW_ALIGNMENT

    def plan(self, work: Callable[[GraphBatch], Any], copies: "GraphCopies", kind: str) -> Tensor:
        """Cumulative cost of the copies, in units of the budget.  (K,)"""
        of = copies.graph_index
        if self.joining == ALONE or len(of) < 2:
            return torch.arange(1, len(of) + 1, dtype=torch.float64, device=of.device)
        sizes = copies.sizes(self.align(of))
        cost, budget = self.cost(work, copies, sizes, kind), self.bytes_at_once(of.device)
        each = cost.upper_bounds(*(size.double() for size in sizes))
        cost = self.costs[kind] = self.joint_cost(work, copies, cost, each, budget)
        return (each / cost.allowance(budget)).clamp(max=1.0).cumsum(0)

    def bytes_at_once(self, device: torch.device) -> int:
        """The budget; on a CPU, unless a budget was asked for, at most what is fastest there."""
        budget = budget_bytes(self.budget, device)
        if self.budget is None and device.type == "cpu":
            return min(budget, _FASTEST_BYTES_PER_THREAD * torch.get_num_threads())
        return budget

    def cost(
        self, work: Callable[[GraphBatch], Any], copies: "GraphCopies", sizes: CopySizes, kind: str
    ) -> CopyCost:
        """The cost of a copy for this kind of work, measured on the largest of these copies.

        It is measured again for a much larger copy. Measuring a small copy would count the constant
        cost of every call with each of its nodes.
        """
        together = torch.stack(sizes).sum(0)
        largest = int(together.argmax())
        known = self.costs.get(kind)
        if known is None or int(together[largest]) > _REMEASURE_RATIO * known.size:
            with AllocationCounter() as counted:
                self.attempt(work, copies, largest, largest + 1)
            found = CopyCost(
                counted.bytes,
                *copies.single_sizes(self.union(copies, largest, largest + 1), largest),
            )
            joined = max(
                (cost.joined * cost.size for cost in self.costs.values() if cost.joined > 1),
                default=0.0,
            )
            self.costs[kind] = replace(found, joined=max(1.0, joined / max(found.size, 1)))
        return self.costs[kind]

    def joint_cost(
        self,
        work: Callable[[GraphBatch], Any],
        copies: "GraphCopies",
        cost: CopyCost,
        each: Tensor,
        budget: int,
    ) -> CopyCost:
        """``cost``, and whether unions take more than their copies, which cost ``each`` (K,) bytes.

        If a union of n copies takes no more than n copies, and the budget is B copies, then a union
        of sqrt(n * B) copies fits even if bytes grow with the square from there on. That union is
        measured next, until it holds half of what is planned. So no union allocates more than 4
        budgets, one after another, before this is noticed. The result for one kind of work is also
        used for the others.
        """
        upto = each.cumsum(0)
        planned = min(budget, float(upto[-1]))
        while not cost.square and 2 * cost.total * cost.max_copies_worst_case(budget) < planned:
            end = _end_of_batch(upto / (cost.total * cost.max_copies_worst_case(budget)), 0)
            size = float(upto[end - 1]) / cost.total
            with AllocationCounter() as counted:
                is_done = size > cost.joined and self.attempt(work, copies, 0, end) is not None
            if not is_done:
                break
            grows = counted.bytes > _SUPERLINEAR_RATIO * size * cost.total
            cost = (
                replace(cost, square=counted.bytes / size**2)
                if grows
                else replace(cost, joined=size)
            )
        return cost


def _check_one_row_per_copy(rows: Any, count: int) -> Tensor:
    """Raise BadSetting unless work gave one row per copy."""
    if not isinstance(rows, Tensor) or rows.dim() == 0 or len(rows) != count:
        found = tuple(rows.shape) if isinstance(rows, Tensor) else type(rows).__name__
        raise BadSetting(
            f"work must return a tensor with one row for each of {count} copies, but returned "
            f"{found}."
        )
    return rows


def _qualified_name(work: Callable[..., Any]) -> str:
    """Module and qualified name of a function or of the type of an object."""
    return f"{work.__module__}.{getattr(work, '__qualname__', type(work).__qualname__)}"


def _end_of_batch(filled: Tensor, start: int) -> int:
    """One past the last copy that fits into a budget together with copy ``start``."""
    before = float(filled[start - 1]) if start else 0.0
    fitting = int(
        torch.searchsorted(
            filled, torch.tensor(before + 1.0 + 1e-9, dtype=filled.dtype, device=filled.device)
        )
    )
    return max(fitting, start + 1)
