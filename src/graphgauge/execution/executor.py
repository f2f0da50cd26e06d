"""The executor: runs work on many copies of computation graphs inside a memory budget.

    outputs = executor.map(work, graphs, index)

with work: union of some copies -> (copies, ...) tensor.

Copies are processed in their order in as few unions as the budget allows. The cost of one copy is
measured once per kind of work, by counting the bytes that it allocates. A union that still does not
fit is halved until it does. The result does not depend on where the list of copies is split.

Most networks take n times the bytes for n copies. Some take n * n times, such as those that build a
dense adjacency matrix. So before a large union is planned, smaller unions that fit even then are
measured, each larger than the one before.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

import torch
from torch import Tensor

from graphgauge.core import BadSetting, OutOfMemory, budget_bytes
from graphgauge.execution.aligned_layout import ROW_ALIGNMENT
from graphgauge.execution.graph_batch import GraphBatch
from graphgauge.execution.graph_copies import CopySizes, GraphCopies
from graphgauge.execution.memory_cost import (
    AllocationCounter,
    CopyCost,
    is_out_of_memory,
    release_memory,
)
from graphgauge.execution.network_pass import ALONE, NetworkPass
from graphgauge.subgraphs import ComputationGraphs

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


@dataclass
class Executor(NetworkPass):
    """Runs a network on unions of copies; `NetworkPass` explains the options of each call.

    Args:
        budget: Memory budget in bytes or as text such as "2GiB"; by default a share of the free
            memory.
        costs: Measured costs of a copy by kind of work.
        halvings: How often a union did not fit.
    """

    budget: int | str | None = None
    costs: dict[str, CopyCost] = field(default_factory=dict)
    halvings: int = 0

    def map(
        self,
        work: BatchFunction,
        graphs: ComputationGraphs,
        of: Tensor | None = None,
        kind: str | None = None,
    ) -> Tensor:
        """Concatenated rows of ``work`` on copies of ``graphs[of]``.  (K, ...)

        Args:
            work: A pure function that gives one row for each copy of a union.
            graphs: The graphs to copy.
            of: Which graph each copy is of (K,); by default each graph once.
            kind: The name under which the cost of a copy is stored; by default the function's name.
        """
        return self.rows(work, GraphCopies.of_graphs(graphs, of), kind or _qualified_name(work))

    def rows(self, work: BatchFunction, copies: GraphCopies, kind: str) -> Tensor:
        """Concatenated rows of ``work`` on ``copies``.  (K, ...)

        Args:
            work: A pure function that gives one row for each copy of a union.
            copies: Copies of any kind, in the order of the rows.
            kind: The name under which the cost of a copy is stored.
        """
        rows: list[Tensor] = []

        def checked(union: GraphBatch) -> Tensor:
            return _check_one_row_per_copy(work(union), len(union))

        self._run(checked, rows.append, copies, kind)
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
        probe: Callable[[GraphBatch], object] | None = None,
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
        self._run(
            work, consume, GraphCopies.of_graphs(graphs, of), kind or _qualified_name(work), probe
        )

    def _run(
        self,
        work: Callable[[GraphBatch], _T],
        consume: Callable[[_T], None],
        copies: GraphCopies,
        kind: str,
        probe: Callable[[GraphBatch], object] | None = None,
    ) -> None:
        """Run ``work`` on unions of as many copies as fit at a time.

        `for_each` documents the arguments.
        """
        filled = self._plan(probe or work, copies, kind)
        start, most = 0, len(copies)
        while start < len(copies):
            end = min(_end_of_batch(filled, start), start + most)
            done = self._attempt(work, copies, start, end)
            if done is None:
                most = max(1, (end - start) // 2)
                continue
            consume(done[0])
            start = end

    def _attempt(
        self,
        work: Callable[[GraphBatch], _T],
        copies: GraphCopies,
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
            return self._attempt(work, copies, start, end, again=False)
        self.halvings += 1
        return None

    def union(self, copies: GraphCopies, start: int, end: int) -> GraphBatch:
        """The union of some copies, with filling only if copies share calls on a CPU.

        Args:
            copies: All copies.
            start: Number of the first copy of the union.
            end: One past the number of its last copy.
        """
        return copies.union(start, end, self.align(copies.graph_index))

    def align(self, of: Tensor) -> int:
        """The alignment of each copy's rows."""
        return 1 if self.joining == ALONE or of.device.type != "cpu" else ROW_ALIGNMENT

    def _plan(self, work: Callable[[GraphBatch], object], copies: GraphCopies, kind: str) -> Tensor:
        """Cumulative cost of the copies, in units of the budget.  (K,)"""
        of = copies.graph_index
        if self.joining == ALONE or len(of) < 2:
            return torch.arange(1, len(of) + 1, dtype=torch.float64, device=of.device)
        sizes = copies.sizes(self.align(of))
        cost, budget = self._copy_cost(work, copies, sizes, kind), self._bytes_at_once(of.device)
        each = cost.upper_bounds(*(size.double() for size in sizes))
        cost = self.costs[kind] = self._joint_cost(work, copies, cost, each, budget)
        return (each / cost.allowance(budget)).clamp(max=1.0).cumsum(0)

    def _bytes_at_once(self, device: torch.device) -> int:
        """The budget; on a CPU, unless a budget was asked for, at most what is fastest there."""
        budget = budget_bytes(self.budget, device)
        if self.budget is None and device.type == "cpu":
            return min(budget, _FASTEST_BYTES_PER_THREAD * torch.get_num_threads())
        return budget

    def _copy_cost(
        self, work: Callable[[GraphBatch], object], copies: GraphCopies, sizes: CopySizes, kind: str
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
                self._attempt(work, copies, largest, largest + 1)
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

    def _joint_cost(
        self,
        work: Callable[[GraphBatch], object],
        copies: GraphCopies,
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
                is_done = size > cost.joined and self._attempt(work, copies, 0, end) is not None
            if not is_done:
                break
            grows = counted.bytes > _SUPERLINEAR_RATIO * size * cost.total
            cost = (
                replace(cost, square=counted.bytes / size**2)
                if grows
                else replace(cost, joined=size)
            )
        return cost


def _check_one_row_per_copy(rows: object, count: int) -> Tensor:
    """Raise BadSetting unless work gave one row per copy."""
    if not isinstance(rows, Tensor) or rows.dim() == 0 or len(rows) != count:
        found = tuple(rows.shape) if isinstance(rows, Tensor) else type(rows).__name__
        raise BadSetting(
            f"work must return a tensor with one row for each of {count} copies, but returned "
            f"{found}."
        )
    return rows


def _qualified_name(work: Callable[..., object]) -> str:
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
