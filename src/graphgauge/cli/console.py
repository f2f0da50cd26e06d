"""What all commands agree on: exit codes, what goes where, and when there is colour.

stdout   the data that was asked for, text or with --json one JSON document; nothing else
stderr   progress, notes and errors; with --quiet errors only

    0  pass               every threshold is met, or there was none
    1  below threshold    something was judged, and is not good enough
    2  usage              the command, a file or a setting must be corrected first; the message
                          says which
    3  incomplete         something that must be judged has no value, or the command was
                          interrupted or failed

Colour is for terminals, and never where NO_COLOR is set to anything (https://no-color.org) or TERM
is "dumb".
"""

import json
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Annotated, Any, TextIO

import typer

from graphgauge.core import GraphgaugeError, OutOfMemory


class ExitCode(IntEnum):
    """How a command ended."""

    PASS = 0
    BELOW = 1
    USAGE = 2
    INCOMPLETE = 3


JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress and no notes on stderr.")
]
ConfigArgument = Annotated[
    str | None,
    typer.Argument(help="Project file, YAML or TOML (default: graphgauge.yaml, if it is here)."),
]
EXIT_LABELS = {
    ExitCode.PASS: "pass",
    ExitCode.BELOW: "below threshold",
    ExitCode.USAGE: "refused",
    ExitCode.INCOMPLETE: "incomplete",
}
_WORD_COLOURS = {"pass": "green", "warn": "yellow", "undecided": "yellow", "fail": "red"}
_WORD_COLOURS |= {"below threshold": "red", "refused": "red", "incomplete": "yellow"}
_WORD_COLOURS |= {
    "passed": "green",
    "noted": "yellow",
    "failed": "red",
    "missing": "yellow",
    "broken": "red",
    "ok": "green",
}


def command_group(help: str) -> typer.Typer:
    """A command that only holds further commands."""
    return typer.Typer(
        help=help,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )


def _use_colour(stream: TextIO | None = None) -> bool:
    """Whether a stream is to be coloured."""
    place = sys.stdout if stream is None else stream
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and place.isatty()


def colour_word(word: str, width: int = 0) -> str:
    """An outcome in its colour, where there is colour; filled up with spaces to ``width``."""
    filled = word.ljust(width)
    colour = _WORD_COLOURS.get(word) if _use_colour() else None
    return filled if colour is None else typer.style(filled, fg=colour)


def json_text(found: Any) -> str:
    """For programs: NaN and infinity, which JSON does not know, are null."""
    return json.dumps(_replace_nan(found), indent=2, allow_nan=False)


def _replace_nan(found: Any) -> Any:
    """Plain data with None for what is no number.

    >>> _replace_nan({"a": (1.5, float("nan"))})
    {'a': [1.5, None]}
    """
    if isinstance(found, dict):
        return {str(key): _replace_nan(value) for key, value in found.items()}
    if isinstance(found, (list, tuple)):
        return [_replace_nan(value) for value in found]
    return None if isinstance(found, float) and found - found != 0 else found


def print_answer(found: Any, text: Callable[[Any], str], as_data: bool) -> None:
    """The answer on stdout, as text or as JSON."""
    typer.echo(json_text(found) if as_data else text(found), color=None if _use_colour() else False)


class Notifier:
    """Tells people, on stderr, what is going on; with ``quiet`` nothing."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet

    def __call__(self, text: str) -> None:
        if not self.quiet:
            typer.echo(text, err=True)


@contextmanager
def notifications(quiet: bool) -> Iterator[Notifier]:
    """A teller, with progress bars and warnings as it says."""
    from graphgauge.core import silence_progress

    tell = Notifier(quiet)
    with warnings.catch_warnings(), silence_progress(quiet):
        warnings.showwarning = lambda message, *_, **__: tell(f"graphgauge: note: {message}")
        yield tell


@contextmanager
def sigterm_as_ctrl_c() -> Iterator[None]:
    """SIGTERM, with which batch systems and containers end a process, stops the run in order, as
    Ctrl-C does.

    Python lets only the main thread say so; elsewhere SIGTERM stays as it is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def run_app(app: Callable[[], Any]) -> None:
    """Run the command line; what goes wrong becomes its exit code, and our own errors one line."""
    try:
        app()
    except GraphgaugeError as error:
        from graphgauge.lifecycle import add_project_file_hint

        typer.echo(f"graphgauge: error: {add_project_file_hint(error)}", err=True)
        sys.exit(ExitCode.INCOMPLETE if isinstance(error, OutOfMemory) else ExitCode.USAGE)
    except (
        Exception
    ):  # a defect, here or in the user's network: no verdict came out of it, so 1 would be wrong
        traceback.print_exc()
        sys.exit(ExitCode.INCOMPLETE)
