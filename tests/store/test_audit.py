"""The audit log finds what was changed or removed, keeps what it acknowledged, and exports cells
that compute nothing.
"""

import csv
import hashlib
import io
import json
import sqlite3

import pytest

from graphgauge.core.errors import BadFile
from graphgauge.store import AuditLog, Store
from graphgauge.store.audit import (
    _FORMULA_PREFIXES,
    _spreadsheet_cell,
    csv_lines,
    json_lines,
    verify_log,
)
from graphgauge.store.hash_chain import _GENESIS_DIGEST, _entry_digest


@pytest.fixture
def path(tmp_path):
    """A log with five answers, written in two transactions."""
    with AuditLog(tmp_path / "audit.sqlite") as log:
        log.append([{"what": "answer", "text": f"text {k}"} for k in range(3)])
        log.append([{"what": "answer", "text": f"text {k}"} for k in (3, 4)])
    return tmp_path / "audit.sqlite"


def literal_head(records):
    """The chain's digest from its definition, with no other function of the library."""
    head = "0" * 64
    for number, record in enumerate(records, start=1):
        text = json.dumps([number, head, record], sort_keys=True, separators=(",", ":"))
        head = hashlib.sha256(text.encode("ascii")).hexdigest()
    return head


def tampered(path, *statements):
    """The file after somebody took away its triggers and changed it."""
    with sqlite3.connect(path) as database:
        for verb in ("update", "delete"):
            database.execute(f"drop trigger entries_{verb}")
        for statement in statements:
            database.execute(statement)
    database.close()


def test_the_head_is_what_its_definition_says(path):
    found = verify_log(path)
    records = [{"what": "answer", "text": f"text {k}"} for k in range(5)]
    assert (found.count, found.head, found.fault) == (5, literal_head(records), "")


def test_a_chain_goes_on_after_it_was_closed(path):
    before = verify_log(path).head
    with AuditLog(path) as log:
        (link,) = log.append([{"what": "stop"}])
    assert (link.number, link.previous, link.digest) == (
        6,
        before,
        _entry_digest(6, before, {"what": "stop"}),
    )
    assert verify_log(path).count == 6


def test_an_empty_log_is_whole(tmp_path):
    with AuditLog(tmp_path / "a.sqlite") as log:
        assert log.append([]) == []
    assert verify_log(tmp_path / "a.sqlite").head == _GENESIS_DIGEST


@pytest.mark.parametrize(
    ("change", "whole", "fault"),
    [
        (
            "update entries set body = replace(body, 'text 2', 'text 9') where key = '3'",
            2,
            "entry 3 was changed",
        ),
        ("delete from entries where key = '2'", 1, "entry 2 was expected, but entry 3 is there"),
        ("delete from entries where key = '1'", 0, "entry 1 was expected, but entry 2 is there"),
        (
            "update entries set key = '7' where key = '5'",
            4,
            "entry 5 was expected, but entry 7 is there",
        ),
        ("update entries set body = 'true' where key = '4'", 3, "entry 4 does not follow"),
        (
            "update entries set key = 'x' where key = '4'",
            3,
            "entry 4 was expected, but entry -1 is there",
        ),
    ],
)
def test_a_change_or_a_removal_is_found_where_it_happened(path, change, whole, fault):
    tampered(path, change)
    found = verify_log(path)
    assert found.count == whole
    assert fault in found.fault


def test_an_entry_made_to_fit_itself_no_longer_fits_the_next(path):
    record = {"what": "answer", "text": "forged"}
    with Store(path) as store:
        previous = store.entries("audit")[1].body["previous"]
    body = json.dumps(
        {"previous": previous, "digest": _entry_digest(2, previous, record), "record": record}
    )
    tampered(path, f"update entries set body = '{body}' where key = '2'")
    assert verify_log(path).fault.startswith("entry 3 does not follow the entry before it")


def test_entries_cut_off_at_the_end_are_found_with_a_head_that_was_noted(path):
    noted = verify_log(path).head
    assert verify_log(path, noted).fault == ""
    tampered(path, "delete from entries where key = '5'")
    assert verify_log(path).fault == ""
    assert f"no entry has the digest {noted}" in verify_log(path, noted).fault


def test_a_head_noted_earlier_is_found_in_a_longer_chain(path):
    noted = verify_log(path).head
    with AuditLog(path) as log:
        log.append([{"what": "stop"}])
    assert verify_log(path, noted).fault == ""


def test_nothing_is_added_after_an_entry_that_was_changed(path):
    tampered(path, "update entries set body = replace(body, 'text 4', 'text 9') where key = '5'")
    with pytest.raises(BadFile, match="entry 5 was changed"):
        AuditLog(path)


def test_a_log_has_one_writer_and_is_free_again_after_it(path):
    with AuditLog(path), pytest.raises(BadFile, match="is in use by process"):
        AuditLog(path)
    AuditLog(path).close()


def test_a_refused_group_leaves_nothing_and_the_chain_where_it_was(path):
    with AuditLog(path) as log:
        with pytest.raises(ValueError, match="not JSON compliant"):
            log.append([{"text": "fine"}, {"text": float("nan")}])
        assert log.append([{"text": "next"}])[0].number == 6
    assert verify_log(path).count == 6


def test_a_full_disk_refuses_the_group_and_keeps_the_chain(path):
    with AuditLog(path) as log:
        database = log.hash_chain.store.connection
        (pages,) = database.execute("pragma page_count").fetchone()
        database.execute(f"pragma max_page_count = {pages + 1}")
        with pytest.raises(BadFile, match="database or disk is full"):
            log.append([{"text": "x" * 1000}] * 100)
        database.execute("pragma max_page_count = 100000")
        assert log.append([{"text": "next"}])[0].number == 6
    assert verify_log(path).fault == ""


def test_json_lines_hold_everything_that_is_needed_to_verify(path):
    lines = [json.loads(line) for line in json_lines(path)]
    assert [line["number"] for line in lines] == [1, 2, 3, 4, 5]
    assert all(
        _entry_digest(line["number"], line["previous"], line["record"]) == line["digest"]
        for line in lines
    )


def test_csv_cells_are_never_formulas(tmp_path):
    texts = [f"{mark}cmd|' /C calc'!A0" for mark in _FORMULA_PREFIXES] + [
        "  =1+1",
        'a "b", c',
        "plain",
    ]
    with AuditLog(tmp_path / "a.sqlite") as log:
        log.append(
            [
                {"what": "answer", "asked_by": text, "seconds": -0.5, "target": [1, 2]}
                for text in texts
            ]
        )
    rows = list(csv.DictReader(io.StringIO("\n".join(csv_lines(tmp_path / "a.sqlite")))))
    assert [row["asked_by"].lstrip(" ")[0] for row in rows[:-2]] == ["'"] * (len(texts) - 2)
    assert [row["asked_by"] for row in rows[-2:]] == texts[-2:]
    assert {(row["seconds"], row["target"], row["text"]) for row in rows} == {
        ("-0.5", "[1, 2]", "")
    }


def test_a_number_is_no_formula():
    assert _spreadsheet_cell(-1.5) == -1.5
