"""`graphgauge check` and `graphgauge consult`: exit codes, text, JSON, and the requirements
document.
"""

import json

import pytest
from support.chosen_results import GOOD, good
from support.chosen_results import run as made
from typer.testing import CliRunner

from graphgauge.cli.main import app, main
from graphgauge.guidelines import TASK_KINDS


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def folder(tmp_path):
    def save(numbers, **options):
        made(numbers, **options).save(tmp_path / "run")
        return str(tmp_path / "run")

    return save


@pytest.mark.parametrize(
    ("numbers", "code", "answer"),
    [
        (
            {"lrp": GOOD, "random": good(edge_pertinence=0.4, feature_pertinence=0.5)},
            0,
            "pass: no number of 7 misses its threshold.",
        ),
        (
            {"lrp": good(edge_pertinence=0.4)},
            1,
            "below threshold: 1 of 7 numbers miss their threshold.",
        ),
        (
            {"lrp": good(edge_stability="nan_attribution")},
            3,
            "incomplete: 1 of 7 numbers could not be judged.",
        ),
    ],
)
def test_the_exit_code_is_the_answer(folder, numbers, code, answer):
    done = run("check", folder(numbers), "--features", "200")
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (code, answer)
    assert done.stdout.splitlines()[:2] == ["The model itself: its accuracy is not known.", "lrp"]
    assert len(done.stdout.splitlines()) == 10


def test_options_reach_the_verdicts(folder):
    path = folder({"lrp": good(edge_stability=0.9, time=0.2), "saliency": good(time=0.5)})
    usual = ["check", path, "--features", "200", "--explainer", "lrp"]
    assert run(*usual).exit_code == 0
    assert "fail" in run("check", path, "--features", "200", "--latency", "interactive").stdout
    found = json.loads(
        run(*usual, "--stakes", "high-stakes", "--task", "link-regression", "--json").stdout
    )
    assert found["requirements"]["task_kind"] == "link_regression"
    assert {own["metric"]: own["outcome"] for own in found["verdicts"]}["edge_stability"] == "warn"
    assert run("check", path, "--focus", "edge").exit_code == 0


def test_missing_numbers_are_null_in_json(folder):
    found = json.loads(run("check", folder({"lrp": good(edge_ec="empty")}), "--json").stdout)
    assert {own["metric"]: own["number"] for own in found["verdicts"]}["edge_ec"] is None
    assert found["code"] == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "no/such/run"], "no/such/run holds no results that graphgauge saved"),
        (["consult", "node"], "has no rows for 'node'. It has: node_classification"),
        (["consult", "node-regression", "--stakes", "all"], "stakes must be one of"),
        (
            ["consult", "node-regression", "--requirements", "no/such/folder/r.md"],
            "could not be written",
        ),
    ],
)
def test_mistakes_are_one_line_and_code_2(arguments, message, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["graphgauge", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    told = capsys.readouterr()
    assert message in told.err
    assert told.out == ""


@pytest.mark.parametrize("kind", TASK_KINDS)
def test_advice_for_every_kind_of_task(kind):
    done = run("consult", kind.replace("_", "-"), "--features", "128")
    assert done.exit_code == 0
    first = done.stdout.splitlines()[0]
    assert "(from the benchmark that comes with graphgauge)" in first
    found = json.loads(run("consult", kind, "--features", "128", "--json").stdout)
    assert f": {found['chosen']} (" in first
    assert len(found["others"]) == 7


def test_the_requirements_are_written_beside_the_advice(tmp_path):
    file = tmp_path / "requirements.md"
    done = run(
        "consult", "link-classification", "--stakes", "high-stakes", "--requirements", str(file)
    )
    assert done.exit_code == 0
    text = file.read_text(encoding="utf-8")
    assert text.startswith("# Requirements on explanations")
    assert "Kind of task: link classification" in text
    assert "Stakes: high-stakes" in text


@pytest.mark.parametrize("task", ["graph-classification", "dinner"])
def test_consult_lists_only_tasks_that_it_accepts(task, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["graphgauge", "consult", task])
    with pytest.raises(SystemExit) as stop:
        main()
    told = capsys.readouterr().err
    assert stop.value.code == 2
    listed = told.strip().removesuffix(".").partition("It has: ")[2].split(", ")
    assert listed == list(TASK_KINDS)
    assert [run("consult", kind).exit_code for kind in listed] == [0] * len(listed)
