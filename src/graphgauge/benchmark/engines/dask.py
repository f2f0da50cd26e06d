"""A Dask cluster that is already running (`--engine dask --address tcp://127.0.0.1:8786`), or two
processes started here.

Start workers with one thread each (`dask worker ADDRESS --nthreads 1`): a process measures one
shard at a time. Dask itself moves the work of a worker that died to another one, as often as its
scheduler allows (`distributed.scheduler.allowed-failures`, 3 by default); then the runner takes
over. A cluster that is started here leaves it to the runner at once.
"""

from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from graphgauge.benchmark.engines.base import Engine, ResultT, check_workers
from graphgauge.core import BadSetting, MissingExtra

if TYPE_CHECKING:
    import distributed

_SECONDS_TO_CONNECT = 30


class DaskEngine(Engine):
    """One call at a time for each worker of the cluster, also for workers that join later."""

    name = "dask"

    def __init__(
        self, workers: int | None = None, address: str | None = None, gpus: bool = False
    ) -> None:
        check_workers(workers)
        try:
            import distributed
        except ImportError as error:
            raise MissingExtra(
                "the engine 'dask' needs Dask: pip install \"graphgauge[dask]\"."
            ) from error
        self.distributed, self.shares = distributed, address is None
        try:
            self.client = distributed.Client(
                address or self._start_local_cluster(workers), timeout=_SECONDS_TO_CONNECT
            )
        except (OSError, ValueError, TimeoutError) as error:
            raise BadSetting(f"there is no Dask scheduler at {address!r}: {error}.") from error
        self.tasks: dict[Future[Any], Any] = {}

    def _start_local_cluster(self, workers: int | None) -> "distributed.LocalCluster":
        """Start a cluster that listens to this machine only."""
        options = {
            "threads_per_worker": 1,
            "host": "127.0.0.1",
            "dashboard_address": None,
            "processes": True,
        }
        return self.distributed.LocalCluster(
            n_workers=workers or 2, scheduler_kwargs={"allowed_failures": 0}, **options
        )

    @property
    def places(self) -> int:
        """The number of workers; 1 while there is none, so that work waits for the first."""
        return max(1, len(self.client.scheduler_info(n_workers=-1)["workers"]))

    def submit(self, function: Callable[..., ResultT], *args: object) -> "Future[ResultT]":
        """Run a function on any worker."""
        task = self.client.submit(function, *args, pure=False)
        future: Future[ResultT] = Future()
        future.set_running_or_notify_cancel()
        self.tasks = {
            pending: known_task for pending, known_task in self.tasks.items() if not pending.done()
        } | {future: task}
        task.add_done_callback(lambda done: _resolve_future(future, done))
        return future

    def is_death(self, error: BaseException) -> bool:
        """Whether Dask gave up because one or several workers died."""
        return isinstance(
            error,
            (self.distributed.scheduler.KilledWorker, self.distributed.client.FutureCancelledError),
        )

    def abandon(self, future: "Future[ResultT]") -> None:
        """Restart the worker of a future."""
        task = self.tasks.pop(future)
        busy = [
            worker
            for worker, keys in self.client.processing().items()
            if task.key in map(str, keys)
        ]
        task.cancel(force=True)
        if busy:
            self.client.restart_workers(busy, raise_for_error=False)

    def close(self) -> None:
        """Cancel all work. A cluster that was started here ends; any other keeps running."""
        for task in self.tasks.values():
            task.cancel(force=True)
        cluster = self.client.cluster
        self.client.close()
        if cluster is not None:
            cluster.close()


def _resolve_future(future: "Future[ResultT]", done: "distributed.Future[ResultT]") -> None:
    """Copy the result or the error of a Dask task to a future of the standard library."""
    if future.done():
        return
    try:
        error = done.exception()
    except BaseException as trouble:  # a cancelled task raises its error here
        error = trouble
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(done.result())
