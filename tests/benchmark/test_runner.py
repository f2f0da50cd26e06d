"""The runner: nothing lost, nothing twice, only the guilty marked."""

import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from support import fake_engines
from support.fake_engines import Death, Scripted, blaming, rows_of, shard, stored, value_of, work

from graphgauge.benchmark.eta import TimeEstimate
from graphgauge.benchmark.retries import _StoredShard, read_stored_shards, select_retries
from graphgauge.benchmark.run_store import (
    _check_same_config,
    _flatten_body,
    begin_run,
    open_for_writing,
)
from graphgauge.benchmark.shard_result import MeasurementFault, ShardResult
from graphgauge.core.errors import BadFile, BadSetting
from graphgauge.store import Store

SHARDS = [shard(block) for block in range(4)]


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "run.sqlite", write=True) as store:
        yield store


def everything(shards=SHARDS):
    return {
        (row["explainer"], row["target"], row["metric"]): row
        for part in shards
        for row in rows_of(part)
    }


def test_every_shard_is_measured_once_and_stored_whole(store):
    engine = Scripted(work)
    fake_engines.run(store, engine, SHARDS)
    assert stored(store) == everything()
    assert engine.seen == [(block, "a", "b", "c") for block in range(4)]
    assert store.keys("shard") == {part.key for part in SHARDS}


def test_a_second_call_measures_only_what_is_missing(store):
    fake_engines.run(store, Scripted(work), SHARDS[1:3])
    engine = Scripted(work)
    fake_engines.run(store, engine, SHARDS)
    assert [block for block, *_ in engine.seen] == [0, 3]
    assert stored(store) == everything()


class Watched(Scripted):
    """Work that takes a moment; what was under way when each shard began is kept."""

    def __init__(self, places, shares):
        super().__init__(work, places)
        self.shares, self.pool, self.now, self.beside = (
            shares,
            ThreadPoolExecutor(places),
            set(),
            {},
        )

    def submit(self, function, *args):
        part = args[0]
        self.now = {(block, future) for block, future in self.now if not future.done()}
        self.seen.append(part.block)
        self.beside[part.block] = {block for block, _ in self.now}
        future = self.pool.submit(fake_engines.work_slowly, part)
        self.now.add((part.block, future))
        return future

    def close(self):
        self.pool.shutdown()


@pytest.mark.parametrize("shares", [True, False])
def test_clocks_run_first_and_alone_where_workers_share_a_machine(store, shares):
    shards = [
        replace(part, timed=1 if part.block in (2, 5) else 0) for part in map(shard, range(8))
    ]
    with Watched(3, shares) as engine:
        fake_engines.run(store, engine, shards)
    assert engine.seen == [2, 5, 0, 1, 3, 4, 6, 7]
    assert stored(store) == everything(shards)
    wanted = {2: set(), 5: set(), 0: set(), 1: {0}} if shares else {2: set(), 5: {2}, 0: {2, 5}}
    assert {block: engine.beside[block] for block in wanted} == wanted


def test_keys_name_content_and_nothing_else():
    assert shard(1).key == shard(1).key
    others = [
        shard(2),
        shard(1, ("a", "b")),
        shard(1, task="other"),
        shard(1, model="gat"),
        shard(1).only(["a"]),
    ]
    assert len({shard(1).key, *(other.key for other in others)}) == len(others) + 1


def test_only_the_guilty_explainers_cells_are_marked_and_it_is_measured_apart_from_then_on(store):
    engine = Scripted(blaming("b"), places=1)
    fake_engines.run(store, engine, SHARDS)
    found = stored(store)
    assert {key: row for key, row in found.items() if key[0] != "b"} == {
        k: r for k, r in everything().items() if k[0] != "b"
    }
    guilty = [row for key, row in found.items() if key[0] == "b"]
    assert len(guilty) == 4 * 2 * 2
    assert {(row["status"], row["message"]) for row in guilty} == {("failed", "no good")}
    assert not any("value" in row for row in guilty)
    assert engine.seen[:4] == [(0, "a", "b", "c"), (0, "a"), (0, "b"), (0, "c")]
    assert engine.seen[4:6] == [(1, "a", "c"), (1, "b")]
    assert [entry.body["faults"] for entry in store.entries("shard")] == [
        {"b": {"status": "failed", "message": "no good"}}
    ] * 4


def test_a_later_call_remembers_the_guilty(store):
    fake_engines.run(store, Scripted(blaming("b")), SHARDS[:1])
    engine = Scripted(blaming("b"), places=1)
    fake_engines.run(store, engine, SHARDS[:2])
    assert engine.seen == [(1, "a", "c"), (1, "b")]


def counting(store):
    """The rows that count, as a reader sees them."""
    return [row for kept in read_stored_shards(store).values() for row, _ in kept.rows(store)]


def test_marked_cells_are_measured_again_only_when_asked_and_alone(store):
    fake_engines.run(store, Scripted(blaming("b")), SHARDS[:2])
    engine = Scripted(work, places=1)
    fake_engines.run(store, engine, SHARDS)
    # "b" is measured apart, and well this time
    assert engine.seen == [(2, "a", "c"), (2, "b"), (3, "a", "c"), (3, "b")]
    assert set(select_retries(store, SHARDS)) == {f"{part.key}/1" for part in SHARDS[:2]}
    engine = Scripted(work)
    fake_engines.run(store, engine, SHARDS, retries=select_retries(store, SHARDS))
    assert engine.seen == [(0, "b"), (1, "b")]
    rows = counting(store)
    assert {(row["explainer"], row["target"], row["metric"]): row for row in rows} == everything()
    assert len(rows) == len(everything())
    assert [row["explainer"] for row in rows[:12]] == ["a"] * 4 + ["b"] * 4 + ["c"] * 4
    assert select_retries(store, SHARDS) == {}


def test_the_last_word_of_several_retries_counts(store):
    shards = SHARDS[:1]
    fake_engines.run(
        store,
        Scripted(
            lambda part: (
                work(part)
                if part.labels == ("c",)
                else ShardResult([], MeasurementFault("failed", "first"))
            )
        ),
        shards,
    )
    hangs = ShardResult([], MeasurementFault("timeout", "second"), 2.0, phases={"explaining": 2.0})
    fake_engines.run(
        store,
        Scripted(lambda part: hangs if "b" in part.labels else work(part)),
        shards,
        retries=select_retries(store, shards),
    )
    (kept,) = read_stored_shards(store).values()
    assert kept.faults == {"b": {"status": "timeout", "message": "second"}}
    assert {row["explainer"]: row["status"] for row in counting(store)} == {
        "a": "ok",
        "b": "timeout",
        "c": "ok",
    }
    assert list(select_retries(store, shards)) == [f"{shards[0].key}/2"]
    fake_engines.run(store, Scripted(work), shards, retries=select_retries(store, shards))
    (kept,) = read_stored_shards(store).values()
    assert (kept.faults, kept.body["faults"], len(kept.retries)) == ({}, {}, 2)
    assert kept.body["seconds"] == pytest.approx(0.01 + 2.01 + 0.01)
    assert kept.body["phases"] == {"explaining": pytest.approx(2.0 + 3 * 0.002)}
    assert sorted(map(str, counting(store))) == sorted(map(str, rows_of(shards[0])))
    assert [entry.body["retried"] for entry in kept.retries] == [["a", "b"], ["b"]]
    # what was there stays
    assert {row["status"] for row in store.rows(kept.first)} == {"ok", "failed"}


def test_a_shard_that_fails_together_but_not_apart_is_complete(store):
    engine = Scripted(
        lambda part: (
            ShardResult([], MeasurementFault("failed", "too much at once"))
            if len(part.labels) > 1
            else work(part)
        )
    )
    fake_engines.run(store, engine, SHARDS[:1])
    assert stored(store) == everything(SHARDS[:1])
    assert read_stored_shards(store)[SHARDS[0].key].body["phases"] == {
        "explaining": pytest.approx(3 * 0.002)
    }


def test_shards_stored_before_phases_were_kept_have_none(store):
    fake_engines.run(store, Scripted(work), SHARDS[:1])
    (new,) = read_stored_shards(store).values()
    old = replace(
        new.first, body={name: value for name, value in new.first.body.items() if name != "phases"}
    )
    assert _StoredShard(old).body["phases"] == {}
    assert (
        _StoredShard(old, (replace(new.first, body={**new.first.body, "retried": ["a"]}),)).body[
            "phases"
        ]
        == new.body["phases"]
    )
    assert set(_flatten_body(_StoredShard(old).body)) == set(_flatten_body(new.body)) - {
        "explaining"
    }


def test_a_worker_that_dies_once_is_forgiven(store):
    deaths = {0: 1, 2: 1}

    def script(part):
        if deaths.get(part.block):
            deaths[part.block] -= 1
            return Death("killed")
        return work(part)

    fake_engines.run(store, Scripted(script), SHARDS)
    assert stored(store) == everything()
    assert [entry.body for entry in store.entries("log")] == [
        f"the worker of pretend-node gcn block {k} (a, b, c) died" for k in (0, 2)
    ]


def test_an_explainer_that_kills_its_worker_twice_is_marked(store):
    engine = Scripted(lambda part: Death("exit") if "c" in part.labels else work(part), places=1)
    fake_engines.run(store, engine, SHARDS[:2])
    found = stored(store)
    assert {row["status"] for key, row in found.items() if key[0] == "c"} == {"failed"}
    assert "ended 2 times without a result" in found["c", 0, "edge_ec"]["message"]
    assert {row["status"] for key, row in found.items() if key[0] != "c"} == {"ok"}
    assert engine.seen[:2] == [(0, "a", "b", "c")] * 2


def test_what_hangs_is_stopped_and_marked(store):
    engine = Scripted(lambda part: None if "a" in part.labels else work(part), places=2)
    start = time.monotonic()
    fake_engines.run(store, engine, SHARDS[:2], limit=0.2)
    assert time.monotonic() - start < 10
    found = stored(store)
    assert {row["status"] for key, row in found.items() if key[0] == "a"} == {"timeout"}
    assert found["a", 0, "edge_ec"]["message"] == "no result within 0.2 s"
    assert {row["status"] for key, row in found.items() if key[0] != "a"} == {"ok"}
    assert engine.abandoned >= 3


def test_an_error_that_is_no_explainers_fault_ends_the_run_and_keeps_what_is_there(store):
    engine = Scripted(
        lambda part: work(part) if part.block < 2 else BadFile("the data are gone"), places=1
    )
    with pytest.raises(BadFile, match="the data are gone"):
        fake_engines.run(store, engine, SHARDS)
    assert store.keys("shard") == {SHARDS[0].key, SHARDS[1].key}


def test_reports_count_every_explanation_once(store):
    told = []
    fake_engines.run(
        store, Scripted(blaming("b")), SHARDS, report=lambda text, size: told.append((text, size))
    )
    assert sum(size for _, size in told) == 4 * 2 * 3
    assert all("left" in text for text, _ in told)


def test_time_left_is_by_task_and_network_and_divided_by_the_workers():
    estimate = TimeEstimate()
    assert estimate.seconds_left(1) is None
    for group in (("cora", "gcn"), ("github", "gcn"), ("new", "gcn")):
        estimate.plan(group, 100)
    estimate.finish(("cora", "gcn"), 50, 5.0)  # 0.1 s each, 50 left
    estimate.finish(("github", "gcn"), 10, 30.0)  # 3 s each, 90 left
    assert estimate.seconds_left(1) == pytest.approx(50 * 0.1 + 90 * 3 + 100 * (0.1 + 3) / 2)
    assert estimate.seconds_left(4) == pytest.approx(estimate.seconds_left(1) / 4)


def test_a_changed_configuration_is_refused_field_by_field(tmp_path):
    before = {
        "seed": 0,
        "settings": {"cap": 100, "flip": 0.2},
        "explainers": {"a": {"name": "a"}},
        "tasks": ["x"],
    }
    now = {
        "seed": 0,
        "settings": {"cap": 50, "flip": 0.2},
        "explainers": {"b": {"name": "b"}},
        "tasks": ["x", "y"],
    }
    with pytest.raises(BadSetting) as caught:
        _check_same_config(before, now, tmp_path)
    lines = str(caught.value).splitlines()
    assert lines[0] == f"{tmp_path} holds a run with another configuration:"
    assert lines[1:-1] == [
        "  settings.cap was 100 and is 50",
        "  explainers.a.name was 'a' and is None",
        "  tasks was ['x'] and is ['x', 'y']",
        "  explainers.b.name was None and is 'b'",
    ]
    assert "--restart" in lines[-1]
    _check_same_config(before, {**before, "tasks": ("x",)}, tmp_path)


def test_a_full_disk_in_the_middle_ends_with_a_message_and_the_run_goes_on_later(tmp_path):
    with open_for_writing(tmp_path / "run") as store:
        begin_run(store, {}, SHARDS)
        (pages,) = store.connection.execute("pragma page_count").fetchone()
        store.connection.execute(f"pragma max_page_count = {pages + 1}")
        shards = [shard(block) for block in range(60)]
        with pytest.raises(
            BadFile,
            match=(
                r"disk is full\. All that was stored before is intact\..*run the same command "
                r"again"
            ),
        ):
            fake_engines.run(store, Scripted(work), shards)
        kept = store.keys("shard")
    assert 0 < len(kept) < 60
    with open_for_writing(tmp_path / "run") as store:
        engine = Scripted(work)
        fake_engines.run(store, engine, shards)
        assert len(engine.seen) == 60 - len(kept)
        assert stored(store) == everything(shards)


KILLED = """
import sys
from pathlib import Path
from support import fake_engines
from graphgauge.benchmark.engines.inline import InlineEngine
from graphgauge.benchmark.runner import Runner
from graphgauge.benchmark.run_store import begin_run, open_for_writing
shards = [fake_engines.shard(block) for block in range(40)]
with open_for_writing(Path(sys.argv[1])) as store:
    begin_run(store, {"seed": 0}, shards)
    print("begun", flush=True)
    Runner(store, InlineEngine(), fake_engines.work_slowly, limit=60,
           shared={"settings": "s", "version": "v"},
           report=lambda text, size: print(text, flush=True)).run(shards)
"""


def test_a_run_that_is_killed_at_random_moments_ends_as_one_that_was_not(tmp_path):
    dice, folder, acknowledged, kills = random.Random(1), tmp_path / "run", set(), 0
    while True:
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, folder],
            stdout=subprocess.PIPE,
            text=True,
            env=same_path(),
        )
        process.stdout.readline()
        time.sleep(dice.uniform(0, 0.25))
        process.send_signal(signal.SIGKILL)
        acknowledged |= {
            int(line.split()[3]) for line in process.stdout.read().splitlines() if " done" in line
        }
        process.stdout.close()
        finished = process.wait() == 0
        with Store(folder / "run.sqlite") as store:
            keys = store.keys("shard")
        assert {shard(block).key for block in acknowledged} <= keys
        kills += not finished
        if finished or len(keys) == 40:
            break
    assert kills >= 3
    with Store(folder / "run.sqlite") as store:
        found = stored(store)
    assert found == everything([shard(block) for block in range(40)])
    assert found["a", 7, "edge_ec"]["value"] == value_of("a", 7, "edge_ec")


def same_path():
    """Other processes find what this one finds."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def test_the_runner_loads_no_torch():
    code = (
        "import sys\nfrom support import fake_engines\n"
        "print('torch' in sys.modules, 'pydantic' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=same_path()
    )
    assert done.stdout == "False False\n"
