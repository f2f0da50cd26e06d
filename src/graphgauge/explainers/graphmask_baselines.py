"""The baselines of GraphMask: for each round of messages, the vector that replaces closed messages.

They are learned once for a network, on up to 32 targets of its population with half of all gates
closed at random, so that no target's own prediction can hide in them (see `graphmask`).
"""

from collections.abc import Callable

import torch
from torch import Tensor

from graphgauge.core import derive_seed, random_streams, uniform_at
from graphgauge.execution import GraphBatch
from graphgauge.explainers.graphmask_divergence import prediction_divergence
from graphgauge.explainers.mask_optimisation import original_predictions, relevant_edge_entries
from graphgauge.explainers.message_gates import gate_messages_by_copy, record_message_rounds
from graphgauge.models import BaseModel, evenly_spaced_rows
from graphgauge.subgraphs import ComputationGraphs

_BASELINE_TARGETS, _BASELINE_STEPS, _BASELINE_LR = 32, 50, 0.02


def learn_baselines(model: BaseModel) -> list[Tensor]:
    """Learn the vector that best replaces any message, for each round of messages. (width,) each

    Over up to 32 targets of the population, with half of all gates closed at random, Adam minimises
    the mean divergence from the predictions with all gates open.
    """
    targets = evenly_spaced_rows(model.population_rows, _BASELINE_TARGETS)
    graphs = model.computation_graphs(targets, lean=True)
    first = original_predictions(model, graphs)
    seeds = torch.tensor(
        [derive_seed(0, "graphmask baselines", number) for number in range(len(graphs))],
        device=graphs.edge.device,
    )
    stream = random_streams(seeds[graphs.edge_owner], graphs.edge_position)
    baselines = [graphs.source.x.new_zeros(width) for width in _message_widths(model, graphs)]
    if not baselines:
        return []
    adam = torch.optim.Adam(baselines, lr=_BASELINE_LR)
    for step in range(_BASELINE_STEPS):
        drawn = [
            uniform_at(stream, step * len(baselines) + number) for number in range(len(baselines))
        ]
        is_open = (torch.stack(drawn) < 0.5).to(first)
        gradients: list[list[Tensor]] = []
        model.for_each(
            _baseline_gradients(model, first, baselines, is_open),
            gradients.append,
            graphs,
            kind="graphmask baselines",
        )
        for baseline, rows in zip(baselines, zip(*gradients, strict=True), strict=True):
            baseline.grad = torch.cat(rows).mean(0)
        adam.step()
    return baselines


def _message_widths(model: BaseModel, graphs: ComputationGraphs) -> list[int]:
    """Number of values in a message, for each round."""

    def work(union: GraphBatch) -> list[int]:
        rounds = record_message_rounds(model, union, relevant_edge_entries(union, align=1))
        return [messages.width for messages in rounds]

    widths: list[list[int]] = []
    only_first = torch.zeros(1, dtype=torch.int64, device=graphs.node.device)
    model.for_each(work, widths.append, graphs, of=only_first)
    return widths[0]


def _baseline_gradients(
    model: BaseModel, first: Tensor, baselines: list[Tensor], is_open: Tensor
) -> Callable[[GraphBatch], list[Tensor]]:
    """Return a function that gives the gradients of each copy's divergence for the baselines.

    Gates are open where ``is_open`` is 1. (K, width) for each round
    """

    def work(union: GraphBatch) -> list[Tensor]:
        edges = relevant_edge_entries(union, align=1)
        rounds = record_message_rounds(model, union, edges)
        with torch.enable_grad():
            leaves = [
                baseline.expand(len(union), -1).clone().requires_grad_(True)
                for baseline in baselines
            ]
            gates = dict(enumerate(is_open[:, union.edge_row[edges.at]]))
            edit = gate_messages_by_copy(rounds, gates, leaves, edges.copy[edges.slot])
            loss = prediction_divergence(
                model, first[union.graph_index], model.executor.outputs(union, edit)
            ).sum()
            return list(torch.autograd.grad(loss, leaves, materialize_grads=True))

    return work
