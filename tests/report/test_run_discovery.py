"""Runs under a folder: all of them, no other, and only by the names they were listed with."""

import os

import pytest
from support.report_results import by_hand

from graphgauge.core.errors import BadFile, UnknownName
from graphgauge.evaluation import Results
from graphgauge.evaluation.result_files import write_rows
from graphgauge.report.run_discovery import find_run, find_runs, last_modified


@pytest.fixture
def root(tmp_path):
    for name in ("b", "deep/er/a", ".hidden", "one/two/three/four/five"):
        by_hand(n=2).save(tmp_path / "runs" / name)
    by_hand(n=2).save(tmp_path / "outside")
    (tmp_path / "runs" / "half").mkdir()
    (tmp_path / "runs" / "half" / "rows.csv").write_text("no settings")
    (tmp_path / "runs" / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "runs" / "bench").mkdir()
    (tmp_path / "runs" / "bench" / "run.sqlite").touch()
    (tmp_path / "runs" / "linked").mkdir()
    (tmp_path / "runs" / "linked" / "run.sqlite").symlink_to(tmp_path / "outside" / "rows.csv")
    return tmp_path / "runs"


def test_runs_are_found_by_their_files_but_not_behind_links_or_in_hidden_folders(root):
    assert {name: path.relative_to(root).as_posix() for name, path in find_runs(root).items()} == {
        "b": "b",
        "bench": "bench",
        "deep/er/a": "deep/er/a",
    }


def test_a_published_run_is_a_run(tmp_path):
    write_rows(by_hand(n=2), tmp_path / "rows.csv.xz")
    assert find_runs(tmp_path) == {".": tmp_path}
    assert Results.load(tmp_path).rows == by_hand(n=2).rows
    before = last_modified(tmp_path)
    os.utime(tmp_path / "rows.csv.xz", (before + 10, before + 10))
    assert last_modified(tmp_path) == before + 10


def test_the_folder_itself_can_be_a_run(root):
    assert find_runs(root / "b") == {".": root / "b"}


@pytest.mark.parametrize(
    "name", ["../outside", "link", ".hidden", "b/../../outside", "/etc", "", "half", "B"]
)
def test_no_other_folder_can_be_had(root, name):
    assert find_run(root, "b") == root / "b"
    with pytest.raises(UnknownName, match="Known: b, bench, deep/er/a"):
        find_run(root, name)


def test_names_of_folders_are_tidied_and_stay_apart(tmp_path):
    for name in ("a\nb", "a b"):
        by_hand(n=2).save(tmp_path / name)
    assert find_runs(tmp_path) == {"a b": tmp_path / "a\nb", "a b (2)": tmp_path / "a b"}


def test_a_run_that_is_written_again_has_changed(root):
    before = last_modified(root / "b")
    os.utime(root / "b" / "rows.csv", (before + 5, before + 5))
    assert last_modified(root / "b") == before + 5


def test_a_root_that_is_no_folder_is_refused(root):
    with pytest.raises(BadFile, match="is no folder: name one that holds runs"):
        find_runs(root / "missing")
