"""In which order edges are taken away: by their scores, or at random.

An order is kept as the *step* at which each edge goes: 1 for the first, and so on; 0 for edges that never go (those that are not
relevant to their target). Steps are packed like the edges of a batch of computation graphs, so that many targets and many orders
are one tensor (R, number of edges).
"""

import torch
from torch import Tensor

from graphgauge.core.seeds import derive_seed, generator
from graphgauge.models import ComputationGraphs


def steps_by_score(score: Tensor, graphs: ComputationGraphs, seeds: list[int]) -> Tensor:
    """Highest score first, within each graph; equal scores in an order drawn from the graph's own seed.  (edges,) -> (edges,)"""
    relevant, owner = relevant_edges(graphs)
    drawn = [uniform(derive_seed(seed, "ties"), count) for count, seed in counts(graphs, seeds)]
    by_chance = joined(drawn).to(score.device).argsort()
    by_score = by_chance[score[relevant][by_chance].argsort(descending=True, stable=True)]
    order = by_score[owner[by_score].argsort(stable=True)]
    return placed(order, graphs, relevant, owner)


def random_steps(graphs: ComputationGraphs, number: int, seeds: list[int]) -> Tensor:
    """``number`` random orders of each graph's edges, drawn from its own seed; they serve every explainer.  (number, edges)"""
    relevant, _ = relevant_edges(graphs)
    drawn = [uniform(derive_seed(seed, "orders"), number, count).argsort(1).argsort(1) + 1 for count, seed in counts(graphs, seeds)]
    steps = torch.zeros(number, len(graphs.edge), dtype=torch.int64, device=graphs.edge.device)
    if drawn:
        steps[:, relevant] = torch.cat(drawn, 1).to(steps.device)
    return steps


def relevant_edges(graphs: ComputationGraphs) -> tuple[Tensor, Tensor]:
    """Places of the relevant edges in the batch, and the graph of each.  (M,), (M,)"""
    owner = torch.repeat_interleave(torch.arange(len(graphs), device=graphs.edge.device), graphs.edge_sizes)
    place = torch.arange(len(graphs.edge), device=graphs.edge.device)
    is_relevant = place - graphs.edge_ptr[owner] < graphs.num_edges[owner]
    return place[is_relevant], owner[is_relevant]


def counts(graphs: ComputationGraphs, seeds: list[int]) -> list[tuple[int, int]]:
    """Number of relevant edges and seed of each graph."""
    return list(zip(graphs.num_edges.tolist(), seeds, strict=True))


def uniform(seed: int, *shape: int) -> Tensor:
    """U(0, 1), on the CPU and in double precision."""
    return torch.rand(shape, generator=generator(seed), dtype=torch.float64)


def joined(drawn: list[Tensor]) -> Tensor:
    """All draws one after another."""
    return torch.cat(drawn) if drawn else torch.zeros(0, dtype=torch.float64)


def placed(order: Tensor, graphs: ComputationGraphs, relevant: Tensor, owner: Tensor) -> Tensor:
    """Steps from 1 for edges listed graph by graph in their order.  (M,) -> (edges,)"""
    start = graphs.num_edges.cumsum(0) - graphs.num_edges
    step = torch.arange(1, len(order) + 1, device=order.device) - start[owner[order]]
    steps = torch.zeros(len(graphs.edge), dtype=torch.int64, device=graphs.edge.device)
    steps[relevant[order]] = step
    return steps
