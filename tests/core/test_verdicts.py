"""Verdicts: what they may be, and which of several is the worst."""

import pytest

from graphgauge.core.errors import BadSetting
from graphgauge.core.verdicts import FAIL, NOT_APPLICABLE, PASS, WARN, Verdict, worst_outcome


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([], NOT_APPLICABLE),
        ([NOT_APPLICABLE, PASS], PASS),
        ([PASS, WARN, PASS], WARN),
        ([FAIL, WARN, PASS, NOT_APPLICABLE], FAIL),
    ],
)
def test_the_worst_outcome_counts(outcomes, expected):
    assert worst_outcome(Verdict(outcome, "time", "") for outcome in outcomes) == expected


def test_other_outcomes_are_refused():
    with pytest.raises(BadSetting, match="'fine' was given"):
        Verdict("fine", "time", "")


def test_a_record_is_plain_data():
    record = Verdict(PASS, "time", "why", 0.1, 5.0, "lrp", (1, 2)).record()
    assert (record["outcome"], record["number"], record["target"], record["is_vacuous"]) == (
        "pass",
        0.1,
        (1, 2),
        False,
    )
