"""Where numbers come from: settings, seeds, versions, the network, and, for a benchmark, its calls
and machines.
"""

import json
import os
from pathlib import Path
from typing import Any

from graphgauge.benchmark.runs import STORE, Run
from graphgauge.core.digests import blake2b_hex
from graphgauge.core.errors import BadFile
from graphgauge.evaluation import PRESETS, Results
from graphgauge.evaluation.results import ROW
from graphgauge.narrative.names import tidy

PROJECT = "project.json"  #: what `graphgauge evaluate` writes beside results
MACHINE = "machine.json"  #: what `bench/publish.py` writes beside those of a published run


def provenance(results: Results, run: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """Return facts by name, as plain data."""
    facts: dict[str, Any] = {
        "graphgauge": listed({row.version for row in results.rows}),
        "settings": listed({row.settings for row in results.rows}),
        "seeds": listed({str(row.seed) for row in results.rows}),
        "rows": len(results.rows),
        "digest of the rows": digest(results),
    }
    recorded = dict(results.made)
    facts |= {
        f"network: {name}": shown(value) for name, value in recorded.pop("network", {}).items()
    }
    facts |= {name: shown(value) for name, value in recorded.items()}
    if run is not None:
        facts |= {"folder": tidy(Path(run).name), **facts_of_run(Path(run))}
    return facts


def listed(values: set[str]) -> str:
    """Join texts in alphabetical order."""
    return ", ".join(sorted(tidy(value) for value in values))


def digest(results: Results) -> str:
    """Return a short digest of these rows, whatever their order."""
    lines = sorted(
        repr((*(getattr(row, name) for name in ROW), *vars(row.cell).values()))
        for row in results.rows
    )
    return blake2b_hex("\n".join(lines).encode("utf-8", "surrogatepass"), size=8)


def facts_of_run(folder: Path) -> dict[str, Any]:
    """Return the facts that a benchmark run or a saved project recorded; none for plain results."""
    for name, read in (
        (STORE, facts_of_benchmark),
        (PROJECT, facts_of_project),
        (MACHINE, facts_of_machine),
    ):
        if (folder / name).exists():
            return read(folder / name)
    return {}


def facts_of_benchmark(path: Path) -> dict[str, Any]:
    """Return the experiment, how much of it is done, and each call."""
    run = Run(path.parent)
    done, planned = run.num_shards
    facts = {
        "experiment": shown(run.config.get("name", "")),
        "shards": f"{done} of {planned} finished",
    }
    for number, session in enumerate(run.sessions(), 1):
        facts[f"call {number}"] = shown(
            {
                name: session[name]
                for name in ("at", "engine", "versions", "machine")
                if name in session
            }
        )
    return facts


def facts_of_project(path: Path) -> dict[str, Any]:
    """Return what `graphgauge evaluate` recorded: network, data, checksums, device, versions."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        project = record["project"]
        named = {name: project[name] for name in ("model", "weights", "data")}
        parts = {
            **named,
            **{f"SHA-256 of {name}": digest for name, digest in record["sha256"].items()},
        }
        return {
            name: shown(value)
            for name, value in (
                parts | {name: record[name] for name in ("device", "versions")}
            ).items()
        }
    except (OSError, LookupError, ValueError, TypeError, AttributeError) as error:
        raise BadFile(
            f"{path} does not say what the run is of: {error!r}. Remove it, or evaluate again."
        ) from error


def facts_of_machine(path: Path) -> dict[str, Any]:
    """Return how much of a published run was done, and each call."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        shards = {"shards": f"{record['shards']} of {record['shards planned']} finished"}
        return shards | {
            f"call {number}": shown(call) for number, call in enumerate(record["calls"], 1)
        }
    except (OSError, LookupError, ValueError, TypeError) as error:
        raise BadFile(
            f"{path} does not say how the run was made: {error!r}. "
            "Take it from where it was published, or remove it."
        ) from error


def shown(value: Any) -> str:
    """Format a value on one line.

    >>> shown({"a": [1, 2], "b": {"c": None}})
    'a: 1, 2; b: c: –'
    """
    if isinstance(value, dict):
        return "; ".join(f"{tidy(str(name))}: {shown(own)}" for name, own in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(shown, value))
    return "–" if value is None else tidy(str(value), 300)


def settings_of(results: Results) -> list[dict[str, Any]]:
    """Return every setting, and whether it differs from the paper's."""
    paper = PRESETS["paper"].record()
    return [
        {"name": name, "value": shown(value), "is_changed": value != paper[name]}
        for name, value in results.settings.record().items()
    ]
