"""In this process, one after the other. What hangs or exits takes the run with it."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from graphgauge.benchmark.engines.base import Engine, check_no_address


class InlineEngine(Engine):
    """`submit` returns when the work is done."""

    name = "inline"
    can_stop = False
    places = 1

    def __init__(
        self, workers: int | None = None, address: str | None = None, gpus: bool = False
    ) -> None:
        check_no_address(self.name, address)

    def submit(self, function: Callable[..., Any], *args: Any) -> "Future[Any]":
        """Run it now."""
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def close(self) -> None:
        """There is nobody to let go."""
