"""Executes a plan: locks the folder, and continues where the last call stopped."""

import os
import platform
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import yaml

import graphgauge
from graphgauge.benchmark.engines.base import Engine
from graphgauge.benchmark.planning import RunEnvironment, RunPlan
from graphgauge.benchmark.retries import select_retries
from graphgauge.benchmark.run_store import (
    EXPERIMENT_FILE,
    BenchmarkRun,
    begin_run,
    open_for_writing,
)
from graphgauge.benchmark.runner import ProgressCallback, Runner
from graphgauge.benchmark.worker import machine_record, measure_shard
from graphgauge.core import BadFile, JsonObject, package_versions
from graphgauge.store import Store


@dataclass(frozen=True)
class RunOptions:
    """Where and how a plan is executed; changes no number.

    ``restart`` deletes what the folder holds; ``retry`` also measures marked explainers again
    (`retries`).
    """

    folder: Path
    place: RunEnvironment
    restart: bool = False
    retry: bool = False


def _ignore_progress(text: str, size: float) -> None:
    """Report nothing."""


def execute_plan(
    plan: RunPlan, call: RunOptions, engine: Engine, report: ProgressCallback = _ignore_progress
) -> BenchmarkRun:
    """Measure what the folder does not hold yet.

    Raises errors that no explainer caused, also KeyboardInterrupt.

    Args:
        plan: All shards of the experiment.
        call: Where and how to execute them.
        engine: Where shards are measured.
        report: Called with a text and the number of new explanations.
    """
    with open_for_writing(call.folder, call.restart) as store:
        done = begin_run(store, plan.config, plan.shards)
        write_experiment_copy(plan, call.folder)
        _record_session(store, call, engine, len(done))
        retries = select_retries(store, plan.shards) if call.retry else {}
        finished = sum(shard.size for shard in plan.shards if shard.key in done) - sum(
            shard.size for shard in retries.values()
        )
        suffix = f", {len(retries)} of them have cells to try again" if retries else ""
        report(f"{len(done)} of {len(plan.shards)} shards are there{suffix}", finished)
        shared = {
            "settings": plan.experiment.full_settings.digest,
            "version": graphgauge.__version__,
        }
        work = partial(measure_shard, place=call.place)
        limit = plan.experiment.time_limit
        Runner(store, engine, work, limit=limit, shared=shared, report=report).run(
            plan.shards, retries
        )
    return BenchmarkRun(call.folder)


def _record_session(store: Store, call: RunOptions, engine: Engine, done: int) -> None:
    """Record the engine, the machine and the versions of this call."""
    body: JsonObject = {
        "engine": engine.name,
        "places": engine.places,
        "done": done,
        "cores": os.cpu_count(),
    }
    store.append_numbered(
        "session",
        {
            **body,
            "versions": {**package_versions(), "platform": platform.platform()},
            "machine": machine_record(call.place),
        },
    )


def write_experiment_copy(plan: RunPlan, folder: Path) -> None:
    """Write the experiment as a file that can be executed again.

    Args:
        plan: The plan of the experiment.
        folder: Folder of the run; it must exist. An earlier copy in it is replaced.
    """
    content = plan.experiment.model_dump(mode="json", exclude_defaults=True)
    part = folder / f"{EXPERIMENT_FILE}.part"
    try:
        part.write_text(
            yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8"
        )
        os.replace(part, folder / EXPERIMENT_FILE)
    except OSError as error:
        raise BadFile(f"{folder / EXPERIMENT_FILE} could not be written: {error}.") from error
