"""Which targets to evaluate on: spread over predicted classes and over how sure the model is.

Classification: each predicted class in turn, and within it thirds by the probability of that class.
Regression: tenths by value. Each stratum gives the same number of targets as long as it has any;
within it they are drawn at random. Strata are numbered so that also the first few reach far:
neighbouring numbers are of different classes and thirds, or of tenths far apart.
"""

from typing import Any

import torch
from torch import Tensor

from graphgauge.core import BadSetting, Target, canonical_target, derive_seed, make_generator
from graphgauge.models import BaseModel

_THIRDS, _TENTHS = 3, 10


def sample_targets(model: BaseModel, count: int, among: Any = None, seed: int = 0) -> list[Target]:
    """Draw targets that are spread over the strata of predictions.

    Args:
        model: The wrapped network, whose predictions form the strata.
        count: Number of targets to draw. If there are fewer, all are returned.
        among: Targets to draw from, in any form that `BaseExplainer.explain` takes; a target that
            is listed twice counts once. By default the model's population.
        seed: Seed of the draws within strata.

    Returns:
        The targets in rising order: node ids, pairs of nodes, or graph numbers.

    Raises:
        BadSetting: ``count`` is not a whole number of at least 1.
        BadTarget: A target in ``among`` does not exist.

    >>> targets = gg.sample_targets(model, 4)  # one of each predicted class
    >>> targets, model.pred_discrete(targets).tolist()
    ([252, 403, 519, 680], [0, 2, 3, 1])
    """
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise BadSetting(f"count must be a number of targets, 1 or more, but is {count!r}.")
    pool = (model.population() if among is None else model.parse_targets(among).to_user()).unique(
        dim=0
    )
    chosen = _draw_from_strata(_assign_strata(model, pool).cpu(), count, seed)
    return [canonical_target(target) for target in pool[chosen.to(pool.device)].tolist()]


def _assign_strata(model: BaseModel, pool: Tensor) -> Tensor:
    """The stratum of each target, numbered in the order in which they are visited.  (P,)"""
    prediction = model.pred_continuous(pool)
    if model.task == "regression":
        return (
            3
            * _quantile_parts(
                prediction, torch.zeros(len(pool), dtype=torch.int64, device=pool.device), _TENTHS
            )
            % _TENTHS
        )
    predicted = model.pred_discrete(pool)
    _, label = predicted.unique(return_inverse=True)
    third = _quantile_parts(prediction.gather(1, predicted[:, None])[:, 0], label, _THIRDS)
    return (third - label) % _THIRDS * prediction.size(1) + label


def _quantile_parts(value: Tensor, group: Tensor, number: int) -> Tensor:
    """Which of ``number`` equal parts of its group each value falls into, lowest first.
    (P,), (P,) -> (P,)
    """
    order = value.argsort(stable=True)
    order = order[group[order].argsort(stable=True)]
    size = torch.bincount(group)
    place = torch.arange(len(order), device=order.device) - (size.cumsum(0) - size)[group[order]]
    return torch.empty_like(order).index_copy(0, order, place * number // size[group[order]])


def _draw_from_strata(stratum: Tensor, count: int, seed: int) -> Tensor:
    """Rows taken from all strata in turn, in a random order inside each; listed in rising order.
    (P,) -> (count,)
    """
    by_chance = torch.randperm(len(stratum), generator=make_generator(derive_seed(seed, "sample")))
    by_stratum = by_chance[stratum[by_chance].argsort(stable=True)]
    size = torch.bincount(stratum)
    turn = torch.arange(len(stratum)) - (size.cumsum(0) - size)[stratum[by_stratum]]
    return by_stratum[turn.argsort(stable=True)[:count]].sort().values
