"""What an engine is: something that runs functions elsewhere and gives futures of the standard
library.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Any, ClassVar

from graphgauge.core.errors import BadSetting


class Engine(ABC):
    """Runs at most ``places`` functions at a time. ``can_stop``: does a time limit end what hangs?"""

    name: ClassVar[str]
    can_stop: ClassVar[bool] = True
    #: whether what runs at the same time runs on one machine, so that clocks are disturbed
    shares: bool = True

    @abstractmethod
    def __init__(
        self, workers: int | None = None, address: str | None = None, gpus: bool = False
    ) -> None:
        """``workers``: processes on this machine; ``address``: of a cluster; ``gpus``: each piece
        of work needs one.
        """

    @property
    @abstractmethod
    def places(self) -> int:
        """How many functions can run now."""

    @abstractmethod
    def submit(self, function: Callable[..., Any], *args: Any) -> "Future[Any]":
        """Run a function; its result or error comes with the future."""

    def is_death(self, error: BaseException) -> bool:
        """Whether an error says that a worker died, so that the same may be tried again."""
        return False

    def abandon(self, future: "Future[Any]") -> None:
        """Stop what works on a future; nobody waits for it any more."""
        future.cancel()

    @abstractmethod
    def close(self) -> None:
        """Let all workers go, also those that are at work."""

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
    """Refuse the address of a cluster where none is used."""
    if address is not None:
        raise BadSetting(
            f"the engine {name!r} runs on this machine and takes no address. Use --engine dask or "
            "--engine ray."
        )


def check_workers(workers: int | None) -> None:
    """Refuse what is no number of processes."""
    if workers is not None and workers < 1:
        raise BadSetting(f"workers must be 1 or more, but is {workers}.")
