"""Seconds of phases are added up by name, also when a phase fails; without a listener nothing is
kept.
"""

import pytest

from graphgauge.core import phases
from graphgauge.core.phases import clocked, phase


def test_seconds_are_added_up_by_name(monkeypatch):
    ticks = iter([1.0, 3.0, 10.0, 14.0, 20.0, 21.0])
    monkeypatch.setattr(phases.time, "perf_counter", lambda: next(ticks))
    with clocked() as seconds:
        with phase("curves"):
            pass
        with phase("timing"):
            pass
        with pytest.raises(ZeroDivisionError), phase("curves"):
            raise ZeroDivisionError
    assert seconds == {"curves": 3.0, "timing": 4.0}


def test_each_listener_hears_what_is_inside_it():
    with clocked() as outer:
        with phase("first"):
            pass
        with clocked() as inner, phase("second"):
            pass
    with phase("third"):
        pass
    assert (list(outer), list(inner)) == (["first"], ["second"])
