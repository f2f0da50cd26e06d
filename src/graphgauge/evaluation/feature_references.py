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

from graphgauge.evaluation.baseline_prediction import BaselinePrediction
from graphgauge.evaluation.curve_measurement import CurveCases, curves_until_flip
from graphgauge.evaluation.settings import Settings
from graphgauge.metrics import effective_compactness
from graphgauge.models import BaseModel
from graphgauge.perturbation import CurveLines, FeatureEdits, References, draw_donors, random_orders
from graphgauge.subgraphs import ComputationGraphs

_CHOOSING_ORDERS = 20
#: (number of the target, reference, purpose) -> seed
_ReferenceSeedFunction = Callable[[int, Any, str], int]


def feature_cases(
    model: BaseModel,
    graphs: ComputationGraphs,
    references: References,
    baseline: BaselinePrediction,
    settings: Settings,
    seed_of: _ReferenceSeedFunction,
) -> tuple[CurveCases, CurveCases | None]:
    """The cases of the features; of several medoids of a class, only the easiest is a case.

    Args:
        model: The wrapped network.
        graphs: Computation graphs of T targets.
        references: The references of these targets.
        baseline: The first predictions of these targets.
        settings: The settings of the evaluation. They say how many medoids and draws there are.
        seed_of: Returns the seed for the number of a target, a reference and a purpose.

    Returns:
        The Q cases with the first draw of the map between neighbours, and the same cases with
        further draws: D - 1 times Q, one draw after the other, or None where D is 1.
    """
    side = _reference_cases(graphs, references, settings, baseline, seed_of)
    if settings.medoids > 1:
        references = take_references(
            references, _select_medoid(model, side, references, baseline, settings, seed_of)
        )
        side = _reference_cases(graphs, references, settings, baseline, seed_of)
    if settings.draws == 1:
        return side, None
    everyone = torch.arange(len(references), device=references.target.device)
    repeated = take_references(references, everyone.repeat(settings.draws - 1))
    purposes = [f"map {draw}" for draw in range(1, settings.draws) for _ in everyone.tolist()]
    return side, _reference_cases(graphs, repeated, settings, baseline, seed_of, purposes)


def _reference_cases(
    graphs: ComputationGraphs,
    references: References,
    settings: Settings,
    baseline: BaselinePrediction,
    seed_of: _ReferenceSeedFunction,
    purposes: list[str] | None = None,
) -> CurveCases:
    """All cases of these references; each map between neighbours is drawn for its purpose, "map" if
    none are given.
    """
    named = list(zip(references.target.tolist(), references.ids(), strict=True))
    purposes = purposes or ["map"] * len(named)
    lent = draw_donors(
        graphs,
        references,
        [seed_of(t, ref, purpose) for (t, ref), purpose in zip(named, purposes, strict=True)],
    )
    edits = FeatureEdits(graphs, references.target, lent.node, lent.ptr)
    way = (
        torch.zeros_like(references.kind)
        if baseline.label is not None
        else value_directions(references.kind.sign(), settings.direction)
    )
    return CurveCases(
        edits,
        references.target,
        [seed_of(t, ref, "orders") for t, ref in named],
        references.ids(),
        way,
    )


def value_directions(sign: Tensor, direction: str) -> Tensor:
    """Where values are to move: -1 down, +1 up, 0 either way; ``sign`` says where the reference's
    value lies.  (Q,) -> (Q,)

    >>> value_directions(torch.tensor([-1, 1]), "up")
    tensor([1, 1])
    >>> value_directions(torch.tensor([-1, 1]), "towards_reference")
    tensor([-1,  1])
    """
    fixed = {"any": 0, "down": -1, "up": 1}
    return torch.full_like(sign, fixed[direction]) if direction in fixed else sign


def _select_medoid(
    model: BaseModel,
    side: CurveCases,
    references: References,
    baseline: BaselinePrediction,
    settings: Settings,
    seed_of: _ReferenceSeedFunction,
) -> Tensor:
    """Which cases to use: for each target and class, the one that flips soonest on average.
    (chosen,)
    """
    seeds = [
        seed_of(t, ref, "choice")
        for t, ref in zip(side.target.tolist(), references.ids(), strict=True)
    ]
    order = random_orders(side.candidates, seeds, settings.cap, 0, _CHOOSING_ORDERS)
    case = torch.arange(len(order), device=order.device).repeat_interleave(_CHOOSING_ORDERS)
    _, flips = curves_until_flip(
        model, side, CurveLines(case, order.flatten(0, 1)), baseline, all_steps=False
    )
    ec = (
        effective_compactness(flips, side.candidates[case], settings.cap)
        .ec.view(-1, _CHOOSING_ORDERS)
        .double()
        .mean(1)
    )
    by_ease = ec.argsort(stable=True)
    key = references.target * (int(references.kind.max()) + 3) + references.kind + 1
    _, group = key.unique(return_inverse=True)
    by_group = by_ease[group[by_ease].argsort(stable=True)]
    first = torch.cat([by_group.new_ones(1, dtype=torch.bool), group[by_group].diff() > 0])
    return by_group[first].sort().values


def take_references(references: References, chosen: Tensor) -> References:
    """Some of the cases."""
    names = ("target", "reference", "kind", "rank", "graph")
    return replace(references, **{name: getattr(references, name)[chosen] for name in names})
