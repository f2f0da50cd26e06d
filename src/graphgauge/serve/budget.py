"""How long explainers take, so that a question is not given to one that cannot answer it in time.

The expected time of an explainer is a running mean of its batches, c <- 0.8 c + 0.2 t. A batch that
was cut off after t seconds tells only that it takes more: c <- max(c, 1.5 t). Each question that
was therefore given to the fallback lowers c by 2 %, so that an explainer that was slow once is
tried again.
"""

KEPT, OVERRUN, FORGOTTEN = 0.8, 1.5, 0.98


class Costs:
    """Expected seconds of a batch, by explainer; 0 for one that never ran.

    >>> costs = Costs()
    >>> costs.ran("a", 0.1); costs.ran("a", 0.2)
    >>> round(costs.expected("a"), 3), costs.expected("b")
    (0.12, 0.0)
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def expected(self, name: str) -> float:
        """Seconds of the next batch."""
        return self.seconds.get(name, 0.0)

    def ran(self, name: str, seconds: float) -> None:
        """A batch was explained."""
        known = self.seconds.get(name)
        self.seconds[name] = seconds if known is None else KEPT * known + (1 - KEPT) * seconds

    def overran(self, name: str, seconds: float) -> None:
        """A batch was cut off."""
        self.seconds[name] = max(self.expected(name), OVERRUN * seconds)

    def skipped(self, name: str) -> None:
        """A question went to the fallback at once."""
        self.seconds[name] = FORGOTTEN * self.expected(name)
