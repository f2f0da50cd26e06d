"""Engines: where shards are measured (in this process, in processes, on a Dask or a Ray
cluster).
"""

from graphgauge.benchmark.engines.base import Engine
from graphgauge.core import import_object, lookup

#: every engine and its class, imported when it is asked for
ENGINES = {
    "inline": "graphgauge.benchmark.engines.inline:InlineEngine",
    "processes": "graphgauge.benchmark.engines.processes:ProcessesEngine",
    "dask": "graphgauge.benchmark.engines.dask:DaskEngine",
    "ray": "graphgauge.benchmark.engines.ray:RayEngine",
}

__all__ = ["ENGINES", "Engine", "create_engine"]


def create_engine(
    name: str, workers: int | None = None, address: str | None = None, gpus: bool = False
) -> Engine:
    """Start an engine by its name.

    Args:
        name: "inline", "processes", "dask" or "ray".
        workers: Number of processes on this machine.
        address: Address of a running cluster.
        gpus: Whether each shard needs a GPU.
    """
    make: type[Engine] = import_object(lookup(ENGINES, name, "engine"))
    return make(workers=workers, address=address, gpus=gpus)
