"""How long one explanation takes when it is asked for alone."""

import time
from collections.abc import Sequence
from statistics import median
from typing import Any

import torch

from graphgauge.core import advance_progress
from graphgauge.evaluation.explanation_set import ChosenClassExplainer
from graphgauge.explainers import BaseExplainer
from graphgauge.models import BaseModel, without_cached_graphs

REPEATS = 3


def seconds_alone(
    explainer: BaseExplainer | ChosenClassExplainer,
    model: BaseModel,
    targets: Sequence[Any],
    seed: int,
    is_warm: bool = False,
) -> list[float]:
    """Median wall clock of three calls for each target, after one call to warm up unless it has
    just been called.
    """
    if targets and not is_warm:
        explainer.explain(model, targets[:1], seed=seed)
    found = []
    for target in targets:
        own = [_time_one_call(explainer, model, target, seed) for _ in range(REPEATS)]
        advance_progress(REPEATS)
        found.append(median(own))
    return found


def _time_one_call(
    explainer: BaseExplainer | ChosenClassExplainer, model: BaseModel, target: Any, seed: int
) -> float:
    """Seconds of one call, until the device has finished; the target's computation graph is cut in
    it.
    """
    with without_cached_graphs(model):
        _wait_for_device(model.source.device)
        start = time.perf_counter()
        explainer.explain(model, [target], seed=seed)
        _wait_for_device(model.source.device)
        return time.perf_counter() - start


def _wait_for_device(device: torch.device) -> None:
    """Wait for work that a GPU still has to do."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
