"""The work of a worker: measure one shard, and return its rows or what went wrong.

An explainer is foreign code. It may raise, print, end the process, change the network or the data.
Whatever can be caught is caught here and becomes a `MeasurementFault`; the model is then loaded
again. What goes wrong before any explainer is called (a missing file, other data than planned) is
no fault of an explainer, and is raised.
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

import torch

from graphgauge.benchmark.planning import RunEnvironment, network_digest, wrap_network
from graphgauge.benchmark.shard_result import MeasurementFault, ShardResult
from graphgauge.benchmark.shards import Shard
from graphgauge.core import (
    BadGraph,
    BadModel,
    ChangedModel,
    GraphgaugeWarning,
    JsonObject,
    digest_of_tensors,
    record_phases,
    timed_phase,
    use_bar,
)
from graphgauge.datasets import data_digest as digest_of_data
from graphgauge.datasets import load, trained
from graphgauge.evaluation import Evaluator, Results, Settings
from graphgauge.explainers import find_explainer
from graphgauge.metrics import METRICS
from graphgauge.models import BaseModel

_MAX_OPEN_MODELS = 2  #: kept open between shards
_MAX_MESSAGE_LENGTH = 600


@dataclass
class _ModelCache:
    """The models that this process has loaded; one shard at a time uses them."""

    models: "OrderedDict[tuple[object, ...], BaseModel]" = field(default_factory=OrderedDict)
    lock: contextlib.AbstractContextManager[object] = field(default_factory=threading.RLock)


_MODEL_CACHE = _ModelCache()


def measure_shard(shard: Shard, place: RunEnvironment) -> ShardResult:
    """Measure a shard."""
    # report stands above benchmark; imported here because a missing package is no explainer's fault
    from graphgauge.report import collect_example_records

    with _MODEL_CACHE.lock, record_phases() as phases:
        model = _cached_model(shard, place)
        start = time.perf_counter()
        try:
            with _silence_output() as remarks:
                rows, examples = _evaluate_shard(model, shard, collect_example_records)
            fault = None
        except (Exception, SystemExit) as error:
            _MODEL_CACHE.models.clear()
            rows, examples, fault = [], [], _describe_fault(error)
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
    return ShardResult(rows, fault, seconds, messages, machine_record(place), examples, phases)


def _evaluate_shard(
    model: BaseModel, shard: Shard, to_keep: Callable[[Results], list[JsonObject]]
) -> tuple[list[JsonObject], list[JsonObject]]:
    """The rows of a shard, and the records of its worst and best explanations."""
    settings = replace(Settings.from_record(shard.settings), timed=shard.timed)
    evaluator = Evaluator(
        model,
        seed=shard.seed,
        task=shard.task,
        name=shard.model,
        seed_scope=(shard.task, shard.model),  # a task of the benchmark is named after its content
        metrics=[METRICS[metric.name](**metric.parameters) for metric in shard.metrics],
        **settings.to_dict(),
    )
    explainers = {
        explainer.label: find_explainer(explainer.name, **explainer.parameters)
        for explainer in shard.explainers
    }
    with model.session():
        before = _model_state_digest(model)
        examples: list[JsonObject] = []
        if shard.timed:
            results = evaluator.compare_times(explainers, list(shard.targets))
        else:
            results = evaluator.compare(explainers, list(shard.targets))
            with timed_phase("keeping"):
                examples = to_keep(results)
        if _model_state_digest(model) != before:
            raise ChangedModel(
                f"{', '.join(explainers)} changed the network or its data while explaining"
            )
    wanted = {target: set(shard.metrics_of(target)) for target in shard.targets}
    records = result_records(results)
    return [row for row in records if row["metric"] in wanted[row["target"]]], examples


def result_records(results: Results) -> list[JsonObject]:
    """Rows as plain data, without what all rows of a shard share; NaN and infinity become None."""
    return [
        {
            "explainer": row.explainer,
            "target": row.target,
            "occurrence": row.occurrence,
            "metric": row.metric,
            "seconds": row.seconds,
            **{name: _replace_non_finite(value) for name, value in row.cell.record().items()},
        }
        for row in results.rows
    ]


def _replace_non_finite(value: object) -> object:
    """The value with None in place of NaN and infinity, also in lists."""
    if isinstance(value, list):
        return [_replace_non_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _model_state_digest(model: BaseModel) -> str:
    """A digest of the bits of the network and of its data."""
    source = model.source
    data = [source.edge_index, *source.node_attrs.values(), *source.edge_attrs.values()]
    return digest_of_tensors([*model.net.parameters(), *model.net.buffers(), *data])


# --- models ---------------------------------------------------------------------------------------


def _cached_model(shard: Shard, place: RunEnvironment) -> BaseModel:
    """The model of a shard, loaded once. Raises an error if data or network are not those of the
    plan.
    """
    name = (shard.data_set, shard.level, shard.model, shard.data, shard.network, place)
    if name not in _MODEL_CACHE.models:
        _MODEL_CACHE.models[name] = _load_model(shard, place)
        if len(_MODEL_CACHE.models) > _MAX_OPEN_MODELS:
            _MODEL_CACHE.models.popitem(last=False)
    _MODEL_CACHE.models.move_to_end(name)
    return _MODEL_CACHE.models[name]


def _load_model(shard: Shard, place: RunEnvironment) -> BaseModel:
    """Load data and network, check them, and wrap them."""
    data = load(shard.data_set, shard.level, folder=place.data)
    net = trained(shard.data_set, shard.level, shard.model, folder=place.networks)
    if digest_of_data(data) != shard.data:
        raise BadGraph(
            f"the data of {shard.task} on {socket.gethostname()} are not those the run was "
            "planned with."
        )
    if network_digest(net) != shard.network:
        raise BadModel(
            f"the network {shard.task}-{shard.model} on {socket.gethostname()} is not the one the "
            "run was planned with."
        )
    device = torch.device(place.device)
    return wrap_network(net.to(device), data.to(device), place.memory)


# --- output and faults ----------------------------------------------------------------------------


@contextlib.contextmanager
def _silence_output() -> Iterator[list[warnings.WarningMessage]]:
    """Suppress what explainers print and the progress bars they draw; record warnings."""
    with (
        use_bar(False),
        warnings.catch_warnings(record=True) as remarks,
        contextlib.redirect_stdout(_NullStream()),
    ):
        warnings.simplefilter("always")
        yield remarks


class _NullStream(io.TextIOBase):
    """A stream that discards all text."""

    def write(self, text: str) -> int:
        """Discard the text."""
        return len(text)


def _describe_fault(error: BaseException) -> MeasurementFault:
    """Describe what an explainer did wrong."""
    status = "changed_model" if isinstance(error, ChangedModel) else "failed"
    text = str(error) if isinstance(error, ChangedModel) else f"{type(error).__name__}: {error}"
    return MeasurementFault(status, text[:_MAX_MESSAGE_LENGTH])


def machine_record(place: RunEnvironment) -> JsonObject:
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
