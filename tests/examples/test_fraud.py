"""The fraud example, in a short form: validation, decision, gate, service, documents, and three
weeks of monitoring.
"""

import json
import re
import shutil
from datetime import datetime, timedelta, timezone
from pathlib import Path

import fraud
import make_files
import pytest
import torch
from typer.testing import CliRunner

from graphgauge.cli.main import app
from graphgauge.datasets import save_graph
from graphgauge.lifecycle import Decision, Project
from graphgauge.lifecycle.mlflow_tracking import mlflow_client
from graphgauge.serve.project_service import service_from_project
from graphgauge.serve.requests import Question
from graphgauge.serve.settings import Settings

README = Path(make_files.__file__).parent / "README.md"
# MLflow 3.17 with SQLAlchemy 2.1
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """The project with fewer targets and trials, and a limit that so few targets meet."""
    path = make_files.write_files(tmp_path_factory.mktemp("fraud"), targets=12)
    for own in path.parent.glob("*.yaml"):
        own.write_text(
            own.read_text().replace("feature_ec: 10", "feature_ec: 12")
            + "settings: {trials: [30, 40]}\n"
        )
    return path


@pytest.fixture(scope="module")
def validated(project):
    """What `graphgauge validate` said; its files are in the folder 'validation'."""
    done = run(
        "validate", project, "--accuracy", "0.87", "--mlflow", f"sqlite:///{project.parent}/runs.db"
    )
    assert done.exit_code == 0, done.output
    return done


def test_from_a_project_file_to_a_gate_and_documents(project, validated):
    folder, done = project.parent, validated
    store = f"sqlite:///{folder}/runs.db"
    assert "Chosen: input_x_gradient" in done.stdout
    decision = Decision.read(folder / "validation")
    model = Project.read(project).model()
    assert [problem.kind for problem in decision.check(model)] == ["unsigned"]
    assert run("check", folder / "validation", "--decision", folder / "validation").exit_code == 3
    logged = mlflow_client(store).get_run(done.stderr.split("MLflow run ")[1].split()[0]).data
    assert logged.params["decision"] == decision.digest
    assert logged.metrics["input_x_gradient/edge_ec.n"] >= 10
    assert (logged.params["network"], logged.params["targets"]) == (decision.network, "12")

    assert run("sign", folder / "validation", "--by", "Ada").exit_code == 0
    signed = Decision.read(folder / "validation")
    assert signed.check(model) == []

    gate = run(
        "check",
        folder / "validation",
        "--decision",
        folder / "validation",
        "--junit",
        folder / "gate.xml",
        "--annotations",
    )
    assert gate.exit_code == 0, gate.output
    assert 'failures="0"' in (folder / "gate.xml").read_text()

    told = answered(project, signed, folder / "audit.sqlite")
    assert (told["explainer"], told["flags"]) == ("input_x_gradient", [])
    assert run("audit", "verify", folder / "audit.sqlite").exit_code == 0

    written = run("documents", folder / "validation", "--output", folder / "documents", "--json")
    assert written.exit_code == 0, written.output
    texts = {Path(path).stem: Path(path).read_text() for path in json.loads(written.stdout)}
    for verdict in signed.numbers():
        if verdict.number is not None:
            assert f"{verdict.number:.4g}" in texts["annex_iv"], verdict.metric
    assert signed.digest in texts["audit_trail"]
    assert "their digests agree" in texts["audit_trail"]
    assert texts["checklist"].count("- [") == 8


def answered(project, decision, log):
    """The service's answer to one question, from its decision."""
    service = service_from_project(
        Project.read(project),
        log,
        Settings(token="a-token-for-tests-only", budget_ms=60_000),
        decision=decision,
    )
    service.start()
    service.wait_until_warm()
    question = Question(
        target=17, explainer=None, language="de", audience="internal", top_k=3, asked_by="a test"
    )
    found = service.ask(question).result()
    service.stop()
    return found


def watch(week, store, at, *more):
    """The triggers of a run on the data of a week, at a day after the decision."""
    day = (datetime.now(timezone.utc) + timedelta(days=7 * at)).date()
    done = run(
        "monitor",
        "run",
        store.parent / f"{week}.yaml",
        "--at",
        day,
        "--json",
        "--store",
        store,
        *more,
    )
    assert done.exit_code == 0, done.output
    return {trigger["name"]: trigger["told"] for trigger in json.loads(done.stdout)["triggers"]}


def test_three_weeks_of_monitoring_raise_the_shift_of_the_data_and_no_other_trigger(
    project, validated
):
    folder, store = project.parent, project.parent / "monitor.sqlite"
    assert (
        run(
            "monitor", "baseline", project, "--decision", folder / "validation", "--store", store
        ).exit_code
        == 0
    )
    assert (
        watch("week-1", store, 1, "--no-pictures")
        == watch("week-2", store, 2, "--no-pictures")
        == {}
    )
    inflated = Path(shutil.copytree(folder, folder.parent / "inflated")) / "monitor.sqlite"
    raised = watch("week-3-drifted", store, 3)
    assert list(raised) == ["data shift"]
    assert "newsletter (+" in raised["data shift"]
    at = ("--at", (datetime.now(timezone.utc) + timedelta(days=22)).date(), "--store", store)
    assert run("monitor", "status", *at).exit_code == 1
    assert run("monitor", "page", "--output", folder / "monitor.html", *at).exit_code == 0
    page = (folder / "monitor.html").read_text()
    assert page.count("data:image/svg+xml;base64,") == 16
    assert "Target: account " in page

    save_graph(fraud.week(3, "inflation"), inflated.parent / "week-3.safetensors")
    raised = watch("week-3", inflated, 3, "--no-pictures")
    assert list(raised) == ["data shift"]
    assert "moved most (z): log amount (mean over its edges) (+" in raised["data shift"]


def test_a_stricter_threshold_closes_the_gate(project):
    """A project with another limit fails with code 1.

    An edited decision is refused instead.
    """
    strict, folder = project.with_name("strict.yaml"), project.parent / "strict"
    text = (
        project.read_text()
        .replace("edge_ec: 10", "edge_ec: 0.5")
        .replace("number: 12", "number: 4")
    )
    strict.write_text(
        text.replace("trials: [30, 40]", "trials: [5, 5], stability: none")
        + "explainers: [saliency]\n"
    )
    done = run("validate", strict, "--output", folder)
    gate = run("check", folder, "--decision", folder)
    assert (done.exit_code, gate.exit_code) == (1, 1)
    assert "misses the threshold of at most 0.5 (your own limit)" in done.stdout
    assert gate.stdout.splitlines()[-1].startswith("below threshold")


def test_the_network_reads_edge_attributes_and_is_better_than_saying_ordinary():
    data = fraud.week(0)
    net = fraud.trained(data)
    assert data.edge_attr.shape == (2160, 3)
    ordinary = 1 - data.y[data.test_mask].float().mean().item()
    assert fraud.accuracy(net, data) >= ordinary + 0.04
    other = data.clone()
    other.edge_attr = torch.zeros_like(data.edge_attr)
    assert not torch.allclose(
        net(data.x, data.edge_index, data.edge_attr),
        net(other.x, other.edge_index, other.edge_attr),
    )


def test_training_leaves_the_random_state_alone_and_is_repeatable():
    data, before = fraud.week(0), torch.random.get_rng_state()
    first, second = fraud.trained(data, epochs=3), fraud.trained(data, epochs=3)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(
        torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True)
    )


def test_weeks_share_accounts_and_habits_and_differ_in_the_rest():
    first, second = fraud.week(1), fraud.week(2)
    standing = (fraud.ACCOUNTS + 120) * fraud.STANDING
    assert torch.equal(first.edge_index[:, :standing], second.edge_index[:, :standing])
    assert not torch.equal(first.edge_index[:, standing:], second.edge_index[:, standing:])
    ordinary = first.y == 0
    seen = torch.corrcoef(torch.stack([first.x[ordinary].flatten(), second.x[ordinary].flatten()]))[
        0, 1
    ].item()
    assert abs(seen - fraud.HABIT) < 4 * (1 - fraud.HABIT**2) / (480 * 8) ** 0.5
    assert torch.equal(first.y, second.y)
    assert torch.equal(first.test_mask, second.test_mask)
    assert not torch.equal(first.x, second.x)
    assert torch.equal(fraud.week(1).x, first.x)


def test_rings_pay_inside_and_nobody_pays_themselves():
    data, ring = fraud.week(0), fraud.rings()
    payer, payee = data.edge_index
    members = int((ring >= 0).sum())
    # anybody, ring; standing, fresh
    counts = [part for number in (2, 1) for part in (fraud.ACCOUNTS * number, members * number)]
    inside = torch.repeat_interleave(torch.tensor([False, True, False, True]), torch.tensor(counts))
    assert torch.equal(ring[payer[inside]], ring[payee[inside]])
    assert (ring[payer[inside]] >= 0).all()
    assert (payer != payee).all()
    assert torch.bincount(ring[ring >= 0]).tolist() == [fraud.RING] * 20


@pytest.mark.parametrize(
    ("drift", "features", "attributes"),
    [
        ("none", [], []),
        ("newsletter campaign", [7], []),
        ("cash boom", [0], []),
        ("inflation", [], [0]),
    ],
)
def test_a_drift_moves_what_it_says_by_one_sd_and_nothing_else(drift, features, attributes):
    usual, moved = fraud.week(3), fraud.week(3, drift)
    for before, after, columns in (
        (usual.x, moved.x, features),
        (usual.edge_attr, moved.edge_attr, attributes),
    ):
        expected = torch.zeros_like(before)
        expected[:, columns] = 1.0
        assert torch.allclose(after - before, expected, atol=1e-6)
    assert torch.equal(usual.edge_index, moved.edge_index)


def test_the_readme_names_commands_that_exist_or_are_announced():
    named = set(re.findall(r"^graphgauge (\w+)", README.read_text(), re.M))
    assert {"consult", "validate", "sign", "check", "documents", "serve", "monitor"} <= named
    known = {command.name or command.callback.__name__ for command in app.registered_commands}
    assert named - known <= {"serve", "monitor", "dashboard"}
