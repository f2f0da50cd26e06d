"""The store keeps what it acknowledged, whole entries only, and changes nothing."""

import random
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from graphgauge.core.errors import BadFile
from graphgauge.store import Store


@pytest.fixture
def path(tmp_path):
    return tmp_path / "some folder ü" / "a.sqlite"


@pytest.fixture
def store(path):
    path.parent.mkdir()
    with Store(path, write=True) as store:
        yield store


def test_what_was_appended_is_read_back_in_order(store):
    store.append("shard", "b", {"x": 0.1 + 0.2}, [[1, None, "é"], {"y": 1e-320}])
    store.append("shard", "a", [], [])
    first, second = store.entries("shard")
    assert (first.key, first.body, store.rows(first)) == (
        "b",
        {"x": 0.1 + 0.2},
        [[1, None, "é"], {"y": 1e-320}],
    )
    assert (second.key, second.body, store.rows(second)) == ("a", [], [])
    assert store.keys("shard") == {"a", "b"}
    assert store.entries("other") == []


def test_notes_are_numbered(store):
    assert [store.append_numbered("log", text) for text in ("one", "two")] == [1, 2]
    assert [(entry.key, entry.body) for entry in store.entries("log")] == [
        ("1", "one"),
        ("2", "two"),
    ]


def test_a_key_exists_once_and_a_refused_entry_leaves_no_rows(store):
    store.append("shard", "a", 1, [1, 2])
    with pytest.raises(BadFile, match="UNIQUE constraint failed"):
        store.append("shard", "a", 2, [3])
    store.append("log", "a", 2, [4])
    assert [store.rows(entry) for kind in ("shard", "log") for entry in store.entries(kind)] == [
        [1, 2],
        [4],
    ]


@pytest.mark.parametrize(
    "change",
    [
        "update entries set body = '2'",
        "delete from entries",
        "update rows set body = '2'",
        "delete from rows",
    ],
)
def test_nothing_is_changed_or_deleted(store, change):
    store.append("shard", "a", 1, [1])
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        store.connection.execute(change)


def test_what_is_no_number_is_refused_before_anything_is_written(store):
    with pytest.raises(ValueError, match="not JSON compliant"):
        store.append("shard", "a", 1, [1, float("nan")])
    assert store.entries("shard") == []


def test_a_reader_sees_finished_entries_while_a_writer_is_at_work(store, path):
    store.append("shard", "a", 1, [1])
    with Store(path) as reader:
        assert reader.keys("shard") == {"a"}
        store.append("shard", "b", 1)
        assert reader.keys("shard") == {"a", "b"}
        with pytest.raises(BadFile, match="readonly"):
            reader.append("shard", "c", 1)


def test_files_that_are_no_stores_are_refused(tmp_path):
    with pytest.raises(BadFile, match="there is no store"):
        Store(tmp_path / "missing.sqlite")
    (tmp_path / "text.sqlite").write_text("hello, this is a text and no database " * 100)
    for write in (False, True):
        with pytest.raises(BadFile, match="not a database"):
            Store(tmp_path / "text.sqlite", write=write)
    with sqlite3.connect(tmp_path / "other.sqlite") as other:
        other.execute("create table mine (x)")
    other.close()
    with pytest.raises(BadFile, match="graphgauge did not make it"):
        Store(tmp_path / "other.sqlite", write=True)


def test_a_store_whose_maker_was_killed_at_once_is_empty_and_can_be_written(path):
    path.parent.mkdir()
    with sqlite3.connect(path) as begun:
        begun.execute("pragma journal_mode = wal")
    begun.close()
    with pytest.raises(BadFile, match="holds nothing yet"):
        Store(path)
    with Store(path, write=True) as store:
        assert store.append("shard", "a", 1) == 1


def test_a_store_of_a_later_format_is_refused(store, path):
    store.connection.execute("pragma user_version = 2")
    with pytest.raises(BadFile, match="its format 2 is later than 1"):
        Store(path)


def test_a_full_disk_ends_with_a_message_and_an_intact_store(store, path):
    store.append("shard", "a", 1, ["x" * 1000] * 10)
    (pages,) = store.connection.execute("pragma page_count").fetchone()
    store.connection.execute(f"pragma max_page_count = {pages + 2}")
    with pytest.raises(
        BadFile, match=r"database or disk is full\. All that was stored before is intact"
    ):
        store.append("shard", "b", 1, ["x" * 1000] * 100)
    store.connection.execute("pragma max_page_count = 100000")
    store.append("shard", "c", 1, ["y"])
    assert {entry.key: len(store.rows(entry)) for entry in store.entries("shard")} == {
        "a": 10,
        "c": 1,
    }
    assert store.connection.execute("pragma integrity_check").fetchone() == ("ok",)


APPENDING = """
import resource, sys
from graphgauge.store import Store
limit = int(sys.argv[2])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
with Store(sys.argv[1], write=True) as store:
    number = len(store.keys("shard"))
    while True:
        store.append("shard", str(number), number, [[number, k] for k in range(50)])
        print(number, flush=True)
        number += 1
"""


def check_whole(path, acknowledged):
    with Store(path) as store:
        found = {int(entry.key): store.rows(entry) for entry in store.entries("shard")}
        assert store.connection.execute("pragma integrity_check").fetchone() == ("ok",)
    assert acknowledged <= found.keys()
    assert list(found) == list(range(len(found)))
    assert all(rows == [[number, k] for k in range(50)] for number, rows in found.items())


def test_a_limit_on_the_size_of_files_ends_with_a_message_and_an_intact_store(tmp_path):
    path = tmp_path / "a.sqlite"
    done = subprocess.run(
        [sys.executable, "-c", APPENDING, path, "300000"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "BadFile: the store" in done.stderr.splitlines()[-1]
    check_whole(path, set(map(int, done.stdout.split())))


def test_kill_9_at_random_moments_loses_nothing_that_was_acknowledged(tmp_path):
    path, dice, acknowledged = tmp_path / "a.sqlite", random.Random(0), set()
    for _ in range(8):
        writer = subprocess.Popen(
            [sys.executable, "-c", APPENDING, path, "0"], stdout=subprocess.PIPE, text=True
        )
        first = writer.stdout.readline()
        time.sleep(dice.uniform(0, 0.05))
        writer.send_signal(signal.SIGKILL)
        acknowledged |= {
            int(line)
            for line in [first, *writer.stdout.read().splitlines(keepends=True)]
            if line.endswith("\n")
        }
        writer.wait()
        writer.stdout.close()
        check_whole(path, acknowledged)
    assert len(acknowledged) > 8


def test_bodies_can_be_read_with_any_sqlite_client(store, path):
    store.append("shard", "a", {"seconds": 2.5})
    with sqlite3.connect(path) as client:
        assert client.execute("select json_extract(body, '$.seconds') from entries").fetchall() == [
            (2.5,)
        ]
    client.close()
