"""Shards without models, engines without processes: what the runner does, in milliseconds. Loads no
torch.
"""

import time
from concurrent.futures import Future

from graphgauge.benchmark.engines.base import Engine
from graphgauge.benchmark.runner import Runner
from graphgauge.benchmark.shard_result import MeasurementFault, ShardResult
from graphgauge.benchmark.shards import ComponentSpec, Shard

LABELS = ("a", "b", "c")


def shard(block, labels=LABELS, task="pretend-node", model="gcn"):
    return Shard(
        task=task,
        data_set="Pretend",
        level="node",
        model=model,
        block=block,
        targets=(2 * block, 2 * block + 1),
        explainers=tuple(ComponentSpec(label, label, {}) for label in labels),
        metrics=(),
        names=("edge_ec", "edge_pertinence"),
        settings={"cap": 5},
        timed=0,
        seed=0,
        data="d",
        network="n",
    )


def value_of(explainer, target, metric):
    return (sum(map(ord, explainer + metric)) * 31 + target) / 7


def rows_of(part):
    return [
        {
            "explainer": label,
            "target": t,
            "occurrence": 0,
            "metric": m,
            "seconds": 0.1,
            "status": "ok",
            "value": value_of(label, t, m),
        }
        for label in part.labels
        for t in part.targets
        for m in part.names
    ]


def work(part):
    return ShardResult(
        rows_of(part),
        seconds=0.01,
        machine={"host": "here"},
        phases={"explaining": 0.002 * len(part.labels)},
    )


def work_slowly(part):
    time.sleep(0.02)
    return work(part)


class Death(Exception):
    """A worker died."""


class Scripted(Engine):
    """Does what ``script(part)`` says: an outcome, an error to raise, or None for work that never
    comes back.
    """

    name = "scripted"

    def __init__(self, script, places=2):
        self.script, self.room, self.seen, self.abandoned = script, places, [], 0

    @property
    def places(self):
        return self.room

    def submit(self, function, *args):
        self.seen.append((args[0].block, *args[0].labels))
        future, answer = Future(), self.script(args[0])
        if isinstance(answer, Exception):
            future.set_exception(answer)
        elif answer is not None:
            future.set_result(answer)
        return future

    def is_death(self, error):
        return isinstance(error, Death)

    def abandon(self, future):
        self.abandoned += 1

    def close(self):
        pass


def blaming(guilty):
    """A script in which one explainer spoils every shard it is in."""
    return lambda part: (
        ShardResult([], MeasurementFault("failed", "no good"), 0.01)
        if guilty in part.labels
        else work(part)
    )


def run(store, engine, shards, limit=60.0, report=lambda text, size: None, retries=None):
    runner = Runner(
        store, engine, work, limit=limit, shared={"settings": "s", "version": "v"}, report=report
    )
    runner.run(shards, retries)
    return runner


def stored(store):
    """All rows of all shards by (explainer, target, metric); a row that comes twice is an error."""
    rows = [row for entry in store.entries("shard") for row in store.rows(entry)]
    found = {(row["explainer"], row["target"], row["metric"]): row for row in rows}
    assert len(found) == len(rows)
    return found
