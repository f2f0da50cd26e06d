"""Work that tells its progress can be given a time limit."""

import time

import pytest

from graphgauge.core.errors import OutOfTime
from graphgauge.core.progress import advance_progress, time_limit


def test_work_ends_at_its_first_step_after_the_limit():
    steps = []
    with pytest.raises(OutOfTime, match="the time limit of this call is over"), time_limit(0.05):
        while True:
            advance_progress(1)
            steps.append(time.sleep(0.02))
    assert 1 <= len(steps) <= 3


def test_without_a_limit_and_after_one_work_goes_on():
    with time_limit(60):
        advance_progress(1)
    with time_limit(0.0):
        pass
    time.sleep(0.001)
    advance_progress(1)


def test_the_earlier_of_two_limits_holds():
    with time_limit(0.0), time_limit(60):
        time.sleep(0.001)
        with pytest.raises(OutOfTime):
            advance_progress(1)
