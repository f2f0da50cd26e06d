"""A run on disk: one folder with the store `run.sqlite`, a copy of the experiment, and the lock of
its writer.

    entry      key                 body                                        rows
    run        run                 the configuration, and the list of shards
    session    1, 2, ...           versions, machine, engine of each call
    shard      the shard's key     seconds, phases, machine, faults, remarks   scores
    retry      key/1, key/2, ...   the same, of explainers tried again         scores
    examples   as those two                                                    explanations
    log        1, 2, ...           a line

There is a row for each explanation and metric, and an example for each explanation that is kept.

A run can be read at any time, also while it is written and after it was killed: it holds whole
shards only.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from graphgauge.benchmark.retries import EXAMPLES_ENTRY, SHARD_ENTRY, read_stored_shards
from graphgauge.benchmark.shards import Shard
from graphgauge.core import BadFile, BadSetting, JsonObject, sum_phases
from graphgauge.store import Store, WriterLock

if TYPE_CHECKING:
    import pandas as pd

    from graphgauge.evaluation import ExplanationKey, Results, Row

STORE_FILE, _LOCK_FILE, EXPERIMENT_FILE = "run.sqlite", "run.lock", "experiment.yaml"
#: what all rows of a shard have in common
_SHARED_COLUMNS = ("task", "model", "seed", "settings", "version")


@dataclass(frozen=True)
class BenchmarkRun:
    """A stored run: ``BenchmarkRun("runs/paper").shards()``."""

    folder: Path

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        object.__setattr__(self, "folder", Path(folder))
        if not (self.folder / STORE_FILE).exists():
            raise BadFile(f"{self.folder} holds no benchmark run: there is no {STORE_FILE} in it.")

    @contextmanager
    def store(self) -> Iterator[Store]:
        """Open the store for reading."""
        with Store(self.folder / STORE_FILE) as store:
            yield store

    @cached_property
    def head(self) -> JsonObject:
        """The configuration and the plan, as they were written first."""
        with self.store() as store:
            return _read_head(store)

    @property
    def config(self) -> JsonObject:
        """Everything that decides the numbers."""
        config: JsonObject = self.head["config"]
        return config

    @property
    def num_shards(self) -> tuple[int, int]:
        """The number of finished shards, and of all shards."""
        with self.store() as store:
            return len(store.keys(SHARD_ENTRY)), len(self.head["plan"])

    @property
    def is_finished(self) -> bool:
        """Whether every shard is stored."""
        done, planned = self.num_shards
        return done == planned

    def sessions(self) -> list[JsonObject]:
        """Versions, machine and engine of each call, and when it began."""
        with self.store() as store:
            return [{"at": entry.at, **entry.body} for entry in store.entries("session")]

    def log(self) -> list[str]:
        """The lines of the log, with their times."""
        with self.store() as store:
            return [f"{entry.at} {entry.body}" for entry in store.entries("log")]

    def shards(self) -> "pd.DataFrame":
        """One line per planned shard: task, model, block, seconds, their phases, machine, faults;
        empty where it is not finished.
        """
        import pandas as pd

        with self.store() as store:
            done = {
                key: {"at": kept.at, **_flatten_body(kept.body)}
                for key, kept in read_stored_shards(store).items()
            }
        lines = [
            {**planned, "done": planned["key"] in done, **done.get(planned["key"], {})}
            for planned in self.head["plan"]
        ]
        return pd.DataFrame(lines)

    def phases(self) -> dict[str, float]:
        """How the seconds of all shards divide into phases."""
        with self.store() as store:
            return sum_phases(*(kept.body["phases"] for kept in read_stored_shards(store).values()))

    def results(self) -> "Results":
        """All rows of finished shards, in the order of the plan."""
        return read_results(self.folder)


def _flatten_body(body: JsonObject) -> JsonObject:
    """The body of a shard as columns."""
    plain = {name: value for name, value in body.items() if name not in ("phases", "machine")}
    return {**plain, **body["phases"], **body["machine"]}


def _read_head(store: Store) -> JsonObject:
    """The first entry of a run. Raises `BadFile` if there is none."""
    entries = store.entries("run")
    if not entries:
        raise BadFile(f"{store.path} holds no run yet: the same command begins it.")
    head: JsonObject = entries[0].body
    return head


# --- writing --------------------------------------------------------------------------------------


@contextmanager
def open_for_writing(folder: Path, restart: bool = False) -> Iterator[Store]:
    """Open the store of a run for its only writer.

    Args:
        folder: Folder of the run; it is created.
        restart: Whether to delete what the folder holds.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadFile(
            f"the folder {folder} cannot be made: {error}. Choose another with --folder."
        ) from error
    with WriterLock(folder / _LOCK_FILE):
        if restart:
            for path in folder.glob(f"{STORE_FILE}*"):
                path.unlink()
        with Store(folder / STORE_FILE, write=True) as store:
            yield store


def begin_run(store: Store, config: JsonObject, shards: list[Shard]) -> set[str]:
    """Write the head of a new run, or check that a stored head is the same.

    Args:
        store: The store of the run, open for writing.
        config: Everything that decides the numbers of the run.
        shards: All shards of the run, in their order.

    Returns:
        The keys of the shards that are stored already.

    Raises:
        BadSetting: if the store holds a run with another configuration.
    """
    if not store.entries("run"):
        plan = [_plan_line(shard) for shard in shards]
        store.append("run", "run", {"config": config, "plan": plan})
        return set()
    _check_same_config(_read_head(store)["config"], config, store.path.parent)
    return store.keys(SHARD_ENTRY)


def _plan_line(shard: Shard) -> JsonObject:
    """A shard in the list of shards."""
    return {
        "key": shard.key,
        "task": shard.task,
        "model": shard.model,
        "block": shard.block,
        "explanations": shard.size,
    }


def _check_same_config(before: JsonObject, now: JsonObject, folder: Path) -> None:
    """Raise `BadSetting` with every difference if a run would continue under another
    configuration.
    """
    first, second = dict(_flatten_config(before)), dict(_flatten_config(now))
    changed = [name for name in {**first, **second} if first.get(name) != second.get(name)]
    if changed:
        lines = "".join(
            f"\n  {name} was {first.get(name)!r} and is {second.get(name)!r}" for name in changed
        )
        raise BadSetting(
            f"{folder} holds a run with another configuration:{lines}\n"
            "Choose another --folder, or start over with --restart, which removes what is there."
        )


def _flatten_config(config: object, name: str = "") -> Iterator[tuple[str, object]]:
    """Every value of nested dictionaries with its path; lists stay as they are, an empty dictionary
    has no value.

    >>> list(_flatten_config({"a": {"b": 1, "c": (2,)}}))
    [('a.b', 1), ('a.c', [2])]
    """
    if isinstance(config, dict):
        for key, value in config.items():
            yield from _flatten_config(value, f"{name}.{key}" if name else str(key))
    else:
        yield name, list(config) if isinstance(config, tuple) else config


# --- reading --------------------------------------------------------------------------------------


def read_results(folder: str | os.PathLike[str]) -> "Results":
    """Read the results of a run, finished or not."""
    from graphgauge.evaluation import Results, Settings

    run = BenchmarkRun(folder)
    settings = Settings.from_record(run.config["settings"])
    rows: list[Row] = []
    with run.store() as store:
        done = read_stored_shards(store)
        for planned in run.head["plan"]:
            kept = done.get(planned["key"])
            rows += (
                [
                    _parse_row(record, {name: body[name] for name in _SHARED_COLUMNS})
                    for record, body in kept.rows(store)
                ]
                if kept
                else []
            )
    return Results(tuple(rows), settings, kept=cache(partial(_read_examples, run.folder)))


def _read_examples(folder: Path) -> "dict[ExplanationKey, JsonObject]":
    """The explanations that a run keeps; those of a retry replace the earlier ones."""
    from graphgauge.evaluation import explanation_key

    with BenchmarkRun(folder).store() as store:
        return {
            explanation_key(row): row["exhibit"]
            for entry in store.entries(EXAMPLES_ENTRY)
            for row in store.rows(entry)
        }


def _parse_row(record: JsonObject, shared: JsonObject) -> "Row":
    """A row of the results from a stored row."""
    from graphgauge.evaluation import MetricValue, Row

    fields = dict(record)
    target = fields.pop("target")
    columns = {name: fields.pop(name) for name in ("explainer", "occurrence", "metric", "seconds")}
    numbers = fields.get("per_reference")
    if numbers is not None:
        fields["per_reference"] = [float("nan") if number is None else number for number in numbers]
    return Row(
        target=tuple(target) if isinstance(target, list) else target,
        cell=MetricValue.from_record(fields),
        **columns,
        **shared,
    )
