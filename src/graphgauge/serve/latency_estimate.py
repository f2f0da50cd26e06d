"""How long explainers take, so that a question is not given to one that cannot answer it in time.

The expected time of an explainer is a running mean of its batches, c <- 0.8 c + 0.2 t. A batch that
was cut off after t seconds tells only that it takes more: c <- max(c, 1.5 t). Each question that
was therefore given to the fallback lowers c by 2 %, so that an explainer that was slow once is
tried again.
"""

_KEPT_WEIGHT, _OVERRUN_FACTOR, _SKIP_FACTOR = 0.8, 1.5, 0.98


class LatencyEstimates:
    """Expected seconds of a batch, by explainer; 0 for one that never ran.

    >>> costs = LatencyEstimates()
    >>> costs.record_batch("a", 0.1); costs.record_batch("a", 0.2)
    >>> round(costs.expected("a"), 3), costs.expected("b")
    (0.12, 0.0)
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def expected(self, name: str) -> float:
        """Seconds of the next batch."""
        return self.seconds.get(name, 0.0)

    def record_batch(self, name: str, seconds: float) -> None:
        """A batch was explained."""
        known = self.seconds.get(name)
        self.seconds[name] = (
            seconds if known is None else _KEPT_WEIGHT * known + (1 - _KEPT_WEIGHT) * seconds
        )

    def record_timeout(self, name: str, seconds: float) -> None:
        """A batch was cut off."""
        self.seconds[name] = max(self.expected(name), _OVERRUN_FACTOR * seconds)

    def record_skip(self, name: str) -> None:
        """A question went to the fallback at once."""
        self.seconds[name] = _SKIP_FACTOR * self.expected(name)
