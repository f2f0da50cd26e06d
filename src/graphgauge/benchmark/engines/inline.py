"""Runs everything in this process, one call after the other. A call that hangs or exits ends the
whole run.
"""

from collections.abc import Callable
from concurrent.futures import Future

from graphgauge.benchmark.engines.base import Engine, ResultT, check_no_address


class InlineEngine(Engine):
    """`submit` returns when the call has finished."""

    name = "inline"
    can_stop = False
    places = 1

    def __init__(
        self, workers: int | None = None, address: str | None = None, gpus: bool = False
    ) -> None:
        check_no_address(self.name, address)

    def submit(self, function: Callable[..., ResultT], *args: object) -> "Future[ResultT]":
        """Run the function now."""
        future: Future[ResultT] = Future()
        try:
            future.set_result(function(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def close(self) -> None:
        """Do nothing: there are no workers."""
