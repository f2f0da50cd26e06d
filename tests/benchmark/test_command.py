"""What the command line shows of experiments, plans and runs."""

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.tiny_experiments import run_here, write_experiment
from typer.testing import CliRunner

from graphgauge.benchmark.planning import RunEnvironment
from graphgauge.benchmark.run_store import open_for_writing
from graphgauge.cli import benchmark as bench
from graphgauge.cli.console import sigterm_as_ctrl_c
from graphgauge.cli.main import app
from graphgauge.core.errors import BadFile


def test_the_shipped_experiments_are_listed():
    rows = bench._list_experiments()
    paper = next(row for row in rows if row["name"] == "paper")
    assert [paper[name] for name in ("tasks", "models", "explainers", "targets")] == [10, 2, 8, 100]
    lines = bench._experiments_text(rows).splitlines()
    assert lines[0].split() == ["name", "tasks", "models", "explainers", "targets", "description"]
    assert len(lines) == 1 + len(rows)


def test_a_dry_run_counts_and_makes_nothing(tmp_path, networks):
    path = write_experiment(tmp_path / "tiny.yaml", models=["gcn", "gat"])
    plan = bench._plan_experiment(str(path), RunEnvironment(networks=str(networks)), targets=3)
    found = bench._plan_record(plan)
    # 2 networks x (1 timed target, then 2 + 1 targets) x 3 explainers
    assert (found["shards"], found["explanations"]) == (6, 18)
    assert found["rows"] == 18 * len(plan.shards[0].names)
    assert bench._plan_text(found).splitlines()[1].split() == ["ba-shapes-node", "gcn", "9"]
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.yaml"]


def test_the_summary_shows_means_faults_and_the_place(tmp_path, networks, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent / "support" / "plugins"))
    path = write_experiment(
        tmp_path / "tiny.yaml", explainers=["saliency", "raising"], targets={"number": 1}
    )
    run = run_here(path, tmp_path / "run", networks)
    found = bench._run_record(run)
    assert found["means"]["saliency"]["edge_stability"] == 1.0
    assert (found["finished"], found["shards"], found["rows"]) == (True, 2, len(run.results()))
    text = bench._run_summary_text(run)
    assert str(tmp_path / "run") in text.splitlines()[-1]
    assert text.splitlines()[-2].startswith("the work: ")
    assert found["faults"] == {"raising": "failed: RuntimeError: I do not feel like it"}
    assert (
        "raising could not be measured everywhere: failed: RuntimeError: I do not feel like it"
        in text
    )


def test_the_summary_names_an_explainer_whose_scores_are_no_numbers(
    tmp_path, networks, monkeypatch
):
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent / "support" / "plugins"))
    path = write_experiment(
        tmp_path / "tiny.yaml", explainers=["saliency", "nan"], targets={"number": 1}
    )
    run = run_here(path, tmp_path / "run", networks)
    assert bench._run_record(run)["faults"] == {
        "nan": "nan_attribution: a score is NaN or infinite"
    }
    assert "nan could not be measured everywhere: nan_attribution" in bench._run_summary_text(run)


def test_the_command_tries_marked_cells_again_when_asked(tmp_path, networks, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent / "support" / "plugins"))
    path = write_experiment(
        tmp_path / "tiny.yaml", explainers=["saliency", "mended"], targets={"number": 1}
    )
    asked = [
        "benchmark",
        str(path),
        "--engine",
        "inline",
        "--networks",
        str(networks),
        "--folder",
        str(tmp_path / "run"),
        "--json",
    ]
    monkeypatch.setenv("MENDED_IS_BROKEN", "1")
    broken = {"mended": "failed: RuntimeError: not yet mended"}
    assert json.loads(CliRunner().invoke(app, asked).stdout)["faults"] == broken
    monkeypatch.delenv("MENDED_IS_BROKEN")
    assert json.loads(CliRunner().invoke(app, asked).stdout)["faults"] == broken
    found = json.loads(CliRunner().invoke(app, [*asked, "--retry"]).stdout)
    assert (found["faults"], found["means"]["mended"]["edge_stability"]) == ({}, 1.0)


def test_sigterm_is_answered_only_while_a_run_is_carried_out():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), sigterm_as_ctrl_c():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == before
    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(lambda: sigterm_as_ctrl_c().__enter__()).result() is None
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.parametrize("has_store", [False, True])
def test_a_run_that_is_stopped_before_it_has_begun_ends_with_130_too(
    has_store, tmp_path, networks, monkeypatch
):
    def stopped(plan, call, engine, report):
        if has_store:
            with open_for_writing(call.folder):
                raise KeyboardInterrupt
        raise KeyboardInterrupt

    monkeypatch.setattr(bench, "execute_plan", stopped)
    path, folder = write_experiment(tmp_path / "tiny.yaml"), tmp_path / "run"
    asked = [
        "benchmark",
        str(path),
        "--engine",
        "inline",
        "--networks",
        str(networks),
        "--folder",
        str(folder),
    ]
    found = CliRunner().invoke(app, asked)
    assert (found.exit_code, found.stderr) == (
        130,
        f"stopped: nothing is kept in {folder} yet. The same command begins.\n",
    )


def test_a_network_that_was_not_kept_is_named_with_the_command(tmp_path):
    path = write_experiment(tmp_path / "tiny.yaml")
    with pytest.raises(
        BadFile,
        match=r"there is no trained network ba-shapes-node-gcn .*"
        r" `graphgauge train ba-shapes-node-gcn --keep .*` trains and writes it",
    ):
        bench._plan_experiment(str(path), RunEnvironment(networks=str(tmp_path)), None)


def test_progress_is_a_line_now_and_then_where_nobody_looks(capsys):
    reporter = bench._ProgressReporter(10)
    for size in (0, 4, 6):
        reporter(f"{size} more", size)
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.splitlines() == [
        "0 of 10 explanations after 0 s: 0 more",
        "10 of 10 explanations after 0 s: 6 more",
    ]
