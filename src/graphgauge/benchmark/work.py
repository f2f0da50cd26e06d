"""The work of a worker: measure one shard, and return its rows or what went wrong.

An explainer is foreign code. It may raise, print, end the process, change the network or the data.
Whatever can be caught is caught here and becomes a `Fault`; the model is then loaded again. What
goes wrong before any explainer is called (a missing file, other data than planned) is no fault of
an explainer, and is raised.
"""

import contextlib
import io
import math
import os
import platform
import socket
import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from graphgauge.benchmark.outcomes import Fault, Outcome
from graphgauge.benchmark.planning import Place, digest_of_network, wrapped
from graphgauge.benchmark.shards import Named, Shard
from graphgauge.core.digests import digest_of_tensors
from graphgauge.core.errors import BadGraph, BadModel, ChangedModel, GraphgaugeWarning
from graphgauge.core.phases import clocked, phase
from graphgauge.core.progress import replaced
from graphgauge.datasets import load, trained
from graphgauge.datasets.fingerprints import digest as digest_of_data
from graphgauge.evaluation import Evaluator, Results, Settings
from graphgauge.explainers import find_explainer
from graphgauge.metrics import METRICS
from graphgauge.models import BaseModel

MOST_MODELS = 2  #: kept open between shards
LONGEST_MESSAGE = 600


@dataclass
class Opened:
    """The models that this process has loaded; one shard at a time uses them."""

    models: "OrderedDict[tuple[Any, ...], BaseModel]" = field(default_factory=OrderedDict)
    lock: Any = field(default_factory=threading.RLock)


OPENED = Opened()


def measured(shard: Shard, place: Place) -> Outcome:
    """Measure a shard."""
    # report stands above benchmark; imported here because a missing package is no explainer's fault
    from graphgauge.report.keeping import records_to_keep

    with OPENED.lock, clocked() as phases:
        model = model_of(shard, place)
        start = time.perf_counter()
        try:
            with silence() as remarks:
                rows, examples = compared(model, shard, records_to_keep)
            fault = None
        except (Exception, SystemExit) as error:
            OPENED.models.clear()
            rows, examples, fault = [], [], fault_of(error)
        seconds = time.perf_counter() - start
    phases["other"] = seconds - sum(phases.values())
    messages = (
        sorted(
            {
                str(remark.message)
                for remark in remarks
                if issubclass(remark.category, GraphgaugeWarning)
            }
        )
        if rows
        else []
    )
    return Outcome(rows, fault, seconds, messages, where(place), examples, phases)


def compared(
    model: BaseModel, shard: Shard, to_keep: Callable[[Results], list[dict[str, Any]]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of a shard, and the records of its worst and best explanations."""
    settings = {**shard.settings, "timed": shard.timed}
    evaluator = Evaluator(
        model,
        seed=shard.seed,
        task=shard.task,
        name=shard.model,
        seed_scope=(shard.task, shard.model),  # a task of the benchmark is named after its content
        metrics=[METRICS[metric.name](**metric.parameters) for metric in shard.metrics],
        **settings,
    )
    explainers = {explainer.label: built(explainer) for explainer in shard.explainers}
    with model.session():
        before = state_of(model)
        results = evaluator.compare(explainers, list(shard.targets))
        with phase("keeping"):
            examples = to_keep(results)
        if state_of(model) != before:
            raise ChangedModel(
                f"{', '.join(explainers)} changed the network or its data while explaining"
            )
    return records(results), examples


def built(explainer: Named) -> Any:
    """Create the explainer."""
    return find_explainer(explainer.name, **explainer.parameters)


def records(results: Results) -> list[dict[str, Any]]:
    """Rows as plain data, without what all rows of a shard share; NaN and infinity become None."""
    return [
        {
            "explainer": row.explainer,
            "target": row.target,
            "occurrence": row.occurrence,
            "metric": row.metric,
            "seconds": row.seconds,
            **{name: plain(value) for name, value in row.cell.record().items()},
        }
        for row in results.rows
    ]


def plain(value: Any) -> Any:
    """The value with None in place of NaN and infinity, also in lists."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def state_of(model: BaseModel) -> str:
    """A digest of the bits of the network and of its data."""
    source = model.source
    data = [source.edge_index, *source.node_attrs.values(), *source.edge_attrs.values()]
    return digest_of_tensors([*model.net.parameters(), *model.net.buffers(), *data])


# --- models ---------------------------------------------------------------------------------------


def model_of(shard: Shard, place: Place) -> BaseModel:
    """The model of a shard, loaded once. Raises an error if data or network are not those of the
    plan.
    """
    name = (shard.data_set, shard.level, shard.model, shard.data, shard.network, place)
    if name not in OPENED.models:
        OPENED.models[name] = opened(shard, place)
        if len(OPENED.models) > MOST_MODELS:
            OPENED.models.popitem(last=False)
    OPENED.models.move_to_end(name)
    return OPENED.models[name]


def opened(shard: Shard, place: Place) -> BaseModel:
    """Load data and network, check them, and wrap them."""
    data = load(shard.data_set, shard.level, folder=place.data)
    net = trained(shard.data_set, shard.level, shard.model, folder=place.networks)
    if digest_of_data(data) != shard.data:
        raise BadGraph(
            f"the data of {shard.task} on {socket.gethostname()} are not those the run was "
            "planned with."
        )
    if digest_of_network(net) != shard.network:
        raise BadModel(
            f"the network {shard.task}-{shard.model} on {socket.gethostname()} is not the one the "
            "run was planned with."
        )
    device = torch.device(place.device)
    return wrapped(net.to(device), data.to(device), place.memory)


# --- what is told ---------------------------------------------------------------------------------


@contextlib.contextmanager
def silence() -> Iterator[list[warnings.WarningMessage]]:
    """Suppress what explainers print and the progress bars they draw; record warnings."""
    with (
        replaced(False),
        warnings.catch_warnings(record=True) as remarks,
        contextlib.redirect_stdout(Nowhere()),
    ):
        warnings.simplefilter("always")
        yield remarks


class Nowhere(io.TextIOBase):
    """A stream that discards all text."""

    def write(self, text: str) -> int:
        """Discard the text."""
        return len(text)


def fault_of(error: BaseException) -> Fault:
    """Describe what an explainer did wrong."""
    status = "changed_model" if isinstance(error, ChangedModel) else "failed"
    text = str(error) if isinstance(error, ChangedModel) else f"{type(error).__name__}: {error}"
    return Fault(status, text[:LONGEST_MESSAGE])


def where(place: Place) -> dict[str, Any]:
    """The machine and the device, for the record."""
    device = torch.device(place.device)
    name = (
        torch.cuda.get_device_name(device)
        if device.type == "cuda"
        else platform.processor() or platform.machine()
    )
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "device": str(device),
        "processor": name,
    }


def settings_of_shard(record: dict[str, Any]) -> Settings:
    """Settings as they were recorded."""
    return replace(Settings(), **{**record, "trials": tuple(record["trials"])})
