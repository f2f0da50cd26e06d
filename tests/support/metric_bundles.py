"""Bundles made by hand, for the tests."""

import torch

from graphgauge.metrics import Curves


def one_target(*cases, candidates=None, **settings):
    """Curves of one target; a case is (start, curve, flips, random curves), all curves as long as
    there are steps.
    """
    start, curve, flips, random = zip(*cases, strict=True)
    settings = {
        name: tensor(value) if isinstance(value, list) else value
        for name, value in settings.items()
    }
    return Curves(
        target=torch.zeros(len(cases), dtype=torch.int64),
        num_targets=1,
        start=tensor(start),
        curve=tensor(curve),
        flips=torch.tensor(flips, dtype=torch.bool),
        random=tensor(random),
        candidates=torch.tensor(candidates or [len(row) for row in curve]),
        **settings,
    )


def tensor(values):
    """In double precision."""
    return torch.tensor(values, dtype=torch.float64)
