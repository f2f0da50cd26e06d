"""What the checks of explainers share: an explainer tried on a model, and how two sets of
explanations are compared.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.modules.module import register_module_forward_pre_hook

from graphgauge.checks.model_checks import capture_state
from graphgauge.checks.suite import InapplicableCheck, fail_unless
from graphgauge.core import Target, Xplanation
from graphgauge.explainers import BaseExplainer
from graphgauge.models import BaseModel

SCORE_SIDES = ("feature_score", "edge_score")
SCORE_TOLERANCE = 1e-4  #: scores this close, measured by the largest of them, are the same


@dataclass(frozen=True)
class ExplainerTrial:
    """An explainer, and a model with some targets to try it on; and what the model was before
    anything was explained.
    """

    explainer: BaseExplainer
    model: BaseModel
    targets: list[Target]
    state: dict[str, Any]
    answer: Tensor
    #: explanations on stages that several checks look at
    cached_explanations: dict[str, Sequence[Xplanation]] = field(default_factory=dict)

    @classmethod
    def from_model(
        cls, explainer: BaseExplainer, model: BaseModel, targets: list[Target]
    ) -> "ExplainerTrial":
        """A trial that has not begun."""
        model.pred_continuous(targets)
        return cls(explainer, model, targets, capture_state(model), fresh_predictions(model))

    def run(self, targets: Any = None, seed: int = 0) -> Sequence[Xplanation]:
        """Explanations of the targets, made anew."""
        return self.explainer.explain(
            self.model, self.targets if targets is None else targets, seed=seed
        )

    def num_calls(self) -> int:
        """Calls of modules that one run makes."""
        with ModuleCallCounter() as calls:
            self.run()
        return calls.count

    @cached_property
    def xs(self) -> Sequence[Xplanation]:
        """Explanations of the targets with seed 0, made once for all checks."""
        return self.run()

    @cached_property
    def scored(self) -> Sequence[Xplanation]:
        """The same; skips the check for explainers that give no scores."""
        return require_scores(self.xs)


def fresh_predictions(model: BaseModel) -> Tensor:
    """What the network answers now; nothing that is remembered."""
    with model.session(), torch.no_grad():
        return model.run_once().clone()


def require_scores(xs: Sequence[Xplanation]) -> Sequence[Xplanation]:
    """``xs``, if there are scores to look at."""
    if not any(getattr(x, side) is not None for x in xs for side in SCORE_SIDES):
        raise InapplicableCheck("there are no scores")
    return xs


def list_scores(x: Xplanation) -> list[Tensor]:
    """The scores there are."""
    return [score for score in (x.feature_score, x.edge_score) if score is not None]


def require_side(xs: Sequence[Xplanation], side: str) -> list[Tensor]:
    """The scores of one side; skips the check where there are none."""
    scores = [getattr(x, side) for x in xs if getattr(x, side) is not None]
    if not any(score.numel() for score in scores):
        raise InapplicableCheck(f"there is no {side}")
    return scores


def relative_difference(first: Tensor | None, second: Tensor | None) -> float:
    """The largest difference of two sides, measured by the largest score; infinite where they
    cannot be compared.
    """
    if first is None or second is None:
        return 0.0 if first is second else torch.inf
    if first.shape != second.shape:
        return torch.inf
    if not first.numel() or torch.equal(first, second):
        return 0.0
    size = float(torch.cat([first, second]).abs().max())
    return float((first - second).abs().max()) / size if size < torch.inf else torch.inf


def have_same_scores(xs: Sequence[Xplanation], ys: Sequence[Xplanation]) -> bool:
    """Whether two runs gave the same scores."""
    return len(xs) == len(ys) and all(
        relative_difference(getattr(x, side), getattr(y, side)) <= SCORE_TOLERANCE
        for x, y in zip(xs, ys, strict=True)
        for side in SCORE_SIDES
    )


def ensure_same_scores(xs: Sequence[Xplanation], ys: Sequence[Xplanation], reason: str) -> None:
    """Fail with ``reason`` and the first target whose scores differ."""
    fail_unless(len(xs) == len(ys), f"{reason}: {len(xs)} explanations became {len(ys)}")
    for x, y in zip(xs, ys, strict=True):
        differ = [
            side
            for side in SCORE_SIDES
            if not relative_difference(getattr(x, side), getattr(y, side)) <= SCORE_TOLERANCE
        ]
        fail_unless(not differ, f"{reason}: {', '.join(differ)} of target {x.target}")


def is_deeply_equal(
    first: Any, second: Any, compared: frozenset[tuple[int, int]] = frozenset()
) -> bool:
    """Whether two values are equal, or are made of equal parts: objects that define no ``==`` are
    compared by their attributes.

    ``compared`` are the pairs around these two, so that an object that holds itself ends.
    """
    if first is second or (id(first), id(second)) in compared:
        return True
    if type(first) is not type(second):
        return False
    if isinstance(first, (Tensor, np.ndarray)):
        return (
            first.shape == second.shape
            and first.dtype == second.dtype
            and bool((first == second).all())
        )
    inner = compared | {(id(first), id(second))}
    if isinstance(first, Mapping):
        return first.keys() == second.keys() and all(
            is_deeply_equal(first[key], second[key], inner) for key in first
        )
    if isinstance(first, (list, tuple)):
        return len(first) == len(second) and all(
            is_deeply_equal(a, b, inner) for a, b in zip(first, second, strict=True)
        )
    if _is_equal_or_nan(first, second):
        return True
    own = _object_attributes(first)
    return bool(own) and is_deeply_equal(own, _object_attributes(second), inner)


def _object_attributes(value: Any) -> dict[str, Any]:
    """What an object holds, in its dictionary and in its slots."""
    names = [
        name
        for kind in type(value).__mro__
        for name in getattr(kind, "__slots__", ())
        if hasattr(value, name)
    ]
    return {**{name: getattr(value, name) for name in names}, **getattr(value, "__dict__", {})}


def _is_equal_or_nan(first: Any, second: Any) -> bool:
    """Whether ``==`` says so, or both are no number; not where it cannot tell, as for a field that
    holds a tensor.
    """
    try:
        return bool(first == second) or bool(first != first and second != second)
    except (RuntimeError, ValueError, TypeError):
        return False


def require_deterministic(explainer: BaseExplainer) -> None:
    """Skip the check for explainers whose random draws depend on the size of the graph."""
    if not explainer.deterministic:
        raise InapplicableCheck("random draws differ where the graph does")


class ModuleCallCounter:
    """Counts calls of any module inside; from call number ``fail_at`` on each one raises."""

    def __init__(self, fail_at: int | None = None) -> None:
        self.fail_at, self.count, self.has_failed = fail_at, 0, False

    def __enter__(self) -> "ModuleCallCounter":
        self.handle = register_module_forward_pre_hook(self.note)
        return self

    def note(self, module: Any, inputs: Any) -> None:
        """One more call."""
        self.count += 1
        if self.fail_at is not None and self.count >= self.fail_at:
            self.has_failed = True
            raise InterruptedError("a call that was made to fail")

    def __exit__(self, *_: Any) -> None:
        self.handle.remove()


def raises_error(action: Callable[[], Any], error: type[Exception]) -> bool:
    """Whether an action raises this error."""
    try:
        action()
    except error:
        return True
    return False
