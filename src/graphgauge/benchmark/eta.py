"""Estimates how long the rest of a run takes.

Shards of one task and network resemble each other, shards of two tasks may differ a hundredfold. So
seconds per explanation are averaged per task and network; where none is measured yet, the mean over
the measured ones is used.
"""

from collections import defaultdict
from dataclasses import dataclass, field

_TaskModel = tuple[str, str]


@dataclass
class TimeEstimate:
    """Remaining and measured work, by (task, model)."""

    left: dict[_TaskModel, int] = field(default_factory=lambda: defaultdict(int))
    seconds: dict[_TaskModel, float] = field(default_factory=lambda: defaultdict(float))
    size: dict[_TaskModel, int] = field(default_factory=lambda: defaultdict(int))

    def plan(self, group: _TaskModel, size: int) -> None:
        """Add explanations that are to be made."""
        self.left[group] += size

    def record(self, group: _TaskModel, size: int, seconds: float) -> None:
        """Record how long some explanations took."""
        self.seconds[group] += seconds
        self.size[group] += size

    def finish(self, group: _TaskModel, size: int, seconds: float) -> None:
        """Record that planned explanations were made."""
        self.left[group] -= size
        self.record(group, size, seconds)

    def seconds_left(self, workers: int) -> float | None:
        """Seconds until the end with so many workers; None if nothing was measured yet."""
        rates = {
            group: self.seconds[group] / self.size[group] for group in self.size if self.size[group]
        }
        if not rates:
            return None
        usual = sum(rates.values()) / len(rates)
        return sum(size * rates.get(group, usual) for group, size in self.left.items()) / max(
            1, workers
        )


def format_duration(seconds: float) -> str:
    """Format seconds for people.

    >>> format_duration(41.2), format_duration(150), format_duration(7320)
    ('41 s', '2 min 30 s', '2 h 2 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
