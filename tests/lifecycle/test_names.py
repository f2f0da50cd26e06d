"""Names of a project: too many are refused before anything is measured, and a validation keeps its
examples under them.
"""

import json

import pytest
from support.user_networks import write_project
from typer.testing import CliRunner

import graphgauge as gg
from graphgauge.cli.main import app
from graphgauge.core.errors import BadSetting
from graphgauge.evaluation import Results
from graphgauge.lifecycle import Project, assess, validate

QUICK = {
    "settings": {"trials": [2, 2], "stability": "none", "timed": 0, "cap": 2},
    "targets": [1, 2],
}
TOO_MANY = {"features": ["income", "age", "debt", "rent"]}
TOLD = r"names.features speaks of number 3, but there are 3 \(0..2\), and 4 are named"


def test_too_many_names_are_refused_before_anything_is_measured(tmp_path, monkeypatch):
    project = Project.read(write_project(tmp_path, names=TOO_MANY, **QUICK))
    monkeypatch.setattr(gg.Evaluator, "compare", lambda *_: pytest.fail("it measures"))
    with pytest.raises(BadSetting, match=TOLD):
        assess(project)
    with pytest.raises(BadSetting, match=TOLD):
        validate(project.evaluator(), [1, 2], names=TOO_MANY)


def test_too_many_names_are_refused_when_results_are_saved_and_their_rows_are_there(tmp_path):
    project = Project.read(write_project(tmp_path, **QUICK))
    results = project.evaluator().compare(project.explainers(), [1, 2])
    with pytest.raises(BadSetting, match=TOLD):
        results.save(tmp_path / "run", TOO_MANY)
    assert len(Results.load(tmp_path / "run").rows) == len(results.rows)


def test_a_validation_keeps_its_examples_under_the_names_of_the_project(tmp_path):
    names = {"features": ["salary", "years", "loans"], "nodes": {"1": "Ada", "2": "Bob"}}
    path = write_project(tmp_path, names=names, **QUICK)
    assert CliRunner().invoke(app, ["validate", str(path)]).exit_code in (0, 1, 3)
    kept = json.loads((tmp_path / "validation" / "examples.json").read_text())
    assert {name for own in kept for name in own["exhibit"]["facts"]["target"]["names"]} == {
        "Ada",
        "Bob",
    }
    told = json.dumps(kept)
    assert "salary" in told
    assert "income" not in told  # the name that the data have for the same feature
