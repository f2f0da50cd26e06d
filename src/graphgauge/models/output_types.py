"""Output types: from a network's raw rows to class probabilities (T, C)."""

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from graphgauge.core import BadModel, BadSetting

_OUTPUT_TYPES = ("logits", "log_probs", "probs", "multi_label", "multi_label_logits")
#: for networks with several labels that do not exclude each other: how one column, asked for alone,
#: is read
MULTI_LABEL_TYPES = {"multi_label": "probs", "multi_label_logits": "logits"}
_SUM_TOLERANCE = 1e-4  #: how far from 1 the probabilities of a row may add up


def infer_output_type(raw: Tensor) -> str:
    """The type of the rows (P, columns) of a whole population: "probs", "log_probs" or "logits"."""
    if raw.size(1) == 1:
        if _is_inside_unit(raw):
            raise BadModel(
                "the net returns one column inside [0, 1]: this can be a probability or a logit. "
                "Say which: output='probs' or output='logits'."
            )
        return "logits"
    if _is_distribution(raw):
        return "probs"
    if _is_inside_unit(raw) and bool(
        raw.any()
    ):  # all zeros are logits of a network that knows nothing
        raise BadModel(
            f"the net returns {raw.size(1)} columns inside [0, 1] whose rows do not add up to 1, "
            f"for example {_example_row(raw)}. "
            "If each is the probability of a label that does not exclude the others (a sigmoid for "
            "each), say "
            "output='multi_label': a target is then a pair, such as (node, label). If they are "
            "scores of classes before a "
            "softmax, say output='logits'."
        )
    return "log_probs" if _is_distribution(raw.exp()) else "logits"


def check_output_type(raw: Tensor, kind: str) -> None:
    """Raise BadModel for rows that cannot be of the stated type."""
    if kind not in _OUTPUT_TYPES:
        raise BadSetting(
            f"output must be one of {', '.join(map(repr, _OUTPUT_TYPES))} or None, but {kind!r} "
            "was given."
        )
    if kind == "multi_label_logits":
        return
    prob = raw.exp() if kind == "log_probs" else raw
    fits = (
        _is_inside_unit(prob)
        if raw.size(1) == 1 or kind == "multi_label"
        else _is_distribution(prob)
    )
    if kind != "logits" and not fits:
        advice = (
            {"probs": "multi_label"}
            if _is_inside_unit(prob)
            else {"multi_label": "multi_label_logits"}
        )
        raise BadModel(
            f"output={kind!r} was said, but the net's rows are not that, for example "
            f"{_example_row(raw)}. "
            f"Is it output={advice.get(kind, 'logits')!r}?"
        )
    if kind == "logits" and raw.size(1) > 1 and fits:
        raise BadModel(
            "output='logits' was said, but all rows are probabilities, for example "
            f"{_example_row(raw)}: use output='probs'."
        )


def _example_row(raw: Tensor) -> str:
    """The first row, for error messages."""
    return (
        "["
        + ", ".join(f"{value:.3g}" for value in raw[0, :4].tolist())
        + (", ...]" if raw.size(1) > 4 else "]")
    )


def _is_inside_unit(values: Tensor) -> bool:
    """Whether all values are in [0, 1]."""
    return bool(((values >= 0) & (values <= 1)).all())


def _is_distribution(rows: Tensor) -> bool:
    """Whether each row is non-negative and adds up to 1."""
    return bool((rows >= 0).all() and ((rows.sum(1) - 1).abs() <= _SUM_TOLERANCE).all())


def class_probabilities(raw: Tensor, kind: str) -> Tensor:
    """Return class probabilities.  (T, C) or (T, 1) -> (T, C) or (T, 2)

    A single column is the second of two classes.

    >>> class_probabilities(torch.tensor([[0.0]]), "logits")
    tensor([[0.5000, 0.5000]])
    """
    if kind == "logits":
        return (torch.cat([torch.zeros_like(raw), raw], 1) if raw.size(1) == 1 else raw).softmax(1)
    prob = raw.exp() if kind == "log_probs" else raw
    return torch.cat([1 - prob, prob], 1) if raw.size(1) == 1 else prob


def class_log_probabilities(raw: Tensor, kind: str) -> Tensor:
    """Return the logarithms of `class_probabilities`.  (T, C) or (T, 1) -> (T, C) or (T, 2)

    They are exact also where the probabilities round to 0 or 1.

    >>> class_log_probabilities(torch.tensor([[200.0]]), "logits")
    tensor([[-200.,    0.]])
    """
    if kind == "logits":
        return (
            torch.cat([logsigmoid(-raw), logsigmoid(raw)], 1)
            if raw.size(1) == 1
            else raw.log_softmax(1)
        )
    if kind == "log_probs" and raw.size(1) > 1:
        return raw
    # of 0, a number that has a gradient
    return class_probabilities(raw, kind).clamp(min=torch.finfo(raw.dtype).tiny).log()


def most_likely_class(prob: Tensor) -> Tensor:
    """The class with the highest probability, and the lowest number among equals.  (T, C) -> (T,)

    >>> most_likely_class(torch.tensor([[0.4, 0.2, 0.4]]))
    tensor([0])
    """
    is_best = prob == prob.amax(1, keepdim=True)
    return (is_best * torch.arange(prob.size(1), 0, -1, device=prob.device)).argmax(1)


def flip_band_side(value: Tensor, around: Tensor | float, width: float) -> Tensor:
    """-1, 0 or +1: below, inside or above the band ``around`` ± ``width``.  (T,) -> (T,)

    >>> flip_band_side(torch.tensor([0.0, 1.0, 2.0]), 1.0, 0.5)
    tensor([-1,  0,  1])
    """
    return (value > around + width).long() - (value < around - width).long()
