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
from typing import TYPE_CHECKING, Any

from graphgauge.benchmark.retries import EXAMPLES, SHARD, kept_shards
from graphgauge.benchmark.shards import Shard
from graphgauge.core.errors import BadFile, BadSetting
from graphgauge.core.phases import added
from graphgauge.store import Lock, Store

if TYPE_CHECKING:
    import pandas as pd

    from graphgauge.evaluation import Results, Row

STORE, LOCK, COPY = "run.sqlite", "run.lock", "experiment.yaml"
SHARED = (
    "task",
    "model",
    "seed",
    "settings",
    "version",
)  #: what all rows of a shard have in common


@dataclass(frozen=True)
class Run:
    """A stored run: ``Run("runs/paper").shards()``."""

    folder: Path

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        object.__setattr__(self, "folder", Path(folder))
        if not (self.folder / STORE).exists():
            raise BadFile(f"{self.folder} holds no benchmark run: there is no {STORE} in it.")

    @contextmanager
    def store(self) -> Iterator[Store]:
        """Open the store for reading."""
        with Store(self.folder / STORE) as store:
            yield store

    @cached_property
    def head(self) -> dict[str, Any]:
        """The configuration and the plan, as they were written first."""
        with self.store() as store:
            return head_of(store)

    @property
    def config(self) -> dict[str, Any]:
        """Everything that decides the numbers."""
        config: dict[str, Any] = self.head["config"]
        return config

    @property
    def num_shards(self) -> tuple[int, int]:
        """The number of finished shards, and of all shards."""
        with self.store() as store:
            return len(store.keys(SHARD)), len(self.head["plan"])

    @property
    def is_finished(self) -> bool:
        """Whether every shard is stored."""
        done, planned = self.num_shards
        return done == planned

    def sessions(self) -> list[dict[str, Any]]:
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
                key: {"at": kept.at, **flat(kept.body)} for key, kept in kept_shards(store).items()
            }
        lines = [
            {**planned, "done": planned["key"] in done, **done.get(planned["key"], {})}
            for planned in self.head["plan"]
        ]
        return pd.DataFrame(lines)

    def phases(self) -> dict[str, float]:
        """How the seconds of all shards divide into phases."""
        with self.store() as store:
            return added(*(kept.body["phases"] for kept in kept_shards(store).values()))

    def results(self) -> "Results":
        """All rows of finished shards, in the order of the plan."""
        return results_of(self.folder)


def flat(body: dict[str, Any]) -> dict[str, Any]:
    """The body of a shard as columns."""
    plain = {name: value for name, value in body.items() if name not in ("phases", "machine")}
    return {**plain, **body["phases"], **body["machine"]}


def head_of(store: Store) -> dict[str, Any]:
    """The first entry of a run. Raises `BadFile` if there is none."""
    entries = store.entries("run")
    if not entries:
        raise BadFile(f"{store.path} holds no run yet: the same command begins it.")
    head: dict[str, Any] = entries[0].body
    return head


# --- writing --------------------------------------------------------------------------------------


@contextmanager
def writing(folder: Path, restart: bool = False) -> Iterator[Store]:
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
    with Lock(folder / LOCK):
        if restart:
            for path in folder.glob(f"{STORE}*"):
                path.unlink()
        with Store(folder / STORE, write=True) as store:
            yield store


def begin(store: Store, config: dict[str, Any], shards: list[Shard]) -> set[str]:
    """Write the head of a new run, or check that it is the same. Returns the keys of finished
    shards.
    """
    if not store.entries("run"):
        plan = [line_of(shard) for shard in shards]
        store.append("run", "run", {"config": config, "plan": plan})
        return set()
    check_same(head_of(store)["config"], config, store.path.parent)
    return store.keys(SHARD)


def line_of(shard: Shard) -> dict[str, Any]:
    """A shard in the list of shards."""
    return {
        "key": shard.key,
        "task": shard.task,
        "model": shard.model,
        "block": shard.block,
        "explanations": shard.size,
    }


def check_same(before: dict[str, Any], now: dict[str, Any], folder: Path) -> None:
    """Raise `BadSetting` with every difference if a run would continue under another
    configuration.
    """
    first, second = dict(fields_of(before)), dict(fields_of(now))
    changed = [name for name in {**first, **second} if first.get(name) != second.get(name)]
    if changed:
        lines = "".join(
            f"\n  {name} was {first.get(name)!r} and is {second.get(name)!r}" for name in changed
        )
        raise BadSetting(
            f"{folder} holds a run with another configuration:{lines}\n"
            "Choose another --folder, or start over with --restart, which removes what is there."
        )


def fields_of(config: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of nested dictionaries with its path; lists stay as they are, an empty dictionary
    has no value.

    >>> list(fields_of({"a": {"b": 1, "c": (2,)}}))
    [('a.b', 1), ('a.c', [2])]
    """
    if isinstance(config, dict):
        for key, value in config.items():
            yield from fields_of(value, f"{name}.{key}" if name else str(key))
    else:
        yield name, list(config) if isinstance(config, tuple) else config


# --- reading --------------------------------------------------------------------------------------


def results_of(folder: str | os.PathLike[str]) -> "Results":
    """Read the results of a run, finished or not."""
    from graphgauge.benchmark.work import settings_of_shard
    from graphgauge.evaluation import Results

    run = Run(folder)
    settings = settings_of_shard(run.config["settings"])
    rows: list[Row] = []
    with run.store() as store:
        done = kept_shards(store)
        for planned in run.head["plan"]:
            kept = done.get(planned["key"])
            rows += (
                [
                    row_of(record, {name: body[name] for name in SHARED})
                    for record, body in kept.rows(store)
                ]
                if kept
                else []
            )
    return Results(tuple(rows), settings, kept=cache(partial(examples_of, run.folder)))


def examples_of(folder: Path) -> dict[Any, Any]:
    """The explanations that a run keeps; those of a retry replace the earlier ones."""
    from graphgauge.evaluation.results import key_of

    with Run(folder).store() as store:
        return {
            key_of(row): row["exhibit"]
            for entry in store.entries(EXAMPLES)
            for row in store.rows(entry)
        }


def row_of(record: dict[str, Any], shared: dict[str, Any]) -> "Row":
    """A row of the results from a stored row."""
    from graphgauge.evaluation import Cell, Row

    fields = dict(record)
    target = fields.pop("target")
    columns = {name: fields.pop(name) for name in ("explainer", "occurrence", "metric", "seconds")}
    numbers = fields.get("per_reference")
    if numbers is not None:
        fields["per_reference"] = [float("nan") if number is None else number for number in numbers]
    return Row(
        target=tuple(target) if isinstance(target, list) else target,
        cell=Cell.from_record(fields),
        **columns,
        **shared,
    )
