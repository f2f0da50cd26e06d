"""Runs in MLflow: a SQLite file, and a real server in another process."""

import builtins
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from support.chosen_results import GOOD, good
from support.chosen_results import run as made
from typer.testing import CliRunner

from graphgauge.cli.main import app
from graphgauge.core.errors import BadFile, BadSetting, MissingExtra
from graphgauge.evaluation import Settings
from graphgauge.lifecycle.mlflow_tracking import (
    Tracker,
    _flatten_record,
    _mlflow_key,
    _mlflow_metrics,
    mlflow_client,
)

SECONDS_TO_START = 120

pytestmark = [  # of MLflow 3.17 itself, with SQLAlchemy 2.1
    pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """`mlflow server` on a free port of the loopback, with its own store and files."""
    place = tmp_path_factory.mktemp("server")
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "mlflow",
        "server",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--workers",
        "1",
    ]
    command += [
        "--backend-store-uri",
        f"sqlite:///{place}/store.db",
        "--artifacts-destination",
        str(place / "files"),
    ]
    quiet = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}
    with (place / "log").open("w") as log:
        process = subprocess.Popen(
            command,
            env={**os.environ, **quiet},
            stdout=log,
            stderr=log,
            cwd=place,
            start_new_session=True,
        )
        try:
            wait_for(f"http://127.0.0.1:{port}/health", process, place / "log")
            yield f"http://127.0.0.1:{port}"
        finally:
            os.killpg(process.pid, 15)
            process.wait(20)


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def wait_for(address, process, log):
    end = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(address, timeout=2):
                return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(log.read_text())


@pytest.fixture
def sqlite(tmp_path):
    return f"sqlite:///{tmp_path}/runs.db"


@pytest.fixture
def results():
    return made(
        {
            "lrp": good(edge_ec=[3.0, 5.0, 10.0]),
            "gnn_explainer(epochs=5)": good(edge_stability="nan_attribution"),
        },
        n=3,
    )


def logged(client, run, name, folder):
    return Path(client.download_artifacts(run, name, str(folder))).read_text(encoding="utf-8")


def check_run(client, run, results, folder):
    """Everything that was logged, read back."""
    found = client.get_run(run)
    assert found.info.status == "FINISHED"
    assert found.data.metrics["lrp/edge_ec"] == pytest.approx(6.0)
    assert found.data.metrics["lrp/edge_ec.sd"] == pytest.approx(13**0.5)
    assert found.data.metrics["lrp/edge_ec.n"] == 3
    assert found.data.metrics["gnn_explainer_epochs_5_/time"] == pytest.approx(GOOD["time"])
    assert "gnn_explainer_epochs_5_/edge_stability" not in found.data.metrics  # no value is not 0
    assert found.data.metrics["gnn_explainer_epochs_5_/edge_stability.n"] == 0
    assert found.data.params["settings.cap"] == "100"
    assert found.data.params["settings_digest"] == results.settings.digest
    assert found.data.params["weights.hash"] == "abc"
    names = {file.path for file in client.list_artifacts(run)}
    assert names == {"settings.json", "summary.json", "rows.json", "report.html", "note.txt"}
    shown = [{"path": name, "type": "table"} for name in ("summary.json", "rows.json")]
    # MLflow's page draws these as tables
    assert json.loads(found.data.tags["mlflow.loggedArtifacts"]) == shown
    table = json.loads(logged(client, run, "summary.json", folder))
    assert table["columns"][:3] == ["explainer", "metric", "mean"]
    assert len(json.loads(logged(client, run, "rows.json", folder))["data"]) == len(results)
    assert json.loads(logged(client, run, "settings.json", folder)) == results.settings.record()
    page = logged(client, run, "report.html", folder)
    assert "<html" in page
    assert "edge_ec" in page or "Edge" in page


def log_with_a_note(uri, results, tmp_path):
    note = tmp_path / "note.txt"
    note.write_text("hello")
    return Tracker(uri, name="first", tags={"team": "risk"})(
        results, {"weights": {"hash": "abc"}}, [note]
    )


def test_a_run_in_a_sqlite_file(sqlite, results, tmp_path):
    run = log_with_a_note(sqlite, results, tmp_path)
    client = mlflow_client(sqlite)
    check_run(client, run, results, tmp_path)
    assert client.get_run(run).data.tags["team"] == "risk"
    assert (
        tmp_path / "mlartifacts"
    ).is_dir()  # beside the database, not where the command was started


def test_a_run_on_a_real_server(server, results, tmp_path):
    run = log_with_a_note(server, results, tmp_path)
    check_run(mlflow_client(server), run, results, tmp_path)


def test_a_second_run_goes_into_the_same_experiment(server, results):
    first, second = Tracker(server, "twice")(results), Tracker(server, "twice")(results)
    client = mlflow_client(server)
    assert first != second
    assert client.get_run(first).info.experiment_id == client.get_run(second).info.experiment_id


def test_more_metrics_and_parameters_than_one_call_takes(server):
    many = made({f"explainer{k}": GOOD for k in range(26)}, n=2)
    parameters = {f"p{k}": k for k in range(250)}
    found = mlflow_client(server).get_run(Tracker(server, "many")(many, parameters)).data
    assert len(found.metrics) == len(_mlflow_metrics(many)) > 1000
    assert sum(name.startswith("p") for name in found.params) == 250


def test_nothing_of_the_users_own_tracking_changes(sqlite, results):
    import mlflow

    before = mlflow.get_tracking_uri(), mlflow.active_run()
    Tracker(sqlite)(results)
    assert (mlflow.get_tracking_uri(), mlflow.active_run()) == before


def test_a_run_that_breaks_off_is_marked_as_failed(sqlite, results, tmp_path):
    with pytest.raises(OSError, match=r"gone\.txt"):
        Tracker(sqlite)(results, files=[tmp_path / "gone.txt"])
    client = mlflow_client(sqlite)
    (run,) = client.search_runs([client.get_experiment_by_name("graphgauge").experiment_id])
    assert run.info.status == "FAILED"


@pytest.mark.parametrize("uri", ["nonsense://x", "sqlite:///{}/file/runs.db"])
def test_a_store_that_is_none_is_named(uri, results, tmp_path):
    (tmp_path / "file").write_text("a file, no folder")
    with pytest.raises(BadSetting, match="there is no MLflow store at"):
        Tracker(uri.format(tmp_path))(results)


def test_a_server_that_does_not_answer_is_named(results, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(BadFile, match="could not be written to MLflow at 'http:"):
        Tracker(f"http://127.0.0.1:{free_port()}")(results)


def test_without_mlflow_the_install_command_is_named(results, monkeypatch):
    true_import = builtins.__import__

    def without(name, *rest):
        if name.partition(".")[0] == "mlflow":
            raise ImportError(name)
        return true_import(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=r'pip install "graphgauge\[mlflow\]"'):
        Tracker("sqlite:///x.db")(results)


def test_importing_the_room_loads_no_mlflow():
    code = "import sys, graphgauge.lifecycle; print('mlflow' in sys.modules)"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "False\n"
    )


@pytest.mark.parametrize("name", ["a\n|<b>", "..", "../../etc", "/", "", "é" * 400, "a//b", "."])
def test_any_name_becomes_a_key_that_mlflow_takes(sqlite, name):
    from mlflow.utils.validation import _validate_metric_name

    _validate_metric_name(_mlflow_key(f"{name}/time.sd"))


def test_long_values_are_cut_and_trees_become_dotted_names():
    assert _flatten_record({"a": {"b": {"c": None}}, "d": "x" * 9000}) == {
        "a.b.c": "None",
        "d": "x" * 6000,
    }


def test_the_benchmark_logs_where_it_is_told_to(tmp_path, sqlite):
    file = tmp_path / "one.yaml"
    file.write_text(
        "tasks: [ba-shapes-node]\nmodels: [gcn]\nexplainers: [saliency]\ntargets: {number: 2}\n"
        "settings: {trials: [2, 2], twins: false}\n"
    )
    done = CliRunner().invoke(
        app,
        [
            "benchmark",
            str(file),
            "--folder",
            str(tmp_path / "run"),
            "--engine",
            "inline",
            "--device",
            "cpu",
            "--mlflow",
            sqlite,
        ],
    )
    assert done.exit_code == 0, done.output
    run = done.stderr.split("MLflow run ")[1].split()[0]
    client = mlflow_client(sqlite)
    assert client.get_run(run).data.metrics["saliency/edge_ec.n"] == 2
    assert "experiment.yaml" in {found.path for found in client.list_artifacts(run)}


def test_a_run_keeps_the_settings_that_made_it(sqlite):
    results = made({"lrp": GOOD}, n=2, settings=Settings(cap=7))
    assert (
        mlflow_client(sqlite).get_run(Tracker(sqlite)(results)).data.params["settings.cap"] == "7"
    )
