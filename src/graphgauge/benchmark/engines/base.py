"""The interface of an engine: it runs functions elsewhere and returns futures of the standard
library.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import ClassVar, TypeVar

from graphgauge.core import BadSetting

ResultT = TypeVar("ResultT")  #: what a function returns that an engine runs


class Engine(ABC):
    """Runs at most ``places`` functions at a time.

    ``can_stop`` says whether the engine can end a call that exceeds its time limit.
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
    def submit(self, function: Callable[..., ResultT], *args: object) -> "Future[ResultT]":
        """Run a function on a free worker.

        Args:
            function: What is run; the processes, Dask and Ray engines pickle it.
            *args: Its positional arguments, which are pickled with it.

        Returns:
            A future of the standard library that holds the result, or the error that was raised.
        """

    def is_death(self, error: BaseException) -> bool:
        """Whether an error means that a worker died, so that the same call may be repeated."""
        return False

    def abandon(self, future: "Future[ResultT]") -> None:
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
