"""Exit codes, colour, quiet and JSON, the same for all commands."""

import io
import json
import warnings

import pytest
import typer

from graphgauge.cli.console import (
    _WORD_COLOURS,
    ExitCode,
    _use_colour,
    colour_word,
    json_text,
    notifications,
    run_app,
)
from graphgauge.core.errors import BadSetting, OutOfMemory
from graphgauge.core.progress import progress_bar


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("environment", "is_terminal", "coloured"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": "0"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"TERM": "dumb"}, True, False),
    ],
)
def test_colour_is_for_terminals_that_want_it(monkeypatch, environment, is_terminal, coloured):
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout", Terminal() if is_terminal else io.StringIO())
    assert _use_colour() == coloured
    assert colour_word("fail", 6) == ("\x1b[31mfail  \x1b[0m" if coloured else "fail  ")
    assert colour_word("not applicable") == "not applicable"
    assert "not applicable" not in _WORD_COLOURS


def test_json_has_no_nan_and_keys_are_texts():
    found = json.loads(
        json_text(
            {
                1: [float("nan"), float("inf"), -float("inf"), 0.5, 3, True, None],
                "a": ({"b": 1e-9},),
            }
        )
    )
    assert found == {"1": [None, None, None, 0.5, 3, True, None], "a": [{"b": 1e-9}]}


@pytest.mark.parametrize(
    ("quiet", "expected"), [(False, "working\ngraphgauge: note: mind this\n"), (True, "")]
)
def test_notes_go_to_stderr_unless_quiet(capsys, quiet, expected):
    with notifications(quiet) as tell:
        warnings.simplefilter("always")
        tell("working")
        warnings.warn("mind this", UserWarning, stacklevel=1)
    assert capsys.readouterr() == ("", expected)


def test_quiet_has_no_progress_bar_even_on_a_terminal(monkeypatch):
    monkeypatch.setattr("graphgauge.core.progress._SECONDS_BEFORE_SHOWN", 0)
    for quiet in (True, False):
        screen = Terminal()
        monkeypatch.setattr("sys.stderr", screen)
        with notifications(quiet), progress_bar(2, "measuring"):
            pass
        assert ("measuring" in screen.getvalue()) is not quiet


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (BadSetting("no such thing."), ExitCode.USAGE, "graphgauge: error: no such thing.\n"),
        (OutOfMemory("too large."), ExitCode.INCOMPLETE, "graphgauge: error: too large.\n"),
        (ZeroDivisionError("a defect"), ExitCode.INCOMPLETE, "ZeroDivisionError: a defect\n"),
    ],
)
def test_what_goes_wrong_never_looks_like_a_verdict(capsys, error, code, told):
    def app():
        raise error

    with pytest.raises(SystemExit) as caught:
        run_app(app)
    assert caught.value.code == code
    assert capsys.readouterr().err.endswith(told)


def test_the_codes_are_the_documented_ones():
    assert [(code.name, int(code)) for code in ExitCode] == [
        ("PASS", 0),
        ("BELOW", 1),
        ("USAGE", 2),
        ("INCOMPLETE", 3),
    ]
    assert typer.Exit(ExitCode.BELOW).exit_code == 1
