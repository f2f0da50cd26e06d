"""One number of one explanation, or the reason why there is none."""

from dataclasses import dataclass

from graphgauge.core import JsonObject
from graphgauge.execution import ADVICE_WITHOUT_MASKS

OK = "ok"
NOT_PREDICTED = "not_predicted"

#: every reason why a value is missing, for people
STATUSES = {
    OK: "there is a value",
    "empty": "no edge can carry a message to the target",
    "no_reference": (
        "no other class, or nothing one SD above or below, is predicted: there is nothing to "
        "substitute from"
    ),
    "no_scores": "the explainer gives no scores of this side",
    "nan_attribution": "a score is NaN or infinite",
    "nan_prediction": (
        "the network predicts NaN or infinity for an edited graph, or cannot be run on it (as "
        "without edges)"
    ),
    NOT_PREDICTED: (
        "the explained class is not the predicted one, so there is no change of the prediction to "
        "count edits until"
    ),
    "no_mask": f"messages of this network cannot be masked: {ADVICE_WITHOUT_MASKS}",
    "no_explainer": "the explanation was made elsewhere, and its explainer cannot be run again",
    "constant": "permuting the scores changes nothing, so there is no chance to correct for",
    "all_selected": (
        "all candidates are among the top ones, as for any other explanation: lower `top`, or "
        "give it as a share"
    ),
    "no_truth": "no truth was given for this target",
    "one_sided_truth": (
        "all or none of what the explanation scores is true, so that there is nothing to tell apart"
    ),
    "undefined": "the metric has no value for this explanation",
    "not_timed": "only some targets are explained alone; see the setting `timed`",
}
#: reasons that a benchmark run gives when an explainer cannot be measured at all; the cell's
#: message says more
FAULTS = {
    "failed": "the explainer raised an error, or ended its process",
    "timeout": "the explainer gave no result within the time limit",
    "changed_model": (
        "the explainer changed the network or its data, so that its explanations are of something "
        "else"
    ),
}


@dataclass(frozen=True)
class MetricValue:
    """A value, or a status that says why there is none; how it was found.

    ``trials`` and ``stop`` have one entry per reference (one for edges), ``per_reference`` the EC
    or pertinence for each; ``per_level`` has the fidelities at 10, 20 .. 90 % of the candidates
    that an area is made of.
    """

    value: float | None = None
    status: str = OK
    trials: tuple[int, ...] | None = None
    stop: tuple[str, ...] | None = None
    flipped: bool | None = None
    per_reference: tuple[float, ...] | None = None
    draws: tuple[float, ...] | None = (
        #: EC of features under each draw of the map to the neighbours of the reference it is of
        None
    )
    error: float | None = None  #: standard error
    message: str | None = None  #: what went wrong, or should be known of the value, for people
    per_level: tuple[float, ...] | None = None

    def record(self) -> JsonObject:
        """As plain data, without what is not known."""
        kept = {name: value for name, value in vars(self).items() if value is not None}
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in kept.items()
        }

    @staticmethod
    def from_record(record: JsonObject) -> "MetricValue":
        """What `record` gave."""
        fields: JsonObject = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in record.items()
        }
        return MetricValue(**fields)


def missing_value(status: str) -> MetricValue:
    """No value, for this reason."""
    return MetricValue(status=status)
