"""A run on the disk: one folder with the store `run.sqlite`, a copy of the experiment, and the lock
of its writer.

    entries of the store    key                 body                                        rows
    run                     run                 the configuration, and the list of shards
    session                 1, 2, ...           versions, machine, engine of each call
    shard                   the shard's key     seconds, phases, machine, faults, remarks   one per explanation and metric
    retry                   key/1, key/2, ...   the same of explainers tried again          the same (see `retries`)
    examples                as those two                                                    one per explanation that is kept
    log                     1, 2, ...           a line

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
    """A run to read: ``Run("runs/paper").shards()``."""

    folder: Path

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        object.__setattr__(self, "folder", Path(folder))
        if not (self.folder / STORE).exists():
            raise BadFile(f"{self.folder} holds no benchmark run: there is no {STORE} in it.")

    @contextmanager
    def store(self) -> Iterator[Store]:
        """Its store, for reading."""
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
        """Finished shards, and all."""
        with self.store() as store:
            return len(store.keys(SHARD)), len(self.head["plan"])

    @property
    def is_finished(self) -> bool:
        """Whether every shard is there."""
        done, planned = self.num_shards
        return done == planned

    def sessions(self) -> list[dict[str, Any]]:
        """Versions, machine and engine of each call, and when it began."""
        with self.store() as store:
            return [{"at": entry.at, **entry.body} for entry in store.entries("session")]

    def log(self) -> list[str]:
        """What was noted on the way."""
        with self.store() as store:
            return [f"{entry.at} {entry.body}" for entry in store.entries("log")]

    def shards(self) -> "pd.DataFrame":
        """One line per planned shard: task, model, block, seconds, their phases, machine, faults;
        empty where not done.
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
        """What the seconds of all shards went to."""
        with self.store() as store:
            return added(*(kept.body["phases"] for kept in kept_shards(store).values()))

    def results(self) -> "Results":
        """All rows of finished shards, in the order of the plan."""
        return results_of(self.folder)


def flat(body: dict[str, Any]) -> dict[str, Any]:
    """A shard's body as columns."""
    plain = {name: value for name, value in body.items() if name not in ("phases", "machine")}
    return {**plain, **body["phases"], **body["machine"]}


def head_of(store: Store) -> dict[str, Any]:
    """The first entry of a run."""
    found = store.entries("run")
    if not found:
        raise BadFile(f"{store.path} holds no run yet: the same command begins it.")
    head: dict[str, Any] = found[0].body
    return head


# --- writing --------------------------------------------------------------------------------------


@contextmanager
def writing(folder: Path, restart: bool = False) -> Iterator[Store]:
    """The store of a run, for its only writer."""
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
    """Write the head of a new run, or check that it is the same; returns the keys of finished
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
    """Refuse to continue a run under another configuration; every difference is told."""
    first, second = dict(fields_of(before)), dict(fields_of(now))
    changed = [name for name in {**first, **second} if first.get(name) != second.get(name)]
    if changed:
        told = "".join(
            f"\n  {name} was {first.get(name)!r} and is {second.get(name)!r}" for name in changed
        )
        raise BadSetting(
            f"{folder} holds a run with another configuration:{told}\n"
            "Choose another --folder, or start over with --restart, which removes what is there."
        )


def fields_of(config: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of nested dictionaries with the way to it, lists as they are; an empty dictionary
    has none.

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
    """The results of a run, finished or not."""
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
    """What a run keeps of single explanations; those of a retry replace what was there."""
    from graphgauge.evaluation.results import key_of

    with Run(folder).store() as store:
        return {
            key_of(row): row["exhibit"]
            for entry in store.entries(EXAMPLES)
            for row in store.rows(entry)
        }


def row_of(record: dict[str, Any], shared: dict[str, Any]) -> "Row":
    """A stored row."""
    from graphgauge.evaluation import Cell, Row

    own = dict(record)
    target = own.pop("target")
    kept = {name: own.pop(name) for name in ("explainer", "occurrence", "metric", "seconds")}
    numbers = own.get("per_reference")
    if numbers is not None:
        own["per_reference"] = [float("nan") if number is None else number for number in numbers]
    return Row(
        target=tuple(target) if isinstance(target, list) else target,
        cell=Cell.from_record(own),
        **kept,
        **shared,
    )
