"""The feature side: which references a target's features are substituted from.

With several medoids per class, the *easiest* is used: the one whose mean EC over 20 random orders
is lowest. These orders are drawn apart from those that score, so that the choice favours no
explanation and a random ranking still scores 1/2.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from graphgauge.evaluation.settings import Settings
from graphgauge.evaluation.sides import Reading, Side, searched
from graphgauge.metrics import effective_compactness
from graphgauge.models import BaseModel, ComputationGraphs
from graphgauge.perturbation import FeatureEdits, Lines, References, donors, random_orders

CHOOSING_ORDERS = 20
SeedOf = Callable[[int, Any, str], int]  #: (number of the target, reference, purpose) -> seed


def feature_side(
    model: BaseModel,
    graphs: ComputationGraphs,
    references: References,
    reading: Reading,
    settings: Settings,
    seed_of: SeedOf,
) -> tuple[Side, Side | None]:
    """The cases of the features of ``graphs``; of several medoids of a class, the easiest. And, for
    several draws, all cases again.

    The second side has them once for each further draw of the map between neighbours.
    """
    side = side_of(graphs, references, settings, reading, seed_of)
    if settings.medoids > 1:
        references = taken(references, easiest(model, side, references, reading, settings, seed_of))
        side = side_of(graphs, references, settings, reading, seed_of)
    if settings.draws == 1:
        return side, None
    everyone = torch.arange(len(references), device=references.target.device)
    repeated = taken(references, everyone.repeat(settings.draws - 1))
    purposes = [f"map {draw}" for draw in range(1, settings.draws) for _ in everyone.tolist()]
    return side, side_of(graphs, repeated, settings, reading, seed_of, purposes)


def side_of(
    graphs: ComputationGraphs,
    references: References,
    settings: Settings,
    reading: Reading,
    seed_of: SeedOf,
    purposes: list[str] | None = None,
) -> Side:
    """All cases of these references; each map between neighbours is drawn for its purpose, "map" if
    none are given.
    """
    named = list(zip(references.target.tolist(), references.ids(), strict=True))
    purposes = purposes or ["map"] * len(named)
    lent = donors(
        graphs,
        references,
        [seed_of(t, ref, purpose) for (t, ref), purpose in zip(named, purposes, strict=True)],
    )
    edits = FeatureEdits(graphs, references.target, lent.node, lent.ptr)
    way = (
        torch.zeros_like(references.kind)
        if reading.label is not None
        else ways(references.kind.sign(), settings.direction)
    )
    return Side(
        edits,
        references.target,
        [seed_of(t, ref, "orders") for t, ref in named],
        references.ids(),
        way,
    )


def ways(sign: Tensor, direction: str) -> Tensor:
    """Where values are to move: -1 down, +1 up, 0 either way; ``sign`` says where the reference's
    value lies.  (Q,) -> (Q,)

    >>> ways(torch.tensor([-1, 1]), "up"), ways(torch.tensor([-1, 1]), "towards_reference")
    (tensor([1, 1]), tensor([-1,  1]))
    """
    fixed = {"any": 0, "down": -1, "up": 1}
    return torch.full_like(sign, fixed[direction]) if direction in fixed else sign


def easiest(
    model: BaseModel,
    side: Side,
    references: References,
    reading: Reading,
    settings: Settings,
    seed_of: SeedOf,
) -> Tensor:
    """Which cases to use: for each target and class, the one that flips soonest on average.
    (chosen,)
    """
    seeds = [
        seed_of(t, ref, "choice")
        for t, ref in zip(side.target.tolist(), references.ids(), strict=True)
    ]
    order = random_orders(side.candidates, seeds, settings.cap, 0, CHOOSING_ORDERS)
    case = torch.arange(len(order), device=order.device).repeat_interleave(CHOOSING_ORDERS)
    _, flips = searched(model, side, Lines(case, order.flatten(0, 1)), reading, at_once=False)
    ec = (
        effective_compactness(flips, side.candidates[case], settings.cap)
        .ec.view(-1, CHOOSING_ORDERS)
        .double()
        .mean(1)
    )
    by_ease = ec.argsort(stable=True)
    key = references.target * (int(references.kind.max()) + 3) + references.kind + 1
    _, group = key.unique(return_inverse=True)
    by_group = by_ease[group[by_ease].argsort(stable=True)]
    first = torch.cat([by_group.new_ones(1, dtype=torch.bool), group[by_group].diff() > 0])
    return by_group[first].sort().values


def taken(references: References, chosen: Tensor) -> References:
    """Some of the cases."""
    names = ("target", "reference", "kind", "rank", "graph")
    return replace(references, **{name: getattr(references, name)[chosen] for name in names})
