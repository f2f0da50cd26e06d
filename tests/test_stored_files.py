"""Later versions read the files that graphgauge wrote before its modules and classes were renamed.

The folder fixtures/stored_0_1 holds one small file of each kind. The expected values below are
those that the version which wrote them read from them (0.1.0.dev0 at commit 6ede41c).
"""

import json
import shutil
from datetime import datetime, timezone
from pathlib import Path

import pytest
from typer.testing import CliRunner

import graphgauge as gg
from graphgauge.cli.main import app
from graphgauge.lifecycle import Decision, Project
from graphgauge.monitor import Monitor

STORED = Path(__file__).parent / "fixtures" / "stored_0_1"
NETWORK, DATA = "ed4550f5f6094773ae94fb5a", "b1ba07e5ef760a94a5160dac"
TARGETS = [0, 1, 2, 3, 4, 5, 6, 7, 8, 11]
HEAD = "918dfb1d3af7f3d32d6a77ed8965d6cfba2f52265c77f9dde70c555bad8126a2"


@pytest.fixture
def stored(tmp_path):
    """A copy, so that no command can change the files."""
    return shutil.copytree(STORED, tmp_path / "stored")


def command(*words):
    """Exit code and text of a command."""
    done = CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)
    return done.exit_code, done.output


def means(results, explainer, metrics):
    """Means over targets, as the summary has them."""
    table = results.summary()
    return [table.loc[(explainer, metric), "mean"] for metric in metrics]


# --- results and explanations ---------------------------------------------------------------------


def test_an_explanation_keeps_scores_target_and_metrics():
    x = gg.Xplanation.load(STORED / "explanation.safetensors")
    assert (x.target, x.explainer, x.seed, x.level) == (5, "input_x_gradient", 0, "node")
    assert x.params == {"explain_output": "prob", "edge_factor": "message"}
    assert x.edge_score[:2].tolist() == [-0.11129125207662582, -0.07018754631280899]
    assert tuple(x.feature_score.shape) == (5, 3)
    assert x.feature_score[0, 0].item() == -0.0855192020535469
    assert x.metrics["edge_pertinence"] == 0.8333333333333334
    assert x.metrics["evaluation"]["cells"]["feature_ec"]["draws"] == [1.0] * 5
    assert x.metrics["feature_pertinence_p"] == 0.3


def test_results_keep_rows_settings_accuracy_and_examples():
    results = gg.Results.load(STORED / "results")
    assert len(results.rows) == 320
    metrics = ["edge_ec", "feature_ec", "edge_pertinence", "feature_pertinence_tied"]
    expected = [3.5, 1.6, 0.7527777777777778, 0.6837606837606838]
    assert means(results, "ig", metrics) == pytest.approx(expected, rel=1e-15)
    assert means(results, "random", ["edge_ec", "edge_pertinence_tied"]) == pytest.approx(
        [5.2, 4 / 9]
    )
    assert results.settings.digest == "77fbf98c04f7"
    assert (results.settings.trials, results.settings.cap) == ((3, 6), 6)
    assert results.accuracy.value == 2 / 3
    identity = {"task": "node_classification", "network": NETWORK, "data": DATA}
    assert results.made["identity"] == identity
    assert sorted(key[3] for key in results.kept() if key[2] == "ig") == [1, 3, 5, 8]
    first = next(row.cell for row in results.rows if row.metric == "feature_ec")
    assert (first.draws, first.value) == ((2.0, 4.0, 2.0, 2.0, 2.0), 2.4)


def test_a_check_of_stored_results_gives_the_same_verdicts(stored):
    code, text = command("check", stored / "results", "--json")
    record = json.loads(text)
    assert (code, record["code"], record["reason"]) == (1, 1, "1 of 7 numbers miss their threshold")
    assert record["requirements"]["limits"] == {"edge_pertinence": 0.4}
    outcomes = {each["metric"]: each["outcome"] for each in record["verdicts"]}
    assert outcomes == {
        "feature_pertinence_tied": "warn",
        "edge_pertinence_tied": "warn",
        "feature_ec": "fail",
        "edge_ec": "not applicable",
        "feature_stability": "warn",
        "edge_stability": "warn",
        "time": "pass",
    }


def test_a_report_shows_stored_results_and_their_examples(stored, tmp_path):
    code, _ = command("report", stored / "results", "--output", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert code == 0
    assert all(word in page for word in ("ring", "integrated_gradients", "granted", "income"))


def test_a_benchmark_run_keeps_its_rows(stored):
    results = gg.Results.load(stored / "benchmark")
    assert len(results.rows) == 96
    networks = {(row.task, row.model, row.seed) for row in results.rows}
    assert networks == {("ba-shapes-node", "gcn", 0)}
    metrics = ["edge_ec", "feature_pertinence", "feature_stability"]
    expected = [2.3333333333333335, 0.10648148148148147, 1.0]
    assert means(results, "saliency", metrics) == pytest.approx(expected, rel=1e-15)
    assert means(results, "random", ["feature_pertinence_tied"]) == pytest.approx(
        [0.6198830409356725]
    )
    assert results.settings.trials == (2, 3)


# --- projects, decisions, monitoring, answers -----------------------------------------------------


def test_a_project_file_gives_the_same_network_targets_and_requirements():
    project = Project.read(STORED / "graphgauge.yaml")
    model = project.model()
    assert model.pred_continuous([0])[0].tolist() == pytest.approx([0.8542, 0.1458], abs=1e-4)
    assert project.targets(model) == TARGETS
    assert {name: explainer.name for name, explainer in project.explainers().items()} == {
        "ig": "integrated_gradients",
        "random": "random",
    }
    assert project.explainers()["ig"].params["steps"] == 5
    wanted = project.requirements(model)
    assert (wanted.latency, wanted.num_features) == ("offline", 3)
    assert wanted.limits == {"edge_pertinence": 0.4}
    assert dict(project.names(model).classes) == {0: "declined", 1: "granted"}


def test_measuring_the_project_again_gives_the_stored_numbers():
    project, stored = Project.read(STORED / "graphgauge.yaml"), gg.Results.load(STORED / "results")
    model = project.model()
    results = project.evaluator(model).compare(project.explainers(), project.targets(model))
    assert results.settings.digest == stored.settings.digest

    def numbers(rows):
        return {
            (row.explainer, row.metric, row.target): row.cell.value
            for row in rows
            if not row.metric.startswith("time")
        }

    assert numbers(results.rows) == pytest.approx(numbers(stored.rows), rel=1e-6, abs=1e-9)


def test_a_decision_keeps_its_digest_and_still_holds_for_its_network():
    decision = Decision.read(STORED / "validation")
    assert decision.digest == "f224217597e32ecfb84434acf862def6"
    assert (decision.label, decision.explainer) == ("ig", "integrated_gradients")
    assert decision.signed_by == "Ada Lovelace"
    assert (decision.network, decision.data, decision.targets) == (NETWORK, DATA, 10)
    model = Project.read(STORED / "graphgauge.yaml").model()
    assert decision.check(model, datetime(2030, 1, 1, tzinfo=timezone.utc)) == []
    late = decision.check(model, datetime(2036, 1, 4, tzinfo=timezone.utc))
    assert [problem.kind for problem in late] == ["expired"]
    assert decision.chosen().params["steps"] == 5
    assert decision.wanted().limits == {"edge_pertinence": 0.4}
    assert (decision.monitor_with().early_stop, decision.monitor_with().twins) == ("paper", False)
    numbers = {verdict.metric: (verdict.number, verdict.outcome) for verdict in decision.numbers()}
    assert numbers["feature_ec"] == (1.6, "fail")


def test_a_validation_keeps_both_measurements_and_belongs_to_its_decision():
    every = gg.Results.load(STORED / "validation")
    production = gg.Results.load(STORED / "validation/production")
    assert (len(every.rows), len(production.rows)) == (320, 160)
    assert Decision.read(STORED / "validation").changes_in(every) == []
    assert means(production, "ig", ["feature_pertinence"]) == pytest.approx([0.6583333333333333])


def test_documents_are_written_from_a_stored_validation(stored, tmp_path):
    where, store = tmp_path / "documents", stored / "monitor.sqlite"
    code, _ = command("documents", stored / "validation", "--output", where, "--monitor", store)
    assert code == 0
    same_rows = "The rows of this run are those that the decision was made by"
    assert same_rows in (where / "audit_trail.md").read_text()
    assert "Ada Lovelace, 2026-01-05T12:00:00+00:00" in (where / "annex_iv.md").read_text()
    assert "2 runs since the baseline of 2026-01-05" in (where / "checklist.md").read_text()


def test_a_monitoring_history_keeps_baseline_runs_and_triggers():
    history = Monitor(STORED / "monitor.sqlite").history()
    baseline = history.baseline
    assert (len(baseline.sample), [len(run.sample) for run in history.runs]) == (10, [8, 8])
    assert baseline.validated.decision == Decision.read(STORED / "validation").digest
    assert baseline.plan.thresholds["edge_stability"].value == 1.5
    first = history.runs[0].sample.known("edge_pertinence")
    assert first[2:4].tolist() == [0.8, 0.8333333333333334]
    assert baseline.sample.data.shape == (10, 7)
    assert baseline.facts.columns[:3] == ("income", "age", "debt")


def test_the_status_of_a_stored_history_is_the_same(stored):
    store, at = stored / "monitor.sqlite", "2026-01-20"
    code, text = command("monitor", "status", "--store", store, "--at", at, "--json")
    record = json.loads(text)
    assert (code, record["code"], record["runs"]) == (1, 1, 2)
    waiting = [(each["name"], each["subject"], each["id"], each["times"]) for each in record["due"]]
    assert waiting == [
        ("manual", "new customers", "m2", 1),
        ("threshold crossed", "edge_stability", "2.1", 2),
    ]
    assert record["due"][1]["number"] == 1.0


def test_a_stored_history_can_be_continued(stored):
    project, store = STORED / "graphgauge.yaml", stored / "monitor.sqlite"
    code, text = command(
        "monitor", "run", project, "--store", store, "--at", "2026-01-26", "--json"
    )
    record = json.loads(text)
    assert (code, record["run"], record["targets"]) == (0, 3, 8)
    raised = [(each["name"], each["subject"]) for each in record["triggers"]]
    assert raised == [("threshold crossed", "edge_stability")]


def test_an_audit_log_is_whole_and_keeps_its_answers(stored, tmp_path):
    code, text = command("audit", "verify", stored / "audit.sqlite", "--head", HEAD, "--json")
    assert (code, json.loads(text)["entries"], json.loads(text)["head"]) == (0, 4, HEAD)
    code, text = command("audit", "export", stored / "audit.sqlite", "--format", "jsonl")
    records = [json.loads(line)["record"] for line in text.splitlines()]
    assert [record["what"] for record in records] == ["start", "answer", "answer", "stop"]
    answer = records[1]
    assert (answer["target"], answer["explainer"]) == (5, "input_x_gradient")
    assert (answer["model"], answer["flags"]) == (NETWORK, ["not_validated"])
    assert (answer["prediction"]["name"], answer["prediction"]["probability"]) == ("granted", 0.519)
