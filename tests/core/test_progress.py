"""Work that tells its progress can be given a time limit; a bar of phases is filled by time."""

import time

import pytest

from graphgauge.core import progress
from graphgauge.core.errors import OutOfTime
from graphgauge.core.progress import (
    Phase,
    PhaseBar,
    advance_progress,
    phase_bar,
    progress_bar,
    time_limit,
    use_bar,
)


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


# --- phases ---------------------------------------------------------------------------------------


class DrawnBar:
    """A bar that remembers what it was asked to show."""

    def __init__(self):
        self.n, self.shown = 0.0, []

    def format_interval(self, seconds):
        return str(seconds)

    def set_description_str(self, text, refresh):
        self.title = text

    def set_postfix_str(self, text, refresh):
        self.left = text

    def update(self, share):
        self.n += share
        self.shown.append((self.title, round(self.n, 3), self.left))


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass when the test says so."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_the_bar_is_filled_by_time_and_not_by_steps(clock):
    cheap, dear = (
        Phase("explaining", steps=90, seconds=1.0, kind="explaining"),
        Phase("stability", steps=10, seconds=9.0, kind="stability"),
    )
    bar = PhaseBar([cheap, dear], DrawnBar())
    with use_bar(bar):
        with bar.run(cheap, 90):
            clock[0] = 1.0
        with bar.run(dear, 10):
            clock[0] = 2.0
            advance_progress(5)
    assert bar.bar.shown == [
        ("explaining", 0.0, "about 10 left"),
        ("stability", 0.1, "about 9 left"),
        ("stability", 0.667, "about 1 left"),  # half of it took one second
    ]


def test_phases_of_a_kind_are_expected_to_miss_their_estimate_alike(clock):
    first, second = (Phase(name, 1, seconds=1.0, kind="stability") for name in "ab")
    bar = PhaseBar([first, second], DrawnBar())
    with bar.run(first, 1):
        clock[0] = 3.0
    assert bar.seconds_left() == 3.0


def test_the_bar_never_goes_back(clock):
    first, second = Phase("a", 1, 1.0, kind="a"), Phase("b", 1, 1.0, kind="b")
    bar = PhaseBar([first, second], DrawnBar())
    with bar.run(first, 1):
        clock[0] = 1.0
    second.seconds = 99.0
    with bar.run(second, 1):
        pass
    first.done, first.spent = 0.0, 0.5
    with bar.run(second, 0):
        pass
    shares = [share for _, share, _ in bar.bar.shown]
    assert shares == sorted(shares)


def test_calls_inside_move_a_bar_that_counts_them_and_no_other():
    counted = Phase("explaining", 10, 1.0, kind="a", counts_calls=True)
    timed = Phase("time", 10, 1.0, kind="b")
    bar = PhaseBar([counted, timed], DrawnBar())
    for phase, steps in ((counted, 4), (timed, 0)):
        with use_bar(bar), bar.run(phase, 10):
            with progress_bar(4, "saliency"):
                advance_progress(4)
            assert phase.done == steps


def test_phases_inside_another_bar_show_nothing():
    outer = DrawnBar()
    outer.disable, outer.total = False, 10
    phase = Phase("explaining", 10, 1.0, kind="a")
    with use_bar(outer), phase_bar([phase]) as bar, bar.run(phase, 10):
        advance_progress(4)
    assert outer.shown == []
