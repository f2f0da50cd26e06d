"""Executes a plan: locks the folder, and continues where the last call stopped."""

import os
import platform
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

import graphgauge
from graphgauge.benchmark.engines import Engine
from graphgauge.benchmark.planning import Place, Plan
from graphgauge.benchmark.retries import to_retry
from graphgauge.benchmark.runner import Report, Runner
from graphgauge.benchmark.runs import COPY, Run, begin, writing
from graphgauge.benchmark.work import measured, where
from graphgauge.core.errors import BadFile
from graphgauge.core.versions import versions
from graphgauge.store import Store


@dataclass(frozen=True)
class Call:
    """Where and how a plan is executed; changes no number.

    ``restart`` deletes what the folder holds; ``retry`` also measures marked explainers again
    (`retries`).
    """

    folder: Path
    place: Place
    restart: bool = False
    retry: bool = False


def silent(text: str, size: float) -> None:
    """Report nothing."""


def carry_out(plan: Plan, call: Call, engine: Engine, report: Report = silent) -> Run:
    """Measure what the folder does not hold yet.

    Raises errors that no explainer caused, also KeyboardInterrupt.

    Args:
        plan: All shards of the experiment.
        call: Where and how to execute them.
        engine: Where shards are measured.
        report: Called with a text and the number of new explanations.
    """
    with writing(call.folder, call.restart) as store:
        done = begin(store, plan.config, plan.shards)
        write_copy(plan, call.folder)
        note_session(store, call, engine, len(done))
        retries = to_retry(store, plan.shards) if call.retry else {}
        finished = sum(shard.size for shard in plan.shards if shard.key in done) - sum(
            shard.size for shard in retries.values()
        )
        suffix = f", {len(retries)} of them have cells to try again" if retries else ""
        report(f"{len(done)} of {len(plan.shards)} shards are there{suffix}", finished)
        shared = {
            "settings": plan.experiment.full_settings.digest,
            "version": graphgauge.__version__,
        }
        work = partial(measured, place=call.place)
        limit = plan.experiment.time_limit
        Runner(store, engine, work, limit=limit, shared=shared, report=report).run(
            plan.shards, retries
        )
    return Run(call.folder)


def note_session(store: Store, call: Call, engine: Engine, done: int) -> None:
    """Record the engine, the machine and the versions of this call."""
    body: dict[str, Any] = {
        "engine": engine.name,
        "places": engine.places,
        "done": done,
        "cores": os.cpu_count(),
    }
    store.note(
        "session",
        {
            **body,
            "versions": {**versions(), "platform": platform.platform()},
            "machine": where(call.place),
        },
    )


def write_copy(plan: Plan, folder: Path) -> None:
    """Write the experiment as a file that can be executed again."""
    content = plan.experiment.model_dump(mode="json", exclude_defaults=True)
    part = folder / f"{COPY}.part"
    try:
        part.write_text(
            yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8"
        )
        os.replace(part, folder / COPY)
    except OSError as error:
        raise BadFile(f"{folder / COPY} could not be written: {error}.") from error
