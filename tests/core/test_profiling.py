"""Seconds of phases are added up by name, also when a phase fails; without a listener nothing is
kept.
"""

import pytest

from graphgauge.core import profiling as phases
from graphgauge.core.profiling import record_phases, timed_phase


def test_seconds_are_added_up_by_name(monkeypatch):
    ticks = iter([1.0, 3.0, 10.0, 14.0, 20.0, 21.0])
    monkeypatch.setattr(phases.time, "perf_counter", lambda: next(ticks))
    with record_phases() as seconds:
        with timed_phase("curves"):
            pass
        with timed_phase("timing"):
            pass
        with pytest.raises(ZeroDivisionError), timed_phase("curves"):
            raise ZeroDivisionError
    assert seconds == {"curves": 3.0, "timing": 4.0}


def test_each_listener_hears_what_is_inside_it():
    with record_phases() as outer:
        with timed_phase("first"):
            pass
        with record_phases() as inner, timed_phase("second"):
            pass
    with timed_phase("third"):
        pass
    assert (list(outer), list(inner)) == (["first"], ["second"])
