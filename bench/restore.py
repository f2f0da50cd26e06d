"""Make a run of what `publish.py` kept of one, so that an unfinished run can be continued where
only its published files are left.

    python bench/restore.py benchmarks/paper-drop runs/paper-drop
    graphgauge benchmark paper-drop --folder runs/paper-drop

Refused where the experiment as this library plans it today (data, networks, explainers, settings,
format) is not the one that was measured. Numbers come back to the last bit, seconds of shards to 10
ms: publishing the restored run again writes the same files.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pandas as pd
from publish import COLUMNS, SHARDS

from graphgauge.benchmark import (
    EXPERIMENT_FILE,
    SHARD_ENTRY,
    BenchmarkRun,
    RunEnvironment,
    RunPlan,
    Shard,
    begin_run,
    content_digest,
    open_for_writing,
    plan_run,
    read_experiment,
    result_records,
    write_experiment_copy,
)
from graphgauge.cli.console import run_app
from graphgauge.core import BadFile, BadSetting
from graphgauge.evaluation import FAULTS, Results, Row
from graphgauge.report import MACHINE_FILE


def restore(published: Path, folder: Path, place: RunEnvironment) -> BenchmarkRun:
    """A run with every shard that was published."""
    plan = plan_run(read_experiment(published / EXPERIMENT_FILE), place)
    machine = machine_of(published / MACHINE_FILE)
    if machine["configuration"] != content_digest(plan.config):
        raise BadSetting(
            f"{published} was measured with other data, networks, settings or code than here: "
            "measure it anew."
        )
    found = entries_of(plan, published, machine["calls"][-1])
    with open_for_writing(folder) as store:
        if store.entries("run"):
            raise BadSetting(f"{folder} holds a run already: choose another folder.")
        begin_run(store, plan.config, plan.shards)
        write_experiment_copy(plan, folder)
        for call in machine["calls"]:
            store.append_numbered("session", session_of(call))
        for key, body, rows in found:
            store.append(SHARD_ENTRY, key, body, rows)
    return BenchmarkRun(folder)


def machine_of(path: Path) -> dict[str, Any]:
    """What `publish.py` wrote of the machine and the configuration."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        told: dict[str, Any] = {
            "configuration": found["configuration"],
            "calls": list(found["calls"]),
        }
        return told
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise BadFile(
            f"{path} does not say how the run was made ({error!r}): take the files that were "
            "published."
        ) from error


def shard_lines(path: Path) -> list[dict[Any, Any]]:
    """The lines of shards.csv."""
    try:
        lines = pd.read_csv(path)
        return lines[[*COLUMNS, *(name for name in lines if name not in COLUMNS)]].to_dict(
            "records"
        )
    except (OSError, ValueError, LookupError) as error:
        raise BadFile(
            f"{path} has no list of shards ({error}): take the files that were published."
        ) from error


def entries_of(
    plan: RunPlan, published: Path, call: dict[str, Any]
) -> list[tuple[str, dict[str, Any], list[dict[str, Any]]]]:
    """Key, body and rows of every shard that was done."""
    lines = shard_lines(published / SHARDS)
    done = {
        (line["task"], line["model"], line["block"]): line
        for line in lines
        if not pd.isna(line["seconds"])
    }
    results, rows = Results.load(published), defaultdict(list)
    for row in results.rows:
        rows[row.task, row.model, row.target].append(row)
    found = []
    for shard in (shard for shard in plan.shards if (shard.task, shard.model, shard.block) in done):
        own = [
            row
            for target in shard.targets
            for row in rows[shard.task, shard.model, target]
            if row.metric in shard.metrics_of(target)
        ]
        check_whole(shard, own)
        ordered = [row for label in shard.labels for row in own if row.explainer == label]
        body = body_of(shard, done[shard.task, shard.model, shard.block], own, call)
        found.append((shard.key, body, result_records(Results(tuple(ordered), results.settings))))
    return found


def check_whole(shard: Shard, rows: list[Row]) -> None:
    """Refuse a table in which a line of a shard is missing, or twice."""
    found = sorted((row.explainer, str(row.target), row.metric) for row in rows)
    planned = sorted(
        (label, str(target), name)
        for label in shard.labels
        for target in shard.targets
        for name in shard.metrics_of(target)
    )
    if found != planned:
        raise BadSetting(
            f"{shard.title} has {len(found)} published lines where {len(planned)} were measured, "
            "or other ones: take the files from where they were published."
        )


def body_of(
    shard: Shard, line: dict[Any, Any], rows: list[Row], call: dict[str, Any]
) -> dict[str, Any]:
    """What the store keeps of a shard beside its rows; which of several calls measured it is not
    published, the last is told.
    """
    faults = {
        row.explainer: {"status": row.cell.status, "message": row.cell.message}
        for row in rows
        if row.cell.status in FAULTS
    }
    return {
        "task": shard.task,
        "model": shard.model,
        "seed": shard.seed,
        "explanations": shard.size,
        "seconds": line["seconds"],
        "phases": {
            str(name): value
            for name, value in line.items()
            if name not in COLUMNS and not pd.isna(value)
        },
        "faults": faults,
        "remarks": [],
        "machine": {name: call[name] for name in ("device", "processor")},
        "settings": rows[0].settings,
        "version": rows[0].version,
    }


def session_of(call: dict[str, Any]) -> dict[str, Any]:
    """A call as the store keeps it."""
    own = {
        "at": call["began"],
        "engine": call["engine"],
        "places": call["workers"],
        "cores": call["cores"],
    }
    machine = {name: call[name] for name in ("device", "processor")}
    known = {"began", "engine", "workers", "cores", *machine}
    return {
        **own,
        "machine": machine,
        "versions": {name: version for name, version in call.items() if name not in known},
    }


def command() -> None:
    """Read the command line, and do it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("published", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", help="folder with the raw data sets")
    options = parser.parse_args()
    done, planned = restore(
        options.published, options.folder, RunEnvironment(data=options.data)
    ).num_shards
    print(f"{options.folder}: {done} of {planned} shards")


def main() -> None:
    """The command: what has to be put right first is one line, and exit code 2."""
    run_app(command)


if __name__ == "__main__":
    main()
