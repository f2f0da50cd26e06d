"""Processes on this machine; each has a pool of one process (loky) of its own.

When a worker dies, loky gives up the whole pool. With one process per pool, the runner knows which
call was running, and no other call is disturbed. A hanging worker is killed in the same way. A pool
that has ended is created again when it is next needed.
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

from graphgauge.benchmark.engines.base import Engine, ResultT, check_no_address, check_workers

_PARENT_CHECK_SECONDS = 1.0


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
        """The number of processes."""
        return self.workers

    def submit(self, function: Callable[..., ResultT], *args: object) -> "Future[ResultT]":
        """Run a function in a free process."""
        self.busy = {future: number for future, number in self.busy.items() if not future.done()}
        free = next(number for number in range(self.workers) if number not in self.busy.values())
        self._start_all()
        future = self._submit_to_pool(free, function, *args)
        self.busy[future] = free
        return future

    def _submit_to_pool(
        self, number: int, function: Callable[..., ResultT], *args: object
    ) -> "Future[ResultT]":
        """Submit a call to one of the pools; if that pool has died, to a new one."""
        with contextlib.suppress(BrokenProcessPool):
            return self._pool(number).submit(function, *args)
        self._drop(number)
        self._start_all()
        return self._pool(number).submit(function, *args)

    def _pool(self, number: int) -> ProcessPoolExecutor:
        """One of the pools; it is created if it does not exist."""
        pool = self.pools[number]
        if pool is None:
            pool = ProcessPoolExecutor(
                max_workers=1,
                initializer=_initialise_worker,
                initargs=(os.getpid(), _threads_per_worker(self.workers)),
            )
            self.pools[number] = pool
        return pool

    def _start_all(self) -> None:
        """Start all missing processes at once, so that their imports do not count for the time
        limit of a shard.
        """
        missing = [number for number, pool in enumerate(self.pools) if pool is None]
        for started in [self._pool(number).submit(_import_worker_module) for number in missing]:
            started.result()

    def is_death(self, error: BaseException) -> bool:
        """Whether a process ended, by itself or because it was killed."""
        return isinstance(error, BrokenProcessPool)

    def abandon(self, future: "Future[ResultT]") -> None:
        """Kill the process of a future."""
        self._drop(self.busy[future])

    def _drop(self, number: int) -> None:
        """End a pool and its process; a busy process is killed."""
        pool, self.pools[number] = self.pools[number], None
        if pool is not None:
            is_busy = any(
                pool_number == number and not future.done()
                for future, pool_number in self.busy.items()
            )
            pool.shutdown(wait=True, kill_workers=is_busy)

    def close(self) -> None:
        """End all processes."""
        for number in range(self.workers):
            self._drop(number)


def _threads_per_worker(workers: int) -> int:
    """Threads of each process: OMP_NUM_THREADS if it is set, else an equal share of the cores."""
    setting = os.environ.get("OMP_NUM_THREADS", "")
    return (
        int(setting)
        if setting.isdigit() and int(setting) > 0
        else max(1, (os.cpu_count() or 1) // workers)
    )


def _initialise_worker(parent: int, threads: int) -> None:
    """Prepare a new process: it ignores Ctrl-C, shares the cores, and ends when the runner ends.

    A worker keeps models in memory. Loky would take that for a leak and restart the process after
    every shard.
    """
    import torch
    from loky import process_executor

    process_executor._MAX_MEMORY_LEAK_SIZE = sys.maxsize
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(threads)
    threading.Thread(target=_exit_with_parent, args=(parent,), daemon=True).start()


def _import_worker_module() -> None:
    """Import in a new process what takes seconds to import."""
    import graphgauge.benchmark.worker  # noqa: F401


def _exit_with_parent(parent: int) -> None:
    """End this process when its parent has ended."""
    while os.getppid() == parent:
        time.sleep(_PARENT_CHECK_SECONDS)
    os._exit(1)
