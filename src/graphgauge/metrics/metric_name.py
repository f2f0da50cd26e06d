"""What the name of a number in the results says: which side, which metric, in which form.

    edge_pertinence_tied         the side "edge", the family "pertinence", the form "tied"
    feature_ec                   the side "feature", the family "ec"
    time_batched                 no side, the family "time", the form "batched"

Sides are those that metrics are computed on: features, edges and, where a truth is known, nodes.
Forms are the variants of a family: calibrated ones, p-values, shares of early flips. Names that are
not known, such as those of users' metrics, are a family of their own.
"""

from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, TypeAlias, get_args

MetricSide: TypeAlias = Literal["feature", "edge", "node", ""]
CurveSide: TypeAlias = Literal["feature", "edge"]

SIDES = tuple(side for side in get_args(MetricSide) if side)
#: the forms of each family that has several; the paper's own form is ""
FORMS = {
    "pertinence": ("tied", "rank", "p", "abs"),
    "stability": ("corrected", "chance"),
    "flipped": ("10", "25", "100"),
    "time": ("batched",),
}


@dataclass(frozen=True, slots=True)
class MetricName:
    """The parts of a metric's name; ``str`` puts them together again.

    Args:
        side: "feature", "edge" or "node"; "" for what has no side, such as the time.
        family: What is measured, such as "ec", "pertinence", "stability" or "auroc".
        form: Which form of it, such as "tied" or "corrected"; "" for the paper's own.

    >>> name = MetricName.parse("edge_pertinence_tied")
    >>> name.side, name.family, name.form
    ('edge', 'pertinence', 'tied')
    >>> str(name.in_form("p")), str(name.in_form("")), name.without_side
    ('edge_pertinence_p', 'edge_pertinence', 'pertinence_tied')
    """

    side: MetricSide
    family: str
    form: str = ""

    @staticmethod
    def parse(text: str) -> "MetricName":
        """Read a name, with or without that of a side.

        >>> MetricName.parse("time_batched")
        MetricName(side='', family='time', form='batched')
        >>> MetricName.parse("feature_fidelity_plus_auc")
        MetricName(side='feature', family='fidelity_plus_auc', form='')
        """
        return _parse(text)

    def __str__(self) -> str:
        return "_".join(part for part in (self.side, self.family, self.form) if part)

    @property
    def without_side(self) -> str:
        """The name that the metric has in `METRICS`, where it is one on curves or a truth."""
        return str(replace(self, side=""))

    def as_paper(self) -> "MetricName":
        """The paper's number that stands in the place of this one: thresholds name that one.

        >>> str(MetricName.parse("edge_pertinence_tied").as_paper())
        'edge_pertinence'
        """
        return self.in_form("") if self.form == "tied" else self

    def in_form(self, form: str) -> "MetricName":
        """The same number in another form; "" is the paper's."""
        return replace(self, form=form)


@cache
def _parse(text: str) -> MetricName:
    side: MetricSide = ""
    family = text
    for known in SIDES:
        if text.startswith(f"{known}_"):
            side, family = known, text[len(known) + 1 :]
    for name, forms in FORMS.items():
        for form in forms:
            if family == f"{name}_{form}":
                return MetricName(side, name, form)
    return MetricName(side, family)
