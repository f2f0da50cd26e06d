"""A Ray cluster: `--engine ray --address 10.0.0.1:6379`, or one that is started on this machine.

With GPUs, each shard asks Ray for one, and Ray decides where it runs. When a worker or a node dies,
Ray reports it and the runner submits the shard again (Ray's own retries are off: an explainer that
ends its process would cost eight of them instead of two). All sides must have the same
`RAY_AUTH_MODE`: a token that an earlier `ray.init()` left in the home directory is enforced by a
later `ray start`, but not read by `ray.init(address=...)`. A Ray head listens on all interfaces.
"""

import contextlib
import logging
import os
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from graphgauge.benchmark.engines.base import Engine, ResultT, check_workers
from graphgauge.core import BadSetting, MissingExtra


class RayEngine(Engine):
    """One call at a time for each core of the cluster, or for each GPU."""

    name = "ray"

    def __init__(
        self, workers: int | None = None, address: str | None = None, gpus: bool = False
    ) -> None:
        check_workers(workers)
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            import ray
        except ImportError as error:
            raise MissingExtra(
                "the engine 'ray' needs Ray: pip install \"graphgauge[ray]\"."
            ) from error
        self.ray, self.resource, self.was_started = (
            ray,
            "GPU" if gpus else "CPU",
            ray.is_initialized(),
        )
        self.tasks: dict[Future[Any], Any] = {}
        self.shares = address is None
        self._connect(workers, address)
        self.remote = ray.remote(num_gpus=1 if gpus else 0, num_cpus=1, max_retries=0)(
            _run_function
        )

    def _connect(self, workers: int | None, address: str | None) -> None:
        """Connect to a cluster, or start one here."""
        options: dict[str, Any] = (
            {"address": address}
            if address
            else {"num_cpus": workers or 2, "include_dashboard": False}
        )
        try:
            self.ray.init(
                ignore_reinit_error=True,
                log_to_driver=False,
                logging_level=logging.ERROR,
                **options,
            )
        except (ConnectionError, OSError, ValueError, RuntimeError) as error:
            raise BadSetting(
                f"no Ray cluster answers at {address!r}: {str(error).rstrip('. ')}. Start one "
                "with `ray start --head`; if it runs, "
                "give this command the same RAY_AUTH_MODE and RAY_AUTH_TOKEN (docs/running.md)."
            ) from error

    @property
    def places(self) -> int:
        """The number of cores or GPUs of the cluster at this moment."""
        return max(1, int(self.ray.cluster_resources().get(self.resource, 1)))

    def submit(self, function: Callable[..., ResultT], *args: object) -> "Future[ResultT]":
        """Run a function where Ray has room."""
        task = self.remote.remote(function, *args)
        future: Future[ResultT] = task.future()
        self.tasks = {
            pending: known_task for pending, known_task in self.tasks.items() if not pending.done()
        } | {future: task}
        return future

    def is_death(self, error: BaseException) -> bool:
        """Whether a worker or a node died, with the call or with its result, or the task was
        cancelled because of that.
        """
        kinds = self.ray.exceptions
        deaths = (
            kinds.WorkerCrashedError,
            kinds.NodeDiedError,
            kinds.ObjectLostError,
            kinds.OutOfMemoryError,
        )
        return isinstance(error, (*deaths, kinds.TaskCancelledError))

    def abandon(self, future: "Future[ResultT]") -> None:
        """Kill the process of a future."""
        with contextlib.suppress(self.ray.exceptions.RayError):
            self.ray.cancel(self.tasks.pop(future), force=True)

    def close(self) -> None:
        """Cancel all work and leave the cluster."""
        for future in list(self.tasks):
            if not future.done():
                self.abandon(future)
        if not self.was_started:
            self.ray.shutdown()


def _run_function(function: Callable[..., ResultT], *args: object) -> ResultT:
    """Run a function in a worker of Ray."""
    return function(*args)
