"""How good the network itself is at its task, with an interval, and whether it is good enough to be
worth an explanation.

    nodes, graphs   accuracy    share of targets whose class is named; Wilson's interval
    links           AUC         of yes and no: the probability that a link scores higher than a
                                non-link, where ties count half;
                                Wilson's interval as of min(links, non-links) pairs, which is never
                                too short (van Dantzig, 1951)
                    accuracy    of more classes
    regression      R²          1 - mean (y - f)² / mean (y - mean y)²; Student's t interval with
                                the standard error of its linear expansion

Where the data say what is right: ``data.y`` of nodes and graphs, ``data.edge_label`` of the pairs
``data.edge_label_index``. Scored is what ``test_mask`` names; without one all that ``train_mask``
does not name; without either everything, and that is told.

A network is called poor where the data do not show that it is better than no network at all:

    accuracy    its interval reaches down to the share of the most frequent class, and the interval
                of the mean recall to 1 / classes
    AUC         its interval reaches down to 1/2
    R²          its interval reaches down to 0, which always naming the mean reaches
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from graphgauge.core import (
    NORMAL_QUANTILE,
    BadSetting,
    GraphgaugeError,
    Interval,
    JsonObject,
    derive_seed,
    make_generator,
    share_interval,
    student_quantile,
)
from graphgauge.metrics import auroc
from graphgauge.models import BaseModel

_MAX_SCORED_TARGETS = 100_000  #: targets that are scored; of more, so many are drawn
_UNTRAINED_PART = "what train_mask leaves"
_EVERYTHING_LABELLED = "everything labelled, training data perhaps among it"


@dataclass(frozen=True)
class ModelAccuracy:
    """The score of a network on its task. ``str`` tells it in a sentence without its full stop."""

    name: str  #: "accuracy", "AUC" or "R²", or what somebody calls it
    value: float
    interval: Interval | None = None  #: 95 %
    n: int | None = None  #: targets that were scored
    scored_on: str = ""  #: such as "nodes of test_mask"
    reference: float | None = (
        None  #: what no network at all reaches: the most frequent class, a coin, the mean
    )
    is_poor: bool | None = None  #: whether it is not shown to be better than that; None: not known
    mean_recall: float | None = (
        #: of accuracy: mean over classes of the share that is named, also called balanced accuracy
        None
    )

    def __str__(self) -> str:
        span = "" if self.interval is None else f" [{self.interval[0]:.3g}, {self.interval[1]:.3g}]"
        place = f" on {self.n:,} {self.scored_on}" if self.n is not None else ", as stated"
        recall = (
            ""
            if self.mean_recall is None
            else f"; mean recall of the classes {self.mean_recall:.3g}"
        )
        beside = (
            ""
            if self.reference is None
            else (
                f"; {_BASELINE_PHRASES.get(self.name, 'without a network')} reaches "
                f"{self.reference:.3g}"
            )
        )
        return f"{self.name} {self.value:.3g}{span}{place}{recall}{beside}"

    @property
    def sentence(self) -> str:
        """A line for people, with a warning where the network is poor."""
        warning = (
            "Caution: not shown to be better than that; a faithful explanation of it explains "
            "mistakes."
        )
        return f"The model itself: {self}.{' ' + warning if self.is_poor else ''}"

    @property
    def warning(self) -> str:
        """Why explanations of such a network are of little use; '' where it is not known to be
        poor.
        """
        if not self.is_poor:
            return ""
        return f"the model is not shown to be better than no model at all: {self}"

    def record(self) -> JsonObject:
        """As plain data."""
        found = asdict(self)
        return {**found, "interval": None if self.interval is None else list(self.interval)}

    @staticmethod
    def from_value(value: Any) -> "ModelAccuracy | None":
        """A score as people give it: a share such as 0.81, or a mapping with name, value and
        interval; None stays None.
        """
        if value is None or isinstance(value, ModelAccuracy):
            return value
        if isinstance(value, Mapping):
            return _accuracy_from_mapping(value)
        return ModelAccuracy("accuracy", _parse_share(value, "accuracy"))


_BASELINE_PHRASES = {
    "accuracy": "always naming the most frequent class",
    "AUC": "a coin",
    "R²": "always naming the mean",
}
UNKNOWN_ACCURACY = "The model itself: its accuracy is not known."
_ACCURACY_FORMAT_HINT = (
    "give a share such as 0.81, or {'name': 'R²', 'value': 0.64, 'interval': [0.58, 0.7]}"
)


def _parse_share(value: Any, name: str) -> float:
    """A number from 0 to 1, or an error that says what was given."""
    is_number = isinstance(value, (int, float)) or (
        hasattr(value, "item") and getattr(value, "ndim", 1) == 0
    )
    number = float(value) if is_number and not isinstance(value, bool) else math.nan
    if not 0 <= number <= 1:
        hint = f" 81 % is 0.81: is it {number / 100:g}?" if 1 < number <= 100 else ""
        raise BadSetting(
            f"{name} must be a number from 0 to 1, but {value!r} was given.{hint} Else "
            f"{_ACCURACY_FORMAT_HINT}."
        )
    return number


def _accuracy_from_mapping(given: Mapping[str, Any]) -> ModelAccuracy:
    """A score from plain data."""
    known = ModelAccuracy.__dataclass_fields__
    if (
        not {"name", "value"} <= set(given) <= set(known)
        or not isinstance(given["name"], str)
        or not given["name"].strip()
    ):
        raise BadSetting(
            f"accuracy was given as {dict(given)!r}: {_ACCURACY_FORMAT_HINT}. Known are "
            f"{', '.join(known)}."
        )
    numbers = [given["value"], *(given.get("interval") or ())]
    if len(numbers) not in (1, 3) or not all(_is_finite_number(number) for number in numbers):
        raise BadSetting(
            "accuracy needs a finite value, and an interval of two such numbers or none, but is "
            f"{dict(given)!r}."
        )
    value, *ends = map(float, numbers)
    if ends and not ends[0] <= value <= ends[1]:
        raise BadSetting(
            f"the interval of the accuracy must hold its value, but {value:g} is not in {ends}."
        )
    if value > 1:
        raise BadSetting(
            f"{given['name']} cannot be above 1, but {value:g} was given: {_ACCURACY_FORMAT_HINT}."
        )
    return ModelAccuracy(
        **{**given, "value": value, "interval": (ends[0], ends[1]) if ends else None}
    )


def _is_finite_number(value: Any) -> bool:
    """Whether a value is a finite number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


# --- measured -------------------------------------------------------------------------------------


class _LabelledTargets(NamedTuple):
    """Targets with what is right of them, and where they come from."""

    targets: Tensor  #: (n,) ids, or (n, 2) of links
    truth: Tensor  #: (n,)
    scored_on: str


def model_accuracy(model: BaseModel) -> ModelAccuracy | None:
    """The score of the network on the labels in its data; None where the data hold none, or they do
    not fit.
    """
    found = None if model.labels is not None else _find_labelled_targets(model)
    if found is None:
        return None
    try:
        prediction = model.pred_continuous(found.targets).cpu().double()
    except GraphgaugeError:
        return None
    if model.task == "regression":
        return _r_squared(prediction, found)
    if model.level == "link" and prediction.size(1) == 2:
        return _link_auc(prediction[:, 1], found)
    return _classification_accuracy(prediction, found)


def _find_labelled_targets(model: BaseModel) -> _LabelledTargets | None:
    """The targets that are scored."""
    graphs = model.data if model.level == "graph" else [model.data]
    name = "edge_label" if model.level == "link" else "y"
    truth = _target_attribute(graphs, name, getattr(model, "output_column", None))
    if truth is None:
        return None
    targets = _targets_of_labels(model, len(truth))
    if targets is None:
        return None
    is_usable = truth.isfinite() & (
        (truth >= 0) & (truth == truth.round()) if model.task == "classification" else True
    )
    if model.level == "link":
        is_usable &= targets[:, 0] != targets[:, 1]  # a node beside itself is no target
    mask, part = _scored_mask(graphs, len(truth))
    rows = (is_usable & mask).nonzero()[:, 0]
    if len(rows) > _MAX_SCORED_TARGETS:
        rows = rows[
            torch.randperm(len(rows), generator=make_generator(derive_seed(0, "accuracy")))[
                :_MAX_SCORED_TARGETS
            ]
            .sort()
            .values
        ]
    return (
        _LabelledTargets(targets[rows], truth[rows], f"{model.level}s of {part}")
        if len(rows) > 1
        else None
    )


def _target_attribute(graphs: Any, name: str, column: int | None = None) -> Tensor | None:
    """An attribute with one number per target, or its ``column``, as (n,) on the CPU; None where
    there is no such thing.
    """
    held = [graph.get(name) for graph in graphs]
    if not all(isinstance(value, Tensor) and value.numel() for value in held):
        return None
    parts = [value.detach().cpu() for value in held]
    if len(graphs) > 1:
        parts = [part.reshape(1, -1) for part in parts]
    if len({part.shape[1:] for part in parts}) > 1:
        return None
    rows = torch.cat(parts) if parts[0].dim() else parts[0].reshape(1)
    rows = rows.reshape(len(rows), -1)
    chosen = 0 if rows.size(1) == 1 else column
    return rows[:, chosen].double() if chosen is not None and chosen < rows.size(1) else None


def _targets_of_labels(model: BaseModel, count: int) -> Tensor | None:
    """The targets that so many labels belong to; None where they do not fit."""
    if model.level == "link":
        pairs = model.data.get("edge_label_index")
        fits = isinstance(pairs, Tensor) and pairs.dim() == 2 and tuple(pairs.shape) == (2, count)
        return pairs.t().cpu() if fits else None
    return torch.arange(count) if count == model.num_targets() else None


def _scored_mask(graphs: Any, count: int) -> tuple[Tensor, str]:
    """Which targets are scored, and what they are called.  (n,) bool"""
    test, train = (_target_mask(graphs, name, count) for name in ("test_mask", "train_mask"))
    if test is not None:
        return test, "test_mask"
    if train is not None and not bool(train.all()):
        return ~train, _UNTRAINED_PART
    return torch.ones(count, dtype=torch.bool), _EVERYTHING_LABELLED


def _target_mask(graphs: Any, name: str, count: int) -> Tensor | None:
    """A mask over targets that names any; None where there is none."""
    found = _target_attribute(graphs, name)
    return found.bool() if found is not None and len(found) == count and bool(found.any()) else None


def _classification_accuracy(prob: Tensor, found: _LabelledTargets) -> ModelAccuracy | None:
    """Share of targets whose class is named.  prob (n, C)"""
    truth = found.truth.long()
    if int(truth.max()) >= prob.size(1):
        return None
    n, is_right = len(truth), prob.argmax(1) == truth
    classes = truth.unique()
    sizes = [int((truth == own).sum()) for own in classes.tolist()]
    hits = [int((is_right & (truth == own)).sum()) for own in classes.tolist()]
    interval, most = share_interval(sum(hits), n), max(sizes) / n
    recall = sum(hit / size for hit, size in zip(hits, sizes, strict=True)) / len(classes)
    is_poor = interval[0] <= most and recall - _recall_margin(hits, sizes) <= 1 / len(classes)
    return ModelAccuracy(
        "accuracy", sum(hits) / n, interval, n, found.scored_on, most, is_poor, recall
    )


def _recall_margin(hits: list[int], sizes: list[int]) -> float:
    """Half of a 95 % interval of the mean recall; two hits and two misses are added to each class,
    as Agresti and Coull do.
    """
    shares = [((hit + 2) / (size + 4), size + 4) for hit, size in zip(hits, sizes, strict=True)]
    return NORMAL_QUANTILE * math.sqrt(sum(p * (1 - p) / size for p, size in shares)) / len(shares)


def _link_auc(prob: Tensor, found: _LabelledTargets) -> ModelAccuracy | None:
    """Chance that a link has a higher probability than a non-link.  prob (n,)"""
    is_link = found.truth == 1
    least = min(int(is_link.sum()), int((~is_link).sum()))
    if not least or not bool(((found.truth == 0) | is_link).all()):
        return None
    value = float(auroc(prob, is_link))
    interval = share_interval(value * least, least)
    return ModelAccuracy(
        "AUC", value, interval, len(prob), found.scored_on, 0.5, interval[0] <= 0.5
    )


def _r_squared(prediction: Tensor, found: _LabelledTargets) -> ModelAccuracy | None:
    """Return R² = 1 - A / B with its interval.  prediction (n,)

    By the linear expansion one value moves it by -(error² - A) / B + A (spread² - B) / B².
    """
    truth, n = found.truth, len(found.truth)
    error, spread = (truth - prediction).square(), (truth - truth.mean()).square()
    a, b = error.mean(), spread.mean()
    if not b > 0 or not bool(a.isfinite()):
        return None
    value = float(1 - a / b)
    influence = -(error - a) / b + a * (spread - b) / b**2
    half = student_quantile(0.025, n - 1) * float(influence.std()) / math.sqrt(n)
    interval = (value - half, min(1.0, value + half))
    return ModelAccuracy("R²", value, interval, n, found.scored_on, 0.0, interval[0] <= 0)
