"""Where numbers come from: settings, seeds, versions, the network, and, for a benchmark, its calls
and machines.
"""

import json
import os
from pathlib import Path

from graphgauge.benchmark import STORE_FILE, BenchmarkRun
from graphgauge.core import BadFile, blake2b_hex
from graphgauge.evaluation import PRESETS, ROW_FIELDS, Results
from graphgauge.narrative import tidy_text
from graphgauge.report.score_table import Record

_PROJECT_FILE = "project.json"  #: what `graphgauge evaluate` writes beside results
MACHINE_FILE = "machine.json"  #: what `bench/publish.py` writes beside those of a published run


def provenance_facts(results: Results, run: str | os.PathLike[str] | None = None) -> Record:
    """Return facts by name, as plain data."""
    facts: Record = {
        "graphgauge": _join_sorted({row.version for row in results.rows}),
        "settings": _join_sorted({row.settings for row in results.rows}),
        "seeds": _join_sorted({str(row.seed) for row in results.rows}),
        "rows": len(results.rows),
        "digest of the rows": _rows_digest(results),
    }
    recorded = dict(results.made)
    facts |= {
        f"network: {name}": _format_fact(value)
        for name, value in recorded.pop("network", {}).items()
    }
    facts |= {name: _format_fact(value) for name, value in recorded.items()}
    if run is not None:
        facts |= {"folder": tidy_text(Path(run).name), **_run_facts(Path(run))}
    return facts


def _join_sorted(values: set[str]) -> str:
    """Join texts in alphabetical order."""
    return ", ".join(sorted(tidy_text(value) for value in values))


def _rows_digest(results: Results) -> str:
    """Return a short digest of these rows, whatever their order."""
    lines = sorted(
        repr((*(getattr(row, name) for name in ROW_FIELDS), *vars(row.cell).values()))
        for row in results.rows
    )
    return blake2b_hex("\n".join(lines).encode("utf-8", "surrogatepass"), size=8)


def _run_facts(folder: Path) -> Record:
    """Return the facts that a benchmark run or a saved project recorded; none for plain results."""
    for name, read in (
        (STORE_FILE, _benchmark_facts),
        (_PROJECT_FILE, _project_facts),
        (MACHINE_FILE, _machine_facts),
    ):
        if (folder / name).exists():
            return read(folder / name)
    return {}


def _benchmark_facts(path: Path) -> Record:
    """Return the experiment, how much of it is done, and each call."""
    run = BenchmarkRun(path.parent)
    done, planned = run.num_shards
    facts = {
        "experiment": _format_fact(run.config.get("name", "")),
        "shards": f"{done} of {planned} finished",
    }
    for number, session in enumerate(run.sessions(), 1):
        facts[f"call {number}"] = _format_fact(
            {
                name: session[name]
                for name in ("at", "engine", "versions", "machine")
                if name in session
            }
        )
    return facts


def _project_facts(path: Path) -> Record:
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
            name: _format_fact(value)
            for name, value in (
                parts | {name: record[name] for name in ("device", "versions")}
            ).items()
        }
    except (OSError, LookupError, ValueError, TypeError, AttributeError) as error:
        raise BadFile(
            f"{path} does not say what the run is of: {error!r}. Remove it, or evaluate again."
        ) from error


def _machine_facts(path: Path) -> Record:
    """Return how much of a published run was done, and each call."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        shards = {"shards": f"{record['shards']} of {record['shards planned']} finished"}
        return shards | {
            f"call {number}": _format_fact(call) for number, call in enumerate(record["calls"], 1)
        }
    except (OSError, LookupError, ValueError, TypeError) as error:
        raise BadFile(
            f"{path} does not say how the run was made: {error!r}. "
            "Take it from where it was published, or remove it."
        ) from error


def _format_fact(value: object) -> str:
    """Format a value on one line.

    >>> _format_fact({"a": [1, 2], "b": {"c": None}})
    'a: 1, 2; b: c: –'
    """
    if isinstance(value, dict):
        return "; ".join(
            f"{tidy_text(str(name))}: {_format_fact(own)}" for name, own in value.items()
        )
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_format_fact, value))
    return "–" if value is None else tidy_text(str(value), 300)


def settings_table(results: Results) -> list[Record]:
    """Return every setting, and whether it differs from the paper's."""
    paper = PRESETS["paper"].to_dict()
    return [
        {"name": name, "value": _format_fact(value), "is_changed": value != paper[name]}
        for name, value in results.settings.to_dict().items()
    ]
