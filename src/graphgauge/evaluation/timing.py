"""How long one explanation takes when it is asked for alone."""

import time
from collections.abc import Sequence
from statistics import median
from typing import Any

import torch

from graphgauge.evaluation.entries import OfClasses
from graphgauge.explainers import BaseExplainer
from graphgauge.models import BaseModel
from graphgauge.models.recent import no_recent_graphs

REPEATS = 3


def seconds_alone(
    explainer: BaseExplainer | OfClasses,
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
    return [
        median(one_call(explainer, model, target, seed) for _ in range(REPEATS))
        for target in targets
    ]


def one_call(
    explainer: BaseExplainer | OfClasses, model: BaseModel, target: Any, seed: int
) -> float:
    """Seconds of one call, until the device has finished; the target's computation graph is cut in
    it.
    """
    with no_recent_graphs(model):
        synchronise(model.source.device)
        start = time.perf_counter()
        explainer.explain(model, [target], seed=seed)
        synchronise(model.source.device)
        return time.perf_counter() - start


def synchronise(device: torch.device) -> None:
    """Wait for work that a GPU still has to do."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
