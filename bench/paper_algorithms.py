"""The paper's algorithms, one step at a time and word for word, on PyG's own tools: what
`paper_loop` runs.

A target's computation graph is cut by `k_hop_subgraph` with one hop more than the network has
layers, so that border degrees, and with them predictions, are those of the whole graph. Removing an
edge multiplies its messages by 0 (`set_masks`); substituting a feature writes x. Where the paper
leaves a choice, it is the one of graphgauge's paper preset: E_rel are edges whose head is within L
- 1 hops, scores sort descending with random ties, a class changes and a curve lies below another by
more than 1e-6, one map φ serves a (target, reference). Other random numbers come from torch's
global stream, as PyG's explainers draw them.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import fmean

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks
from torch_geometric.utils import degree, k_hop_subgraph

from graphgauge.core import UndefinedScore, derive_seed, make_generator
from graphgauge.models import find_last_hidden

HOPS, CAP, LEAST, MOST, TAU, EPSILON, TOLERANCE = 2, 100, 30, 100, 0.5, 0.05, 1e-6


@dataclass(frozen=True)
class Local:
    """The computation graph of a target, with one hop more: x (n, F), edge_index (2, E)."""

    x: Tensor
    edge_index: Tensor
    row: int  #: of the target
    relevant: Tensor  #: (E_rel,) columns of edge_index
    neighbours: Tensor  #: rows of the nodes within L hops, without the target
    ids: Tensor  #: (n,) in the whole graph


@dataclass(frozen=True)
class Substitutes:
    """What one reference puts into a target's graph: ``own`` (F,) for the target, ``others``
    (n_neighbours, F) through φ.
    """

    own: Tensor
    others: Tensor


def computation_graph(data: Data, target: int) -> Local:
    """Cut by PyG, one hop more than messages travel."""

    def within(hops: int) -> Tensor:
        return k_hop_subgraph(target, hops, data.edge_index, num_nodes=data.num_nodes)[0]

    ids, edge_index, row, _ = k_hop_subgraph(
        target, HOPS + 1, data.edge_index, relabel_nodes=True, num_nodes=data.num_nodes
    )
    heads_near = torch.isin(ids[edge_index[1]], within(HOPS - 1)) & (edge_index[0] != edge_index[1])
    is_neighbour = torch.isin(ids, within(HOPS)) & (ids != target)
    if not bool(heads_near.any()):
        raise UndefinedScore(
            f"no message reaches target {target}, so there is no edge to remove. Choose a target "
            "with a neighbour."
        )
    return Local(
        data.x[ids],
        edge_index,
        int(row),
        heads_near.nonzero()[:, 0],
        is_neighbour.nonzero()[:, 0],
        ids,
    )


def class_medoids(net: nn.Module, data: Data) -> dict[int, int]:
    """For each predicted class, of its nodes that receive messages, the one nearest to their mean
    in the last hidden space.
    """
    with torch.no_grad():
        hidden = find_last_hidden(net, lambda: net(data.x, data.edge_index))
        predicted = net(data.x, data.edge_index).argmax(1)
    received = degree(data.edge_index[1], data.num_nodes) > 0
    members = {
        label: ((predicted == label) & received).nonzero()[:, 0]
        for label in predicted.unique().tolist()
    }
    return {
        label: int(nodes[(hidden[nodes] - hidden[nodes].mean(0)).square().sum(1).argmin()])
        for label, nodes in members.items()
        if len(nodes)
    }


def substitutes(data: Data, local: Local, reference: int) -> Substitutes:
    """Through a random map φ of neighbours (CreateNodeMapping), one to one if there are enough; the
    same for all explainers.
    """
    from_there = computation_graph(data, reference)
    others = from_there.ids[from_there.neighbours]
    needed, there = len(local.neighbours), len(others)
    random = make_generator(derive_seed(0, "map", int(local.ids[local.row]), reference))
    phi = (
        torch.randperm(there, generator=random)[:needed]
        if there >= needed
        else torch.randint(there, (needed,), generator=random)
    )
    return Substitutes(data.x[reference], data.x[others[phi.to(others.device)]])


def early_stop(values: Sequence[float]) -> bool:
    """Whether a list of trials is long enough (an SE of 0 stops)."""
    count = len(values)
    if count < LEAST or count >= MOST:
        return count >= MOST
    mean = math.fsum(values) / count
    error = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / count) / math.sqrt(count)
    return abs(mean - TAU) > 1.645 * error or 1.96 * error < EPSILON


def distance(first: Tensor, second: Tensor) -> float:
    """Half the distance of two vectors brought to length 1; zeros stay zeros."""
    return float(
        (nn.functional.normalize(first, dim=0) - nn.functional.normalize(second, dim=0)).norm() / 2
    )


def stability_pair_edge(first: Tensor, second: Tensor, local: Local) -> float:
    """StabilityPairEdge.  (E,), (E,)"""
    return 1 - distance(first[local.relevant], second[local.relevant])


def stability_pair_feature(first: Tensor, second: Tensor, local: Local) -> float:
    """StabilityPairFeature.  (n, F), (n, F)"""
    own = distance(first[local.row], second[local.row])
    if not len(local.neighbours):
        return 1 - own
    others = distance(first[local.neighbours].flatten(), second[local.neighbours].flatten())
    return 1 - (own + others) / 2


Explain = Callable[[], tuple[Tensor, Tensor]]


def stability(explain: Explain, local: Local, most: int = MOST) -> tuple[list[float], list[float]]:
    """Algorithm 1: likeness of features and of edges in each pair of calls."""
    features: list[float] = []
    edges: list[float] = []
    while not (early_stop(features) and early_stop(edges)) and len(edges) < most:
        (feature_1, edge_1), (feature_2, edge_2) = explain(), explain()
        features.append(stability_pair_feature(feature_1, feature_2, local))
        edges.append(stability_pair_edge(edge_1, edge_2, local))
    return features, edges


def descending(score: Tensor) -> list[int]:
    """Places by score, highest first, equal ones at random."""
    shuffled = torch.randperm(len(score)).to(score.device)
    return shuffled[score[shuffled].argsort(descending=True, stable=True)].tolist()


def priorities(feature_score: Tensor, local: Local) -> Tensor:
    """The target's scores, then the largest of its neighbours'.  (n, F) -> (2F,)"""
    others = feature_score[local.neighbours]
    return torch.cat(
        [
            feature_score[local.row],
            others.amax(0) if len(others) else torch.zeros_like(feature_score[local.row]),
        ]
    )


def prediction(net: nn.Module, local: Local, x: Tensor) -> list[float]:
    """Probabilities of the target.  (C,)"""
    with torch.no_grad():
        return net(x, local.edge_index)[local.row].tolist()


def removals(net: nn.Module, local: Local, order: Sequence[int]) -> Iterator[list[float]]:
    """Probabilities after each removal (RemoveEdge); ``order`` are columns of edge_index."""
    kept = local.x.new_ones(local.edge_index.size(1))
    for edge in order:
        kept[edge] = 0
        set_masks(net, kept, local.edge_index, apply_sigmoid=False)
        prob = prediction(net, local, local.x)
        clear_masks(net)
        yield prob


def substitutions(
    net: nn.Module, local: Local, order: Sequence[int], given: Substitutes
) -> Iterator[list[float]]:
    """Probabilities after each substitution (SetTargetFeat, SetNeighsFeats); ``order`` are places
    in the priority vector.
    """
    x, num_features = local.x.clone(), local.x.size(1)
    for place in order:
        if place < num_features:
            x[local.row, place] = given.own[place]
        else:
            x[local.neighbours, place - num_features] = given.others[:, place - num_features]
        yield prediction(net, local, x)


def compactness(points: Iterator[list[float]], label: int, bound: int) -> int:
    """Algorithms 4 and 5: edits until another class leads, at most ``bound``."""
    for count, prob in enumerate(islice(points, bound), start=1):
        if (
            max(value for other, value in enumerate(prob) if other != label) - prob[label]
            > TOLERANCE
        ):
            return count
    return bound


Curve = Callable[[Sequence[int]], Iterator[list[float]]]


def pertinence(curve: Curve, order: list[int], length: int, label: int) -> list[float]:
    """Algorithms 6 and 7 for one reference: share of points below each random curve."""

    def deletion(places: Sequence[int]) -> list[float]:
        return [prob[label] for prob in islice(curve(places), length)]

    own, shares = deletion(order), list[float]()
    while not early_stop(shares):
        random = deletion(shuffled(order, length))
        shares.append(
            fmean(mine < other - TOLERANCE for mine, other in zip(own, random, strict=True))
        )
    return shares


def shuffled(order: list[int], length: int) -> list[int]:
    """RandPerm, as far as it is needed."""
    return [order[place] for place in torch.randperm(len(order))[:length].tolist()]
