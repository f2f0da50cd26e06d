"""What the network predicts before anything is edited, and what counts as a change of it."""

import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from graphgauge.core import GraphgaugeWarning
from graphgauge.evaluation.settings import Settings
from graphgauge.metrics import CurveDirection, class_flips, value_flips
from graphgauge.models import BaseModel, RegressionModel
from graphgauge.subgraphs import TargetsLike

#: a threshold below or above these SD of the predictions most likely is in the wrong unit
_LEAST_FLIP_IN_SD, _LARGEST_FLIP_IN_SD = 0.01, 3.0


@dataclass(frozen=True)
class BaselinePrediction:
    """The predictions of T targets that all later ones are compared with.

    Curves show the probability of the explained class, or the value. Where the explained class is
    not the predicted one, nothing can flip: what could be lost is not there at first.
    """

    prediction: Tensor  #: (T, C) or (T,) on the whole graph
    first: Tensor  #: (T,) probability of the explained class, or value
    label: Tensor | None  #: (T,) that class, by default the one first predicted; None: regression
    width: float  #: a value has changed when it moved by more
    tolerance: float  #: smaller differences are ties
    can_flip: Tensor | None = None  #: (T,) bool: the explained class is predicted; None: all are
    direction: CurveDirection = "raw"  #: which movement of a value is a good one

    @staticmethod
    def from_model(
        model: BaseModel, targets: TargetsLike, settings: Settings, label: Tensor | None = None
    ) -> "BaselinePrediction":
        """Predict on the whole graph.

        Args:
            model: The wrapped network.
            targets: T targets.
            settings: They say when a value has changed, and which way it should move.
            label: The explained class of each target; by default the predicted one.  (T,)
        """
        prediction = model.pred_continuous(targets)
        if isinstance(model, RegressionModel):
            # where all predictions are equal, rounding is no change
            is_constant = model.spread <= model.tolerance()
            noise = model.tolerance() if is_constant else 0.0
            unit = model.spread if settings.flip_unit == "sd" else 1.0
            return BaselinePrediction(
                prediction,
                prediction,
                None,
                width=max(settings.flip * unit, noise),
                tolerance=max(settings.tolerance * model.spread, noise),
                direction=_value_direction(settings),
            )
        predicted = model.pred_discrete(targets)
        label = predicted if label is None else label
        first, is_predicted = prediction.gather(1, label[:, None])[:, 0], label == predicted
        can_flip = None if bool(is_predicted.all()) else is_predicted
        return BaselinePrediction(
            prediction, first, label, 0.0, settings.tolerance, can_flip=can_flip
        )

    def height(self, prediction: Tensor, target: Tensor) -> Tensor:
        """The number that curves show; NaN where any class has no finite probability.

        (P, C) or (P,), (P,) -> (P,)

        Args:
            prediction: P predictions on edited graphs.
            target: The number of the target of each.
        """
        if self.label is None:
            return prediction
        probability = prediction.gather(1, self.label[target][:, None])[:, 0]
        return probability.where(prediction.isfinite().all(1), torch.nan)

    def flips(self, prediction: Tensor, target: Tensor, way: Tensor) -> Tensor:
        """Whether predictions differ from the first ones.  (P, C) or (P,), (P,), (P,) -> (P,) bool

        Args:
            prediction: P predictions on edited graphs.
            target: The number of the target of each.
            way: +1 / -1: only a value that rose / fell counts as changed; 0: either way.
        """
        if self.label is None:
            has_moved = value_flips(prediction[:, None], self.first[target], self.width)[:, 0]
            if self.direction != "moved":
                return has_moved
            return has_moved & ((way * (prediction - self.first[target]) > 0) | (way == 0))
        flips = class_flips(prediction[:, None], self.label[target], self.tolerance)[:, 0]
        return flips if self.can_flip is None else flips & self.can_flip[target]

    def is_predicted(self, t: int) -> bool:
        """Whether the explained class of target number ``t`` is the predicted one.

        Only then can edits be counted until the prediction changes. Values always can change.
        """
        return self.can_flip is None or bool(self.can_flip[t])


def warn_of_flip_threshold(model: BaseModel, settings: Settings, stacklevel: int = 2) -> None:
    """Warn if an absolute ``flip`` is far too small or too large for the predicted values.

    Values can have any unit, such as prices in the 100,000s. Then every edit moves them by more
    than an absolute 0.1, and each EC is 1. Nothing is said for ``flip=0``, where every change
    counts on purpose, and where all predictions are equal.

    Args:
        model: The wrapped network.
        settings: They say what counts as a change of a value.
        stacklevel: As in `warnings.warn`; 2 is the caller of the caller.
    """
    if not isinstance(model, RegressionModel) or settings.flip_unit == "sd" or not settings.flip:
        return
    spread = model.spread
    if spread <= model.tolerance():
        return
    in_sd = settings.flip / spread
    if _LEAST_FLIP_IN_SD <= in_sd <= _LARGEST_FLIP_IN_SD:
        return
    result = (
        "Almost every edit counts as a change of the prediction"
        if in_sd < _LEAST_FLIP_IN_SD
        else "Hardly any edit counts as a change of the prediction"
    )
    warnings.warn(
        f"flip={settings.flip:g} (flip_unit='absolute') is {in_sd:.2g} standard deviations of the "
        f"predictions, which is {spread:.3g}. {result}, so EC and pertinence say little. Use "
        "Evaluator(model, flip=0.2, flip_unit='sd') or preset='calibrated', or give flip in the "
        "unit of the predicted values.",
        GraphgaugeWarning,
        stacklevel=stacklevel + 1,
    )


def _value_direction(settings: Settings) -> CurveDirection:
    """Which movement of a value is a good one under these settings."""
    if settings.direction == "paper":
        return settings.regression_curve
    return "abs" if settings.direction == "any" else "moved"
