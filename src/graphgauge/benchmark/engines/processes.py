"""Processes on this machine: each place is a pool of one process (loky).

One process per pool, because when a worker dies loky gives up the whole pool: so it is known which
piece of work was under way, and no other is disturbed. A hanging worker is killed the same way. A
pool that is gone is built anew when it is next needed.
"""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from loky import ProcessPoolExecutor

from graphgauge.benchmark.engines.base import Engine, check_no_address, check_workers

SECONDS_BETWEEN_LOOKS = 1.0


class ProcessesEngine(Engine):
    """``workers`` processes; by default one for every core."""

    name = "processes"

    def __init__(
        self, workers: int | None = None, address: str | None = None, gpus: bool = False
    ) -> None:
        check_no_address(self.name, address)
        check_workers(workers)
        self.workers = workers or os.cpu_count() or 1
        self.pools: list[ProcessPoolExecutor | None] = [None] * self.workers
        self.busy: dict[Future[Any], int] = {}

    @property
    def places(self) -> int:
        """One for each process."""
        return self.workers

    def submit(self, function: Callable[..., Any], *args: Any) -> "Future[Any]":
        """Run it in a free process."""
        self.busy = {future: number for future, number in self.busy.items() if not future.done()}
        free = next(number for number in range(self.workers) if number not in self.busy.values())
        self.start_all()
        future = self.started(free, function, *args)
        self.busy[future] = free
        return future

    def started(self, number: int, function: Callable[..., Any], *args: Any) -> "Future[Any]":
        """In the pool of a place; in a new one where it has died."""
        with contextlib.suppress(BrokenProcessPool):
            return self.pool(number).submit(function, *args)
        self.drop(number)
        self.start_all()
        return self.pool(number).submit(function, *args)

    def pool(self, number: int) -> ProcessPoolExecutor:
        """The pool of a place."""
        found = self.pools[number]
        if found is None:
            found = ProcessPoolExecutor(
                max_workers=1, initializer=prepare, initargs=(os.getpid(), threads_of(self.workers))
            )
            self.pools[number] = found
        return found

    def start_all(self) -> None:
        """Start the processes that are missing, all at once; the time limit of a shard does not pay
        for their imports.
        """
        new = [number for number, pool in enumerate(self.pools) if pool is None]
        for begun in [self.pool(number).submit(import_what_is_needed) for number in new]:
            begun.result()

    def is_death(self, error: BaseException) -> bool:
        """A process that ended, by itself or killed."""
        return isinstance(error, BrokenProcessPool)

    def abandon(self, future: "Future[Any]") -> None:
        """Kill the process that works on it."""
        self.drop(self.busy[future])

    def drop(self, number: int) -> None:
        """End a pool with its process; one that is at work is killed."""
        found, self.pools[number] = self.pools[number], None
        if found is not None:
            is_busy = any(own == number and not future.done() for future, own in self.busy.items())
            found.shutdown(wait=True, kill_workers=is_busy)

    def close(self) -> None:
        """End all."""
        for number in range(self.workers):
            self.drop(number)


def threads_of(workers: int) -> int:
    """Threads of each process: as OMP_NUM_THREADS says, else the cores are shared."""
    said = os.environ.get("OMP_NUM_THREADS", "")
    return (
        int(said) if said.isdigit() and int(said) > 0 else max(1, (os.cpu_count() or 1) // workers)
    )


def prepare(parent: int, threads: int) -> None:
    """In a new process: Ctrl-C is the runner's business, the cores are shared, and no process
    outlives the runner.

    A worker keeps models open. Loky would take that for a leak and start it anew after every shard.
    """
    import torch
    from loky import process_executor

    process_executor._MAX_MEMORY_LEAK_SIZE = sys.maxsize
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(threads)
    threading.Thread(target=end_with, args=(parent,), daemon=True).start()


def import_what_is_needed() -> None:
    """What takes seconds in a new process."""
    import graphgauge.benchmark.work  # noqa: F401


def end_with(parent: int) -> None:
    """End this process when its parent is gone."""
    while os.getppid() == parent:
        time.sleep(SECONDS_BETWEEN_LOOKS)
    os._exit(1)
