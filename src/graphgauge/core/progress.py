"""One progress bar per call, however deep the work is nested; none where nobody looks (not a
terminal).

with progress(total=100, title="gnn_explainer"):
    ... advance_progress(1) ...

Work that tells its progress can also be given a time limit: it ends with `OutOfTime` at its first
step after that.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from graphgauge.core.errors import OutOfTime

_BAR_FORMAT = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}"
_SECONDS_BEFORE_SHOWN = 1.0

#: the bar that `advance_progress` moves; None: there is no call yet; False: this call is inside
#: another one, which has the bar
_current: ContextVar[Any] = ContextVar("bar", default=None)
#: when `advance_progress` ends the work, by `time.monotonic`
_deadline: ContextVar[float] = ContextVar("deadline", default=float("inf"))


@contextmanager
def progress_bar(total: float, title: str) -> Iterator[None]:
    """Show how much of ``total`` is done; inside another call's bar, nothing."""
    if _current.get() is not None:
        with use_bar(False):
            yield
        return
    from tqdm.auto import tqdm

    bar = tqdm(
        total=total,
        desc=title,
        disable=None,
        delay=_SECONDS_BEFORE_SHOWN,
        leave=False,
        bar_format=_BAR_FORMAT,
    )
    with bar, use_bar(bar):
        yield


@contextmanager
def silence_progress(wanted: bool = True) -> Iterator[None]:
    """No bar at all inside, if ``wanted``."""
    with use_bar(False) if wanted else nullcontext():
        yield


@contextmanager
def use_bar(bar: Any) -> Iterator[None]:
    """Let `advance_progress` move ``bar``."""
    token = _current.set(bar)
    try:
        yield
    finally:
        _current.reset(token)


def advance_progress(amount: float) -> None:
    """Move the bar of the running call, never beyond its end; end the call if its time is over."""
    if time.monotonic() > _deadline.get():
        raise OutOfTime(
            "the time limit of this call is over. Give it more time, or take an explainer that is "
            "faster."
        )
    bar = _current.get()
    if bar and not bar.disable:
        bar.update(min(amount, bar.total - bar.n))


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """End the work inside with `OutOfTime` when the time limit is over.

    The first `advance_progress` after so many seconds raises. Of nested limits the earlier one
    holds.
    """
    token = _deadline.set(min(_deadline.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        _deadline.reset(token)
