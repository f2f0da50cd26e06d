"""`graphgauge monitor`: from a project file to a status.

The exit codes are those that pipelines read.
"""

import json

import pytest
from safetensors.torch import load_file, save_file
from support.decisions import decision
from support.monitoring_histories import made_monitor
from support.user_networks import node_graph, write_project
from typer.testing import CliRunner

import graphgauge as gg
from graphgauge.cli.main import app, main
from graphgauge.datasets import save_graph
from graphgauge.guidelines import Requirements
from graphgauge.lifecycle import Project
from graphgauge.models.fingerprints import digest_of_network

QUICK = {"trials": [4, 8], "timed": 1, "calls": 3}
OWN = {"thresholds": {"feature_ec": 6, "edge_pertinence": 0, "feature_pertinence": 0}}


def run(*arguments):
    """A command; runs draw no pictures, which would take most of the time."""
    more = ["--no-pictures"] if arguments[0] == "run" else []
    return CliRunner().invoke(app, ["monitor", *map(str, arguments), *more], catch_exceptions=False)


def refused(capsys, monkeypatch, *arguments):
    """The one line of an error, with exit code 2."""
    monkeypatch.setattr("sys.argv", ["graphgauge", "monitor", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    return capsys.readouterr().err


@pytest.fixture
def project(tmp_path):
    return write_project(tmp_path, settings=QUICK, **OWN)


@pytest.fixture
def store(tmp_path, project):
    """A store with a baseline of the project's model."""
    done = run(
        "baseline",
        project,
        "--store",
        tmp_path / "m.sqlite",
        "--at",
        "2026-01-05",
        "--per-run",
        8,
        "--overdue",
        10,
    )
    assert done.exit_code == 0
    return tmp_path / "m.sqlite"


def test_a_project_is_watched_from_the_command_line(tmp_path, project, store):
    assert run("status", "--store", store, "--at", "2026-01-06").exit_code == 3
    done = run(
        "run",
        project,
        "--store",
        store,
        "--at",
        "2026-01-12",
        "--json",
        "--log",
        tmp_path / "log.jsonl",
    )
    record = json.loads(done.stdout)
    assert (done.exit_code, record["run"], record["targets"], record["triggers"]) == (0, 1, 8, [])
    assert json.loads((tmp_path / "log.jsonl").read_text()) == record
    fine = run("status", "--store", store, "--at", "2026-01-13")
    assert (fine.exit_code, fine.stdout.splitlines()[-1]) == (
        0,
        "fine (1 run since the baseline of 2026-01-05)",
    )
    late = run("status", "--store", store, "--at", "2026-02-13")
    assert (late.exit_code, late.stdout.splitlines()[0]) == (
        3,
        "incomplete: the last run is 32 days old, the next was due after 10",
    )
    old = json.loads(run("status", "--store", store, "--at", "2027-01-01", "--json").stdout)
    assert [own["name"] for own in old["due"]] == ["validation age"]


def test_the_thresholds_are_those_of_the_project(store):
    found = gg.monitor.Monitor(store).history().baseline.plan.thresholds
    assert {metric: (own.value, own.direction) for metric, own in found.items()} == {
        "feature_ec": (6.0, "at most"),
        "feature_pertinence": (0.0, "at least"),
        "edge_pertinence": (0.0, "at least"),
        "feature_stability": (0.8, "at least"),
        "edge_stability": (0.8, "at least"),
        "time": (5.0, "below"),
    }


def test_names_of_the_data_reach_the_store(store):
    facts = gg.monitor.Monitor(store).history().baseline.facts
    assert (facts.explainer, facts.features) == ("saliency", ("income", "age", "debt"))


def test_a_retrained_model_is_due_and_a_new_baseline_settles_it(project, store, tmp_path):
    weights = load_file(tmp_path / "w.safetensors")
    save_file({name: value * 1.0001 for name, value in weights.items()}, tmp_path / "w.safetensors")
    done = run("run", project, "--store", store, "--at", "2026-01-12")
    assert "model changed: the network's weights" in done.stdout
    assert done.stdout.endswith("action due\n")
    due = run("status", "--store", store, "--at", "2026-01-12")
    assert (due.exit_code, due.stdout.splitlines()[1].strip()) == (
        1,
        "Validate model and explainer again as before the first use, and take a new baseline.",
    )
    assert run("baseline", project, "--store", store, "--at", "2026-01-13").exit_code == 0
    assert run("status", "--store", store, "--at", "2026-01-13").exit_code == 3
    assert run("run", project, "--store", store, "--at", "2026-01-14").exit_code == 0
    assert run("status", "--store", store, "--at", "2026-01-14").exit_code == 0


def test_targets_can_be_named_or_drawn_from_a_mask(project, store, tmp_path):
    run("run", project, "--store", store, "--targets", "3,7,9,1,2", "--at", "2026-01-12")
    (tmp_path / "ids.json").write_text("[4, 5, 6]")
    run("run", project, "--store", store, "--targets", tmp_path / "ids.json", "--at", "2026-01-13")
    run(
        "run",
        project,
        "--store",
        store,
        "--among",
        "test_mask",
        "--number",
        99,
        "--at",
        "2026-01-14",
    )
    runs = gg.monitor.Monitor(store).history().runs
    assert [sorted(own.sample.targets) for own in runs] == [
        [1, 2, 3, 7, 9],
        [4, 5, 6],
        [6, 7, 8, 9, 10, 11],
    ]


def test_a_run_that_raises_something_is_posted(project, store, tmp_path, monkeypatch):
    sent = []
    monkeypatch.setattr(
        "graphgauge.cli.monitor.post_json",
        lambda url, record: sent.append((url, record)) or "it was not reached",
    )
    arguments = ("run", project, "--store", store, "--webhook", "http://127.0.0.1:9/hook")
    assert run(*arguments, "--at", "2026-01-12").exit_code == 0
    assert sent == []
    done = run(*arguments, "--at", "2026-12-12")
    assert done.exit_code == 0
    assert [(url, record["triggers"][0]["name"]) for url, record in sent] == [
        ("http://127.0.0.1:9/hook", "validation age")
    ]
    assert "graphgauge: warning: it was not reached" in done.stderr


def test_triggers_are_raised_and_settled_by_hand(store):
    assert (
        run(
            "trigger",
            "--reason",
            "regulatory update",
            "--who",
            "legal",
            "--store",
            store,
            "--at",
            "2026-01-06",
        ).exit_code
        == 0
    )
    due = run("status", "--store", store, "--at", "2026-01-06")
    assert (due.exit_code, due.stdout.splitlines()[0]) == (
        1,
        "m1  manual: regulatory update (raised by legal). (since 2026-01-06)",
    )
    assert run("settle", "m1", "--note", "looked at", "--store", store).stdout == "settled: m1\n"
    assert run("status", "--store", store, "--at", "2026-01-06").exit_code == 3


@pytest.fixture
def decided(project, tmp_path):
    """A decision on the project's network, for an explainer that the project does not name."""
    network = digest_of_network(Project.read(project).model())
    limits = Requirements(
        "node_classification", num_features=3, limits={"edge_ec": 5.0, "feature_ec": 2.0}
    )
    own = decision(
        explainer="integrated_gradients",
        parameters={"steps": 7},
        label="ig",
        network=network,
        requirements=limits.record(),
    )
    own.write(tmp_path / "decision.json")
    return own


def test_a_decision_says_the_explainer_the_limits_and_the_date(project, decided, tmp_path):
    store = ("--store", tmp_path / "d.sqlite")
    done = run(
        "baseline",
        project,
        "--decision",
        tmp_path / "decision.json",
        "--at",
        "2026-12-01",
        "--number",
        8,
        *store,
    )
    assert (
        done.stdout.splitlines()[0] == "baseline 1 of 8 targets, 2026-12-01, integrated_gradients"
    )
    assert run("run", project, "--at", "2026-12-08", "--number", 6, *store).exit_code == 0
    history = gg.monitor.Monitor(tmp_path / "d.sqlite").history()
    (last,) = history.runs
    assert (last.facts.explainer, last.facts.params["steps"]) == ("integrated_gradients", 7)
    assert (last.plan.thresholds["edge_ec"].value, last.plan.thresholds["feature_ec"].value) == (
        5.0,
        2.0,
    )
    assert (history.baseline.validated.decision, history.baseline.validated.signed_by) == (
        decided.digest,
        "Ada",
    )
    for day, names in (
        ("2027-05-14", []),
        ("2027-05-15", ["validation age"]),
    ):  # 180 days after the decision of 15 November
        found = json.loads(run("status", "--at", day, "--json", *store).stdout)
        assert [own["name"] for own in found["due"] if own["name"] == "validation age"] == names


def test_a_decision_on_another_network_or_beside_another_explainer_is_refused(
    project, decided, tmp_path, capsys, monkeypatch
):
    baseline = (
        "baseline",
        project,
        "--decision",
        tmp_path / "decision.json",
        "--store",
        tmp_path / "d.sqlite",
    )
    assert "the decision chose 'ig', but --explainer says 'lrp'" in refused(
        capsys, monkeypatch, *baseline, "--explainer", "lrp"
    )
    assert run(*baseline, "--number", 4, "--at", "2026-12-01").exit_code == 0
    told = refused(
        capsys,
        monkeypatch,
        "run",
        project,
        "--store",
        tmp_path / "d.sqlite",
        "--explainer",
        "saliency",
    )
    assert (
        "the baseline follows a decision for 'integrated_gradients', but --explainer says "
        "'saliency'"
    ) in told
    decision(network="another").write(tmp_path / "decision.json")
    assert "the decision is not about this network" in refused(capsys, monkeypatch, *baseline)


def test_a_run_keeps_its_worst_and_best_explanations_for_the_page(project, store, tmp_path):
    done = CliRunner().invoke(
        app, ["monitor", "run", str(project), "--store", str(store), "--at", "2026-01-12"]
    )
    assert done.exit_code == 0, done.output
    examples = gg.monitor.Monitor(store).history().examples
    assert [own["end"] for own in examples] == ["worst", "worst", "best", "best"]
    assert [own["pertinence"] for own in examples[:2]] == sorted(
        own["pertinence"] for own in examples
    )[:2]
    assert all("income" in own["pictures"]["The features that matter"] for own in examples)
    assert all(
        own["text"].startswith("Target: node ") and own["explainer"] == "saliency"
        for own in examples
    )


def test_saved_results_can_be_a_baseline(project, tmp_path):
    evaluator = Project.read(project, {"settings": {**QUICK, "stability": "binomial"}}).evaluator()
    evaluator.compare([gg.Saliency()], list(range(10))).save(tmp_path / "run")
    done = run(
        "baseline", tmp_path / "run", "--explainer", "saliency", "--store", tmp_path / "r.sqlite"
    )
    assert done.stdout.splitlines()[0].startswith("baseline 1 of 10 targets")


def test_the_page_is_written(store, tmp_path):
    done = run("page", "--store", store, "--output", tmp_path / "page.html", "--at", "2026-01-06")
    assert (done.exit_code, done.stdout.strip()) == (0, str(tmp_path / "page.html"))
    assert "no run was held against the baseline yet" in (tmp_path / "page.html").read_text()


def test_mistakes_are_one_line_and_exit_code_2(project, store, tmp_path, capsys, monkeypatch):
    cases = {
        ("status", "--store", tmp_path / "none.sqlite"): "there is no monitoring store",
        ("run", project, "--store", store, "--at", "soon"): "--at must be a date",
        ("run", project, "--store", store, "--targets", "a,b"): "--targets must be ids",
        (
            "run",
            project,
            "--store",
            store,
            "--webhook",
            "file:///etc/passwd",
        ): "a webhook is an address",
        (
            "run",
            project,
            "--store",
            store,
            "--explainer",
            "lrp",
        ): "No explainer of the project is called 'lrp'",
        ("run", project, "--store", store, "--at", "2025-01-01"): "already reaches 2026-01-05",
        ("baseline", tmp_path): "say with --explainer",
    }
    for arguments, told in cases.items():
        assert told in refused(capsys, monkeypatch, *arguments)


def test_which_explainer_is_in_use_must_be_clear(tmp_path, capsys, monkeypatch):
    path = write_project(tmp_path, explainers=["saliency", "lrp", "random"])
    told = refused(capsys, monkeypatch, "baseline", path, "--store", tmp_path / "m.sqlite")
    assert "Say --decision, or --explainer, one of: saliency, lrp, random." in told


def test_a_store_of_something_else_is_refused(project, tmp_path, capsys, monkeypatch):
    with gg.store.Store(tmp_path / "other.sqlite", write=True) as other:
        other.append("run", "run", {"config": {}})
    assert "is not a monitoring store" in refused(
        capsys, monkeypatch, "status", "--store", tmp_path / "other.sqlite"
    )


def test_data_that_shifted_is_due(project, store, tmp_path):
    data = node_graph()
    data.x[:, 2] += 50
    save_graph(data, tmp_path / "g.safetensors")
    done = json.loads(
        run("run", project, "--store", store, "--number", 12, "--at", "2026-01-12", "--json").stdout
    )
    shifted = [own for own in done["triggers"] if own["name"] == "data shift"]
    assert [own["details"]["z"]["debt"] > 3 for own in shifted] == [True]


def test_one_trigger_is_told_in_the_singular(project, store, tmp_path):
    data = node_graph()
    data.x[:, 2] += 50
    save_graph(data, tmp_path / "g.safetensors")
    done = run("run", project, "--store", store, "--number", 12, "--at", "2026-01-12")
    assert ", 1 trigger\n" in done.stdout
    assert (
        "(1 run since the baseline of"
        in run("status", "--store", store, "--at", "2026-01-13").stdout
    )


def test_a_made_history_tells_what_waits(tmp_path):
    made_monitor(tmp_path / "m.sqlite", 1)
    assert run("status", "--store", tmp_path / "m.sqlite", "--at", "2026-01-13").exit_code == 0
