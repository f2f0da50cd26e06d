"""The interface of an engine: it runs functions elsewhere and returns futures of the standard
library.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Any, ClassVar

from graphgauge.core import BadSetting


class Engine(ABC):
    """Runs at most ``places`` functions at a time. ``can_stop``: whether a time limit ends what
    hangs.
    """

    name: ClassVar[str]
    can_stop: ClassVar[bool] = True
    #: whether what runs at the same time runs on one machine, so that clocks are disturbed
    shares: bool = True

    @abstractmethod
    def __init__(
        self, workers: int | None = None, address: str | None = None, gpus: bool = False
    ) -> None:
        """Start the engine.

        Args:
            workers: Number of processes on this machine.
            address: Address of a running cluster.
            gpus: Whether each call needs a GPU.
        """

    @property
    @abstractmethod
    def places(self) -> int:
        """How many functions can run at this moment."""

    @abstractmethod
    def submit(self, function: Callable[..., Any], *args: Any) -> "Future[Any]":
        """Run a function; the future holds its result or its error."""

    def is_death(self, error: BaseException) -> bool:
        """Whether an error means that a worker died, so that the same call may be repeated."""
        return False

    def abandon(self, future: "Future[Any]") -> None:
        """Stop the worker of a future whose result is no longer needed."""
        future.cancel()

    @abstractmethod
    def close(self) -> None:
        """Stop all workers, also those that are busy."""

    def __enter__(self) -> "Engine":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def check_no_address(name: str, address: str | None) -> None:
    """Raise `BadSetting` if an engine of this machine gets the address of a cluster."""
    if address is not None:
        raise BadSetting(
            f"the engine {name!r} runs on this machine and takes no address. Use --engine dask or "
            "--engine ray."
        )


def check_workers(workers: int | None) -> None:
    """Raise `BadSetting` unless ``workers`` is a positive number or None."""
    if workers is not None and workers < 1:
        raise BadSetting(f"workers must be 1 or more, but is {workers}.")
