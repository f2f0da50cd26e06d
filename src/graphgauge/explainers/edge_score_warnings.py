"""The warning that explainers score features only, because messages of the network have no mask."""

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from graphgauge.core import GraphgaugeWarning
from graphgauge.execution import ADVICE_WITHOUT_MASKS
from graphgauge.explainers.network_checks import can_mask_messages
from graphgauge.models import BaseModel

if TYPE_CHECKING:
    from graphgauge.explainers.base import BaseExplainer

_WARNS_OF_MISSING_EDGES: ContextVar[bool] = ContextVar(
    "whether explainers without edge scores say so", default=True
)


def warn_about_missing_edge_scores(
    model: BaseModel, explainers: Iterable["BaseExplainer"], stacklevel: int = 2
) -> None:
    """Warn which explainers will score features only, why, and what would score edges instead.

    Args:
        model: The wrapped network.
        explainers: The explainers that will explain it.
        stacklevel: Which caller the warning points to: 1 is the code that calls this function, 2
            its caller, and so on.
    """
    names = sorted({explainer.name for explainer in explainers if explainer.needs_masks})
    if not names or not _WARNS_OF_MISSING_EDGES.get() or can_mask_messages(model):
        return
    reason = model.mask_support.rstrip(".")
    gives = "gives" if len(names) == 1 else "give"
    warnings.warn(
        f"there are no edge scores: {reason}. So {', '.join(names)} {gives} features only; "
        f"for edges {ADVICE_WITHOUT_MASKS}.",
        GraphgaugeWarning,
        stacklevel=stacklevel + 1,
    )


@contextmanager
def silence_missing_edge_warnings() -> Iterator[None]:
    """Suppress the warning about missing edge scores, for a caller that has given it already."""
    token = _WARNS_OF_MISSING_EDGES.set(False)
    try:
        yield
    finally:
        _WARNS_OF_MISSING_EDGES.reset(token)
