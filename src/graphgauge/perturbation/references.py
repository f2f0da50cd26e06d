"""References: the targets whose features replace those of a target, and which node replaces which.

Classification: for each class other than the one explained (the predicted class, unless another was
chosen), the reference is the medoid of the population that is predicted as that class. Regression:
with σ the standard deviation of the predictions over the population, there are two references: the
medoid of those predicted at least σ above the target, and of those predicted at least σ below.
Distances are squared Euclidean distances between `model.embed` vectors (see `medoids`). A class
that is never predicted, or a side without members, gives no reference.

A reference lends the features of its neighbours, so its computation graph must hold a node that is
not the reference itself. (In graph tasks, and for networks without messages, every member will do.)
The mean is taken over all members, and the reference is the nearest to it among those with a
neighbour; among equally near ones, the first of the population.

The paper asks for "one medoid for class" and leaves space, population and neighbours open. With the
raw features of bags of words, medoids are the emptiest documents, and most of these are isolated;
in the hidden space they are ordinary documents.

The map φ of a case (target, reference) says which node replaces which. The reference's own nodes
replace the target's own, in order. Each other node of the target's computation graph gets a random
neighbour of the reference, without repetition if there are enough of them. φ is drawn once from the
seed of the case and is the same for all explainers and curves.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from graphgauge.core import (
    BadModel,
    BadSetting,
    BadTarget,
    Target,
    canonical_target,
    make_generator,
)
from graphgauge.models import BaseModel, RegressionModel
from graphgauge.perturbation.medoids import label_k_medoids, medoids_above_thresholds
from graphgauge.subgraphs import (
    ComputationGraphs,
    Targets,
    check_same_source,
    message_routes,
    pointers_from_counts,
    ragged_ranges,
)


@dataclass(frozen=True)
class References:
    """Q cases: a target and one of its references. Sorted by target, then kind, then rank."""

    num_targets: int  #: T
    target: Tensor  #: (Q,) position of the target in the list of targets, rising
    #: (Q, 1) node or graph ids, (Q, 2) links; one column more where targets have a label
    reference: Tensor
    kind: Tensor  #: (Q,) class of the reference; regression: -1 below the target, +1 above
    rank: Tensor  #: (Q,) which medoid of its kind, from 0
    graphs: ComputationGraphs  #: of the different references
    graph: Tensor  #: (Q,) number of the reference in ``graphs``

    def __len__(self) -> int:
        return len(self.target)

    def __repr__(self) -> str:
        return (
            f"References({len(self)} cases of {self.num_targets} targets, "
            f"{len(self.graphs)} different references)"
        )

    def ids(self) -> list[Target]:
        """Each case's reference as users write it: a node id, a pair of nodes, or a graph
        number.
        """
        return [canonical_target(ids) for ids in self.reference.tolist()]

    def count(self) -> Tensor:
        """Number of references of each target; 0 if there is nothing that differs from it. (T,)"""
        return torch.bincount(self.target, minlength=self.num_targets)

    def lacks(self, kind: int) -> Tensor:
        """Which targets have no reference of this class, or on this side (-1 or +1). (T,) bool"""
        return torch.bincount(self.target[self.kind == kind], minlength=self.num_targets) == 0


@dataclass(frozen=True)
class Donors:
    """For each case, the node that lends its features to each node of the target's computation
    graph.

    Case q owns ``node[ptr[q]:ptr[q+1]]``, one entry for each of the n nodes within L hops of its
    target, in their order.
    """

    node: Tensor  #: (sum of n,) ids as in ``ComputationGraphs.node``: rows of ``source.x``
    ptr: Tensor  #: (Q + 1,)

    def __len__(self) -> int:
        return len(self.ptr) - 1


# --- finding references ---------------------------------------------------------------------------


def find_references(
    model: BaseModel, targets: Any, number: int = 1, label: Tensor | None = None
) -> References:
    """Find the references of each target: of each other class, or above and below it.

    With ``number`` above 1 the members are split by k-medoids, so that a class with several
    clusters has a reference in each. The population is predicted and embedded once for all targets.

    Args:
        model: The wrapped network.
        targets: T targets.
        number: Largest number of references of each class or side.
        label: The class that is explained for each target (T,); the predicted class by default. It
            gets no reference.
    """
    _check_references_per_class(number)
    parsed, population = model.parse_targets(targets), model.population_rows
    if parsed.label is not None and population.label is not None:
        population = population[torch.isin(population.label, parsed.label)]
    points = _check_embedding(model.embed(population))
    members = _PopulationMembers(population, points, _has_neighbour(model, population))
    if isinstance(model, RegressionModel):
        row, kind = _medoid_rows_by_value(model, parsed, members, number)
    else:
        explained = model.pred_discrete(parsed) if label is None else label
        row, kind = _medoid_rows_by_class(model, explained, parsed, members, number)
    return _collect_references(model, members, row, kind)


@dataclass(frozen=True)
class _PopulationMembers:
    """The members of the population, which may be references.

    Args:
        targets: The members, as targets.
        points: Embeddings (P, D).
        eligible: Whether a member may be a reference (P,) bool.
    """

    targets: Targets
    points: Tensor
    eligible: Tensor


def _medoid_rows_by_class(
    model: BaseModel, explained: Tensor, targets: Targets, members: _PopulationMembers, number: int
) -> tuple[Tensor, Tensor]:
    """Rows of the medoids of each class but the explained one (T,), and the classes.

    Shapes (T, C, number), (C,).

    If targets have labels, members count for their own label only: each label has two classes.
    """
    label = model.pred_discrete(members.targets)
    if members.targets.label is None or targets.label is None:
        kind = torch.arange(int(label.max()) + 1, device=label.device)
        row = label_k_medoids(members.points, label, len(kind), number, members.eligible)
        return row.where((kind != explained[:, None])[:, :, None], -1), kind
    names, place = members.targets.label.unique(return_inverse=True)
    row = label_k_medoids(
        members.points, 2 * place + label, 2 * len(names), number, members.eligible
    )
    row = row.view(len(names), 2, number)[torch.searchsorted(names, targets.label.contiguous())]
    kind = torch.arange(2, device=label.device)
    return row.where((kind != explained[:, None])[:, :, None], -1), kind


def _medoid_rows_by_value(
    model: RegressionModel, targets: Targets, members: _PopulationMembers, number: int
) -> tuple[Tensor, Tensor]:
    """Rows of the medoids at least one SD below and above each target. (T, 2, number), (2,)

    There are none if the predictions are constant.
    """
    kind = torch.tensor([-1, 1], device=members.points.device)
    if model.spread <= model.tolerance():
        return kind.new_full((len(targets), 2, number), -1), kind
    value = model.pred_continuous(members.targets).double()
    target_value = model.pred_continuous(targets).double()
    sides = [
        medoids_above_thresholds(
            members.points,
            sign * value,
            sign * target_value + model.spread,
            number,
            members.eligible,
        )
        for sign in kind.tolist()
    ]
    return torch.stack(sides, 1), kind


def _collect_references(
    model: BaseModel, members: _PopulationMembers, row: Tensor, kind: Tensor
) -> References:
    """Make a case of each row that is not -1. row (T, kinds, number), kind (kinds,)"""
    target, which, rank = (row >= 0).nonzero().unbind(1)
    reference = members.targets.rows[row[target, which, rank]]
    different, graph = reference.unique(dim=0, return_inverse=True)
    graphs = model.computation_graphs(members.targets.with_rows(different))
    return References(len(row), target, reference, kind[which], rank, graphs, graph)


def _has_neighbour(model: BaseModel, targets: Targets) -> Tensor:
    """Whether each target's computation graph holds a node that is not its own. (P,) bool

    A node needs a message from another node; a link needs a message to an end from a node that is
    not the other end. The lowest and the highest sender to each node are enough to tell. Graphs,
    and networks without messages, need no neighbour: all are True.
    """
    ids, size = targets.ids, model.source.num_nodes
    if model.level == "graph" or model.hops == 0:
        return torch.ones_like(ids[:, 0], dtype=torch.bool)
    tail, head, _ = message_routes(model.source.edge_index, model.trace.flow)
    tail, head = tail[tail != head], head[tail != head]
    low = ids.new_full((size,), size).scatter_reduce(0, head, tail, "amin")[ids]
    high = ids.new_full((size,), -1).scatter_reduce(0, head, tail, "amax")[ids]
    other_end = ids.flip(1)
    return ((high >= 0) & ((low != other_end) | (high != other_end))).any(1)


# --- who lends features to whom -------------------------------------------------------------------


def draw_donors(graphs: ComputationGraphs, references: References, seeds: list[int]) -> Donors:
    """Draw the map φ of every case from its own seed.

    Args:
        graphs: Computation graphs of the T targets.
        references: Q cases.
        seeds: One seed for each case.
    """
    _check_donor_inputs(graphs, references, seeds)
    lender, lender_ptr = _find_neighbours(references.graphs)
    case, place = ragged_ranges(
        pointers_from_counts(graphs.num_nodes)[references.target],
        graphs.num_nodes[references.target],
    )
    is_other = ~_target_node_mask(graphs)[place]
    wanted = torch.bincount(case[is_other], minlength=len(references))
    drawn = _draw_neighbours(wanted, lender_ptr.diff()[references.graph], references, seeds)
    node = torch.empty_like(place)
    node[is_other] = lender[lender_ptr[references.graph][case[is_other]] + drawn]
    ptr = pointers_from_counts(graphs.num_nodes[references.target])
    for end in range(graphs.target_row.size(1)):
        end_row = references.graphs.node_ptr[:-1] + references.graphs.target_row[:, end]
        end_node = references.graphs.node[end_row[references.graph]]
        node[ptr[:-1] + graphs.target_row[references.target, end]] = end_node
    return Donors(node, ptr)


def _draw_neighbours(
    wanted: Tensor, available: Tensor, references: References, seeds: list[int]
) -> Tensor:
    """Draw as many of each reference's neighbours as its case needs. (Q,), (Q,) -> (sum of wanted,)

    Returns positions among the neighbours, without repetition if there are enough of them. Drawn on
    the CPU.
    """
    positions = [torch.zeros(0, dtype=torch.int64)]
    for case, (count, size, seed) in enumerate(
        zip(wanted.tolist(), available.tolist(), seeds, strict=True)
    ):
        if count and not size:
            raise BadTarget(
                f"reference {references.ids()[case]} has no neighbour to lend features: choose one "
                "with an edge."
            )
        positions.append(_sample_indices(size, count, seed))
    return torch.cat(positions).to(wanted.device)


def _sample_indices(size: int, count: int, seed: int) -> Tensor:
    """Draw ``count`` numbers below ``size``, all different if possible. (count,)"""
    if size >= count:
        return torch.randperm(size, generator=make_generator(seed))[:count]
    return torch.randint(size, (count,), generator=make_generator(seed))


def _find_neighbours(graphs: ComputationGraphs) -> tuple[Tensor, Tensor]:
    """Nodes within L hops that are not the target's own, and where each graph's begin. (sum,), (T +
    1,)
    """
    owner, place = ragged_ranges(graphs.node_ptr[:-1], graphs.num_nodes)
    is_other = ~_target_node_mask(graphs)
    count = torch.bincount(owner[is_other], minlength=len(graphs))
    return graphs.node[place[is_other]], pointers_from_counts(count)


def _target_node_mask(graphs: ComputationGraphs) -> Tensor:
    """Whether each node within L hops is the target's own, graph by graph. (sum of num_nodes,)
    bool
    """
    is_own = torch.zeros(int(graphs.num_nodes.sum()), dtype=torch.bool, device=graphs.node.device)
    is_own[(pointers_from_counts(graphs.num_nodes)[:-1, None] + graphs.target_row).reshape(-1)] = (
        True
    )
    return is_own


# --- small checks ---------------------------------------------------------------------------------


def _check_references_per_class(number: Any) -> None:
    """Raise BadSetting unless ``number`` is a whole number of at least 1."""
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise BadSetting(
            f"references per class must be a whole number, 1 or more, but {number!r} was given."
        )


def _check_embedding(points: Tensor) -> Tensor:
    """Return the embeddings as rows, or raise BadModel if they are not finite. (P, D)"""
    points = points.reshape(len(points), -1)
    bad = (~points.isfinite()).any(1).nonzero()
    if len(bad):
        raise BadModel(
            f"the hidden space holds NaN or infinity for {len(bad)} of {len(points)} members of "
            "the population, so references cannot be found in it. Say which space to use: "
            "embedding=lambda net, g: ..."
        )
    return points


def _check_donor_inputs(
    graphs: ComputationGraphs, references: References, seeds: list[int]
) -> None:
    """Raise an error if references, graphs and seeds do not belong together."""
    check_same_source(graphs, references.graphs.source)
    if len(graphs) != references.num_targets:
        raise BadTarget(
            f"the references belong to {references.num_targets} targets, but there are "
            f"{len(graphs)} computation graphs: use the same list of targets for both."
        )
    if len(seeds) != len(references):
        raise BadSetting(
            f"donors need one seed for each of the {len(references)} cases, but {len(seeds)} were "
            "given."
        )
