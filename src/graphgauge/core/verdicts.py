"""A verdict: one number against one threshold, with the reason in a sentence.

pass             the number meets its threshold
warn             it does, but there is a reason for doubt (few targets, or a threshold that chance
                 passes)
undecided        it does, but this decides nothing: there are too few targets, or nothing shows that
                 the scores are better than random
fail             it does not
not applicable   there is no number, or no threshold for it; ``status`` says why

``status`` also says why a number is undecided or fails without a threshold: "too_few_targets",
"no_better_than_random", "worse_than_random", "contradiction" (another measure of the same side is
worse than random).
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from graphgauge.core.errors import BadSetting
from graphgauge.core.json_types import JsonObject
from graphgauge.core.target_ids import Target

PASS, WARN, UNDECIDED, FAIL, NOT_APPLICABLE = "pass", "warn", "undecided", "fail", "not applicable"
OUTCOMES = (NOT_APPLICABLE, PASS, WARN, UNDECIDED, FAIL)  #: from the least to the most worrying


@dataclass(frozen=True)
class Verdict:
    """What is thought of one number. ``target`` None: of the mean over targets."""

    outcome: str
    metric: str
    reason: str
    number: float | None = None
    threshold: float | None = None
    explainer: str = ""
    target: Target | None = None
    task: str = ""
    model: str = ""
    occurrence: int = 0
    n: int | None = None  #: targets behind the number
    status: str = "ok"  #: why there is nothing to judge, or why it is undecided
    is_vacuous: bool = False  #: chance would meet the threshold too

    def __post_init__(self) -> None:
        if self.outcome not in OUTCOMES:
            raise BadSetting(
                f"a verdict is one of {', '.join(map(repr, OUTCOMES))}, but {self.outcome!r} was "
                "given."
            )

    def record(self) -> JsonObject:
        """As plain data."""
        return asdict(self)


def worst_outcome(verdicts: Iterable[Verdict]) -> str:
    """The most worrying outcome; "not applicable" where there is none.

    >>> worst_outcome([Verdict("pass", "time", ""), Verdict("warn", "edge_ec", "")])
    'warn'
    """
    return max(
        (verdict.outcome for verdict in verdicts), key=OUTCOMES.index, default=NOT_APPLICABLE
    )
