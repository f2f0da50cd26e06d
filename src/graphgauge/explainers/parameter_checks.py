"""Checks of explainer parameters; each raises BadSetting with the value that was given."""

from typing import Any

import numpy as np

from graphgauge.core import BadSetting


def check_explain_output(what: str) -> str:
    """Raise BadSetting unless ``what`` is "prob" or "logit"."""
    if what not in ("prob", "logit"):
        raise BadSetting(f"explain_output must be 'prob' or 'logit', but {what!r} was given.")
    return what


def check_positive_integer(name: str, value: int) -> None:
    """Raise BadSetting unless ``value`` is a whole number of at least 1."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
        raise BadSetting(f"{name} must be a whole number, 1 or more, but {value!r} was given.")


def check_finite_parameters(explainer: Any, *names: str, least: float = 0.0) -> None:
    """Raise BadSetting unless the named parameters are finite numbers of at least ``least``."""
    for name in names:
        value = getattr(explainer, name)
        is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
        if not is_number or not least <= value < float("inf"):
            raise BadSetting(
                f"{name} must be a finite number, {least:g} or more, but {value!r} was given."
            )
