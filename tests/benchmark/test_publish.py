"""A finished run as files for a repository: nothing of the numbers is lost, nothing of the machine's names is kept."""

import json
import socket

import pandas as pd
import publish
import pytest
from tiny import run_here, write_experiment

from graphgauge.benchmark import Run, read_experiment
from graphgauge.benchmark.summary import read_summary, summary_table
from graphgauge.core.errors import BadSetting


@pytest.fixture(scope="module")
def run(tmp_path_factory, networks):
    folder = tmp_path_factory.mktemp("publish")
    return run_here(write_experiment(folder / "tiny.yaml"), folder / "run", networks)


def test_the_files_hold_what_the_run_holds(run, tmp_path):
    publish.publish(run, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "experiment.yaml",
        "machine.json",
        "shards.csv",
        "summary.csv",
        "targets.csv.xz",
    ]
    pd.testing.assert_frame_equal(read_summary(tmp_path / "summary.csv"), summary_table(run.results()), check_exact=True)
    table, wanted = pd.read_csv(tmp_path / "targets.csv.xz"), run.results().to_pandas()
    assert len(table) == len(wanted)
    assert table["value"].tolist() == pytest.approx(wanted["value"].tolist(), rel=1e-8, nan_ok=True)
    assert read_experiment(tmp_path / "experiment.yaml").full_settings.record() == run.config["settings"]
    shards = pd.read_csv(tmp_path / "shards.csv")
    assert shards["explanations"].tolist() == [3, 6, 3]
    assert shards["stability"].tolist() == pytest.approx(run.shards()["stability"].tolist(), abs=0.005)


def test_the_machine_is_told_without_its_name(run, tmp_path):
    publish.publish(run, tmp_path)
    told = json.loads((tmp_path / "machine.json").read_text())
    assert told["seconds of all shards"] == pytest.approx(run.shards()["seconds"].sum(), abs=0.1)
    (call,) = told["calls"]
    assert (call["engine"], call["workers"], call["device"]) == ("inline", 1, "cpu")
    assert {"torch", "graphgauge", "processor", "began"} <= set(call)
    assert "host" not in call
    assert all(socket.gethostname() not in path.read_text() for path in tmp_path.iterdir() if path.suffix != ".xz")


def test_a_run_that_is_not_finished_is_refused_unless_that_is_asked_for(run, tmp_path, monkeypatch):
    monkeypatch.setattr(Run, "num_shards", property(lambda self: (2, 3)))
    with pytest.raises(BadSetting, match="2 of 3 shards are there"):
        publish.publish(run, tmp_path)
    publish.publish(run, tmp_path, unfinished=True)
    told = json.loads((tmp_path / "machine.json").read_text())
    assert (told["shards"], told["shards planned"]) == (2, 3)
