"""The divergence D of GraphMask: how far a gated prediction is from the original one.

For classes it is KL(original || gated), in terms of the class probabilities p and q:

    D = Σ_c p_c (log p_c - log q_c)

If a class k is explained that is not predicted, only two outcomes count, k and all other classes:

    D = p_k (log p_k - log q_k) + (1 - p_k) (log (1 - p_k) - log (1 - q_k))

For regression it is the squared difference in standard deviations of the predictions.
"""

import torch
from torch import Tensor

from graphgauge.models import BaseModel, class_log_probabilities, most_likely_class

_MIN_LOG_PROBABILITY = -100.0  #: stands for log 0, so that a probability of 0 still has a gradient


def unpredicted_labels(first: Tensor, label: Tensor) -> Tensor | None:
    """The classes that are explained though another is predicted, -1 elsewhere. (T, C), (T,) ->
    (T,)

    Returns None if there are none.
    """
    is_other = label != most_likely_class(first)
    return torch.where(is_other, label, -1) if bool(is_other.any()) else None


def prediction_divergence(
    model: BaseModel, first: Tensor, raw: Tensor, chosen: Tensor | None = None
) -> Tensor:
    """Divergence between original and current predictions. first (K, C) or (K,) -> (K,)

    For classes this is KL(first || current); for regression, the squared difference in standard
    deviations of the predictions. Where ``chosen`` (K,) is not -1, it is the class that is
    explained, and all other classes count as one.
    """
    if model.task == "regression":
        spread = model.spread or 1.0  # type: ignore[attr-defined]
        return ((model.interpret(raw) - first) / spread).square()
    log_prob = class_log_probabilities(raw, model.kind)  # type: ignore[attr-defined]
    log_prob = log_prob.clamp(min=_MIN_LOG_PROBABILITY)
    everything = (torch.xlogy(first, first) - first * log_prob).sum(1)
    if chosen is None:
        return everything
    label = chosen.clamp(min=0)[:, None]
    is_label = torch.zeros_like(first, dtype=torch.bool).scatter(1, label, True)
    rest = torch.stack([first.gather(1, label)[:, 0], first.masked_fill(is_label, 0).sum(1)], 1)
    others = log_prob.masked_fill(is_label, _MIN_LOG_PROBABILITY).logsumexp(1)
    log_rest = torch.stack([log_prob.gather(1, label)[:, 0], others], 1)
    return torch.where(chosen < 0, everything, (torch.xlogy(rest, rest) - rest * log_rest).sum(1))
