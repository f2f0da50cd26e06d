"""Where the seconds of a call go.

>>> with record_phases() as seconds:
...     with timed_phase("curves"):
...         pass
>>> list(seconds)
['curves']

What a GPU has been asked for but not handed over yet counts for the phase that waits for it.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

_Name = TypeVar("_Name")
_seconds: ContextVar[dict[str, float] | None] = ContextVar("seconds", default=None)


@contextmanager
def record_phases() -> Iterator[dict[str, float]]:
    """Seconds of each phase inside, by name."""
    found: dict[str, float] = {}
    token = _seconds.set(found)
    try:
        yield found
    finally:
        _seconds.reset(token)


@contextmanager
def timed_phase(name: str) -> Iterator[None]:
    """Count the seconds inside for ``name``, if anyone wants to know."""
    found, start = _seconds.get(), time.perf_counter()
    try:
        yield
    finally:
        if found is not None:
            found[name] = found.get(name, 0.0) + time.perf_counter() - start


def sum_phases(*parts: Mapping[_Name, float]) -> dict[_Name, float]:
    """The seconds of several calls.

    >>> sum_phases({"curves": 1.0}, {"curves": 2.0, "timing": 4.0})
    {'curves': 3.0, 'timing': 4.0}
    """
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: sum(part.get(name, 0.0) for part in parts) for name in names}
