"""Triggers: why a new validation is necessary, the number that shows it, what to validate again.

threshold crossed     the mean of a metric is beyond its limit, and chance does not explain it
metric drift          a metric is distributed differently than in the baseline
ranking drift         other features lead the explanations
data shift            targets, their neighbourhoods or their predictions differ from the baseline
broken relation       columns no longer relate to each other, to the label or to their neighbours
                      as in the baseline
accuracy drop         the model makes more errors than in the baseline, where labels are known
model changed         the weights of the network are not those that were validated
validation age        the baseline is too old
manual                a person raised it, for example after a change of the rules
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from graphgauge.core import JsonObject, lookup
from graphgauge.monitor.monitoring_plan import (
    ACCURACY_DROP,
    BROKEN_RELATION,
    DATA_SHIFT,
    METRIC_DRIFT,
    RANKING_DRIFT,
)

THRESHOLD_CROSSED, MODEL_CHANGED, VALIDATION_AGE, MANUAL_TRIGGER = (
    "threshold crossed",
    "model changed",
    "validation age",
    "manual",
)

#: what to validate again, by the name of the trigger
REVALIDATION_ADVICE = {
    THRESHOLD_CROSSED: "Evaluate the explainer on 100 or more targets of now against the "
    "thresholds; if it stays so, choose another one.",
    METRIC_DRIFT: "Evaluate the explainer on 100 or more targets of now; "
    "if the new level is accepted, take a new baseline.",
    RANKING_DRIFT: "Let someone who knows the domain read explanations of now: "
    "do the leading features make sense? Check the sentences.",
    DATA_SHIFT: "Check where the data come from, then the model on them; "
    "evaluate the explainer on targets of now; take a new baseline.",
    BROKEN_RELATION: "Check how the named columns are filled (scrambled, swapped, joined "
    "wrongly?), then the model; evaluate again.",
    ACCURACY_DROP: "Check labels and data, then the model: "
    "explanations of a model that errs explain mistakes. Then validate again.",
    MODEL_CHANGED: "Validate model and explainer again as before the first use, "
    "and take a new baseline.",
    VALIDATION_AGE: "Repeat the validation as planned and take a new baseline.",
    MANUAL_TRIGGER: "Do what the reason asks for; "
    "then take a new baseline, or settle the trigger with a note.",
}


@dataclass(frozen=True)
class Trigger:
    """One reason to validate again."""

    name: str
    subject: str  #: the metric, or what else it is about; '' if there is only one
    told: str  #: a sentence with the evidence
    number: float | None = None  #: what was found: a mean, a corrected p-value, days
    limit: float | None = None  #: what it was held against
    effect: float | None = (
        None  #: how large the difference is, for drift: Cliff's delta, or the largest z
    )
    details: JsonObject = field(default_factory=dict)

    def __post_init__(self) -> None:
        lookup(REVALIDATION_ADVICE, self.name, "trigger")

    @property
    def revalidate(self) -> str:
        """What to do about it."""
        return REVALIDATION_ADVICE[self.name]

    @property
    def key(self) -> tuple[str, str]:
        """Triggers with the same key are about the same subject."""
        return self.name, self.subject

    def record(self) -> JsonObject:
        """Return the trigger as plain data."""
        return {**asdict(self), "revalidate": self.revalidate}

    @staticmethod
    def from_record(record: JsonObject) -> "Trigger":
        """Build a trigger from what `record` returned."""
        return Trigger(
            **{
                name: value
                for name, value in record.items()
                if name in Trigger.__dataclass_fields__
            }
        )


def format_signed(value: float, digits: int = 2) -> str:
    """Format a number with its sign; a number that rounds to 0 has none.

    >>> format_signed(0.256), format_signed(-0.001), format_signed(-3.04, 1)
    ('+0.26', '0.00', '-3.0')
    """
    text = f"{value:+.{digits}f}"
    return text[1:] if not float(text) else text


def join_names(names: Sequence[str], most: int = 5) -> str:
    """Join names for a sentence, and count those beyond ``most``.

    >>> join_names(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
