"""One progress bar per call, however deep the work is nested; none where nobody looks (not a
terminal).

with progress(total=100, title="gnn_explainer"):
    ... advance_progress(1) ...

Work in phases of different cost has a bar that is filled by time (`phase_bar`): what is left is
estimated from what the phases before took.

Work that tells its progress can also be given a time limit: it ends with `OutOfTime` at its first
step after that.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from graphgauge.core.errors import OutOfTime

_BAR_FORMAT = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}"
_PHASE_BAR_FORMAT = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}{postfix}"
_SECONDS_BEFORE_SHOWN = 1.0
_SECONDS_BETWEEN_DRAWINGS = 0.1
_TRUSTED_SHARE = 0.1  #: of a phase, from which on its own speed says how long it takes

#: the bar that `advance_progress` moves; None: there is no call yet; False: this call is inside
#: another one, which has the bar
_current: ContextVar[Any] = ContextVar("bar", default=None)
#: when `advance_progress` ends the work, by `time.monotonic`
_deadline: ContextVar[float] = ContextVar("deadline", default=float("inf"))


@contextmanager
def progress_bar(total: float, title: str) -> Iterator[None]:
    """Show how much of ``total`` is done; inside another call's bar, nothing."""
    outer = _current.get()
    if outer is not None:
        counts = isinstance(outer, PhaseBar) and outer.counts_calls
        with use_bar(outer if counts else False):
            yield
        return
    bar = _make_bar(total, desc=title, bar_format=_BAR_FORMAT)
    with bar, use_bar(bar):
        yield


def _make_bar(total: float, **options: Any) -> Any:
    """A bar on a terminal; one that is disabled anywhere else."""
    from tqdm.auto import tqdm

    return tqdm(total=total, disable=None, delay=_SECONDS_BEFORE_SHOWN, leave=False, **options)


@dataclass
class Phase:
    """A part of the work of a call, as a `PhaseBar` sees it.

    Args:
        title: What the bar says while it lasts.
        steps: How many steps `advance_progress` tells of it.
        seconds: How long it may take. This can be set again when more is known.
        kind: Phases of one kind are estimated alike: if one took twice as long as expected, so
            will the others.
        counts_calls: Whether its steps are those that calls inside tell, such as the explanations
            of an explainer.
        done: Steps that are done.
        spent: Seconds that it has taken so far.
    """

    title: str
    steps: float
    seconds: float
    kind: str
    counts_calls: bool = False
    done: float = 0.0
    spent: float = 0.0

    @property
    def is_over(self) -> bool:
        """Whether all steps are done."""
        return self.done >= self.steps

    def seconds_left(self, factor: float = 1.0) -> float:
        """How long the rest takes, if phases of this kind take ``factor`` times what is expected.

        >>> Phase("stability", steps=10, seconds=8.0, kind="stability").seconds_left()
        8.0
        >>> Phase("stability", 10, seconds=8.0, kind="stability", done=5, spent=3.0).seconds_left()
        3.0

        Args:
            factor: How much longer than expected phases of this kind took.
        """
        if self.is_over:
            return 0.0
        share = self.done / self.steps
        if share > _TRUSTED_SHARE and self.spent:
            return self.spent / share * (1 - share)
        expected = self.seconds * factor
        return max(expected - self.spent, expected / 20)


@dataclass
class PhaseBar:
    """A bar that is filled by time: seconds spent, of those spent and those that are left.

    `advance_progress` moves it like any other bar.

    Args:
        phases: What there is to do.
        bar: The bar that is drawn; None: nothing is shown.
    """

    phases: Sequence[Phase]
    bar: Any = None
    _phase: Phase | None = None
    _end: float = 0.0  #: steps of the phase that are done when `run` ends
    _since: float = 0.0  #: when the seconds of the phase were last counted
    _drawn: float = field(default=float("-inf"))

    @property
    def disable(self) -> bool:
        """Whether nothing moves now."""
        return self.bar is None or self._phase is None

    @property
    def counts_calls(self) -> bool:
        """Whether calls inside move this bar."""
        return self._phase is not None and self._phase.counts_calls

    @property
    def total(self) -> float:
        """Where the steps that run now end."""
        return self._end

    @property
    def n(self) -> float:
        """Steps of the phase that are done."""
        return 0.0 if self._phase is None else self._phase.done

    @contextmanager
    def run(self, phase: Phase, steps: float) -> Iterator[None]:
        """Do some steps of a phase; at the end they count as done.

        Args:
            phase: The phase.
            steps: How many of its steps are done inside.
        """
        if self.bar is None:
            yield
            return
        self._phase, self._end = phase, min(phase.done + steps, phase.steps)
        self._since = time.monotonic()
        self._draw()
        try:
            yield
            phase.done = self._end
        finally:
            self._count_seconds()
            self._phase = None

    def update(self, amount: float) -> None:
        """Count steps; draw now and then."""
        if self._phase is not None:
            self._phase.done += amount
            if time.monotonic() - self._drawn > _SECONDS_BETWEEN_DRAWINGS:
                self._count_seconds()
                self._draw()

    def seconds_left(self) -> float:
        """How long all that is not done will take."""
        return sum(phase.seconds_left(self._factor(phase.kind)) for phase in self.phases)

    def _factor(self, kind: str) -> float:
        """How much longer than expected the phases of a kind took that are over."""
        over = [phase for phase in self.phases if phase.kind == kind and phase.is_over]
        expected = sum(phase.seconds for phase in over if phase.spent)
        return sum(phase.spent for phase in over) / expected if expected else 1.0

    def _count_seconds(self) -> None:
        """Add the seconds since the last count to the phase."""
        now = time.monotonic()
        if self._phase is not None:
            self._phase.spent += now - self._since
        self._since = now

    def _draw(self) -> None:
        """Show the phase, the share that is done, and the seconds that are left."""
        if self._phase is None:
            return
        self._drawn = time.monotonic()
        spent, left = sum(phase.spent for phase in self.phases), self.seconds_left()
        share = spent / (spent + left) if spent else 0.0
        self.bar.set_description_str(self._phase.title, refresh=False)
        text = f"about {self.bar.format_interval(round(left))} left"
        self.bar.set_postfix_str(text, refresh=False)
        self.bar.update(max(share - self.bar.n, 0.0))  # never back


@contextmanager
def phase_bar(phases: Sequence[Phase]) -> Iterator[PhaseBar]:
    """Show which phase runs, and how long all of them take; inside another call's bar, nothing.

    Args:
        phases: What there is to do. Each is done inside `PhaseBar.run`.
    """
    if _current.get() is not None:
        with use_bar(False):
            yield PhaseBar(phases)
        return
    with _make_bar(1.0, bar_format=_PHASE_BAR_FORMAT, mininterval=0, miniters=0) as bar:
        found = PhaseBar(phases, None if bar.disable else bar)
        with use_bar(found):
            yield found


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
