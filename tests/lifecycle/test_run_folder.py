"""A run is not written over unless asked for, and a signed decision is kept even then."""

import json

import pytest
from support.chosen_results import GOOD
from support.chosen_results import run as made
from support.decisions import decision
from support.user_networks import write_project
from typer.testing import CliRunner

from graphgauge.cli.main import app, main
from graphgauge.core.errors import BadFile
from graphgauge.evaluation import Results
from graphgauge.lifecycle import Decision, Project, assess
from graphgauge.lifecycle.run_folder import check_folder, clear_folder

QUICK = {
    "settings": {"trials": [2, 2], "stability": "none", "timed": 0, "cap": 2},
    "targets": [1, 2],
}


@pytest.fixture
def folder(tmp_path):
    """A validation, and a file that is none of it."""
    made({"lrp": GOOD}).save(tmp_path)
    made({"lrp": GOOD}).save(tmp_path / "production")
    (tmp_path / "notes.txt").write_text("mine")
    return tmp_path


def names(place):
    return sorted(path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file())


@pytest.mark.parametrize("changed", [{}, {"signed_by": "", "signed": ""}])
def test_a_folder_with_a_decision_is_refused_and_left_as_it_is(folder, changed):
    decision(**changed).write(folder / "decision.json")
    before = names(folder)
    told = "signed by Ada on 2026-11-15" if not changed else "holds a decision: name another"
    for attempt in (check_folder, clear_folder):
        with pytest.raises(BadFile, match=f"{told}.*--replace"):
            attempt(folder)
    assert names(folder) == before


def test_a_signed_decision_is_kept_with_its_rows_when_another_takes_its_place(folder):
    signed = decision()
    signed.write(folder / "decision.json")
    rows = (folder / "rows.csv").read_bytes()
    for number in range(2):
        clear_folder(folder, replace=True)
        assert not (folder / "decision.json").exists()
        assert not (folder / "rows.csv").exists()
        name = f"2026-11-15T12-00-00-{signed.digest[:8]}" + ("-2" if number else "")
        kept = folder / "earlier" / name
        assert Decision.read(kept) == signed
        if not number:
            assert (kept / "rows.csv").read_bytes() == rows
            assert len(Results.load(kept / "production").rows) == len(Results.load(kept).rows)
        signed.write(folder / "decision.json")
    assert (folder / "notes.txt").read_text() == "mine"


def test_a_decision_that_cannot_be_read_counts_as_signed(folder):
    decision().write(folder / "decision.json")
    content = json.loads((folder / "decision.json").read_text())
    (folder / "decision.json").write_text(json.dumps({**content, "label": "edited"}))
    clear_folder(folder, replace=True)
    assert (folder / "earlier" / "unreadable" / "decision.json").exists()


def test_an_unsigned_decision_goes_and_nothing_else_does(folder):
    decision(signed_by="", signed="").write(folder / "decision.json")
    clear_folder(folder, replace=True)
    assert names(folder) == ["notes.txt"]


def test_files_that_only_look_like_ours_stay_where_there_is_no_run(tmp_path):
    for name in ("project.json", "report.html", "production/rows.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine")
    before = names(tmp_path)
    clear_folder(tmp_path, replace=True)
    assert names(tmp_path) == before


def test_a_new_folder_and_one_without_a_run_are_taken(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    assert clear_folder(tmp_path) == tmp_path
    assert clear_folder(tmp_path / "deep" / "new").is_dir()
    assert names(tmp_path) == ["notes.txt"]


def test_saving_an_assessment_twice_is_refused(tmp_path):
    project = Project.read(write_project(tmp_path, **QUICK))
    found = assess(project)
    found.save(tmp_path / "run", project)
    with pytest.raises(BadFile, match="holds a run"):
        found.save(tmp_path / "run", project)
    found.save(tmp_path / "run", project, replace=True)


def test_the_commands_refuse_before_they_measure_and_replace_when_asked_to(
    tmp_path, monkeypatch, capsys
):
    path = write_project(tmp_path, **QUICK)
    place = tmp_path / "validation"
    assert CliRunner().invoke(app, ["validate", str(path), "--signed-by", "Ada"]).exit_code in (
        0,
        1,
        3,
    )
    signed = Decision.read(place)
    before = (place / "decision.json").read_bytes()
    monkeypatch.setattr(
        "graphgauge.lifecycle.project.Project.model", lambda project: pytest.fail("it measures")
    )
    for command in (["validate", str(path)], ["evaluate", str(path), "--output", str(place)]):
        monkeypatch.setattr("sys.argv", ["graphgauge", *command])
        with pytest.raises(SystemExit) as stop:
            main()
        assert stop.value.code == 2
        assert f"holds a decision, signed by Ada on {signed.signed}" in capsys.readouterr().err
        assert (place / "decision.json").read_bytes() == before
    monkeypatch.undo()
    assert CliRunner().invoke(app, ["validate", str(path), "--replace"]).exit_code in (0, 1, 3)
    assert Decision.read(place).signed_by == ""
    (kept,) = (place / "earlier").iterdir()
    assert Decision.read(kept) == signed
