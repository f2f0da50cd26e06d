"""Runs: the Evaluator's numbers whatever the shards, resumable, readable at any time."""

import json
import signal
import sys
import time
from dataclasses import replace

import pandas as pd
import pytest
import yaml
from support.tiny_experiments import (
    EXPERIMENT,
    SETTINGS,
    command,
    make_networks,
    numbers,
    run_here,
    write_experiment,
)

import graphgauge as gg
from graphgauge.benchmark import BenchmarkRun, RunEnvironment, plan_run, read_experiment
from graphgauge.benchmark.engines import create_engine
from graphgauge.benchmark.run_store import open_for_writing
from graphgauge.benchmark.worker import measure_shard
from graphgauge.core.errors import BadFile, BadModel, BadSetting, MissingExtra
from graphgauge.datasets import benchmark_targets, load, trained
from graphgauge.evaluation.curve_metrics import stability_metric_names
from graphgauge.evaluation.result_row import explanation_key
from graphgauge.report.example_records import collect_example_records
from graphgauge.report.report_builder import build_report
from graphgauge.store import Store

TWO_TASKS = {
    "tasks": ["ba-shapes-node", "ba-shapes-link"],
    "models": ["gat"],
    "metrics": ["sparsity"],
}


@pytest.fixture(scope="session")
def straight(tmp_path_factory, networks):
    """A run without interruption."""
    folder = tmp_path_factory.mktemp("straight")
    return run_here(write_experiment(folder / "tiny.yaml"), folder / "run", networks).folder


def evaluated_here(networks, level="node", conv="gcn", **more):
    data = load("BA-Shapes", level)
    wrap = gg.NodeClassificationModel if level == "node" else gg.LinkClassificationModel
    model = wrap(trained("BA-Shapes", level, conv, folder=networks), data)
    task = f"ba-shapes-{level}"
    judge = gg.Evaluator(model, task=task, name=conv, seed_scope=(task, conv), **SETTINGS, **more)
    return judge, judge.compare(
        [gg.Saliency(), gg.GNNExplainer(epochs=2), gg.RandomExplainer()], benchmark_targets(data, 4)
    )


def test_a_run_holds_what_the_evaluator_finds_bit_for_bit(straight, networks):
    judge, results = evaluated_here(networks)
    rows = [row.record() for row in results.rows if not row.metric.startswith("time")]
    expected = sorted(
        repr({name: value for name, value in row.items() if name != "seconds"}) for row in rows
    )
    assert numbers(straight) == expected
    found = BenchmarkRun(straight).results()
    assert found.settings == judge.settings
    assert {(row.explainer, row.target, row.metric) for row in found.rows} == {
        (row.explainer, row.target, row.metric) for row in results.rows
    }


def test_a_run_keeps_its_worst_and_best_explanations_for_the_report(straight, networks):
    kept = gg.Results.load(straight).kept()
    expected = {
        explanation_key(record): record["exhibit"]
        for record in collect_example_records(evaluated_here(networks)[1])
    }
    assert len(kept) == 3 * 4  # of each explainer two worst and two best
    assert kept == expected
    examples = build_report(gg.Results.load(straight)).content["tasks"][0].examples
    assert [own.end for own in examples] == ["worst", "worst", "best", "best"]
    assert all(own.text.startswith("Target") and len(own.pictures) > 2 for own in examples)


def test_a_run_killed_between_explanations_and_numbers_goes_on(
    tmp_path, networks, straight, monkeypatch
):
    path, append = write_experiment(tmp_path / "tiny.yaml"), Store.append

    def killed(store, kind, *rest):
        if kind == "shard":
            raise KeyboardInterrupt
        return append(store, kind, *rest)

    monkeypatch.setattr(Store, "append", killed)
    with pytest.raises(KeyboardInterrupt):
        run_here(path, tmp_path / "run", networks)
    monkeypatch.undo()
    folder = run_here(path, tmp_path / "run", networks).folder
    assert numbers(folder) == numbers(straight)
    assert gg.Results.load(folder).kept() == gg.Results.load(straight).kept()


@pytest.mark.parametrize("block", [1, 4])
def test_cutting_the_work_otherwise_changes_no_number(tmp_path, networks, straight, block):
    run = run_here(
        write_experiment(tmp_path / "tiny.yaml", block=block), tmp_path / "run", networks
    )
    assert run.num_shards == (1 + -(-4 // block),) * 2  # one measures times
    assert numbers(run.folder) == numbers(straight)


def test_adding_explainers_and_targets_changes_no_number(tmp_path, networks, straight):
    more = {"explainers": ["lrp", *EXPERIMENT["explainers"]], "targets": {"number": 5}}
    run = run_here(write_experiment(tmp_path / "tiny.yaml", **more), tmp_path / "run", networks)
    assert set(numbers(straight)) <= set(numbers(run.folder))


def test_several_tasks_networks_and_processes(tmp_path, networks):
    path = write_experiment(tmp_path / "tiny.yaml", **TWO_TASKS)
    here = run_here(path, tmp_path / "here", networks)
    for workers in (1, 4):  # and 2, of which one is killed, in test_clusters
        elsewhere = run_here(
            path, tmp_path / f"elsewhere{workers}", networks, "processes", workers=workers
        )
        assert numbers(elsewhere.folder) == numbers(here.folder)
    table = here.results().to_pandas()
    assert set(zip(table["task"], table["model"], strict=True)) == {
        (f"ba-shapes-{level}", "gat") for level in ("node", "link")
    }
    assert table.groupby(["task", "model", "explainer", "metric"]).size().eq(4).all()
    assert {"edge_sparsity", "feature_sparsity"} <= set(table["metric"])
    assert all(
        isinstance(target, tuple) for target in table[table["task"] == "ba-shapes-link"]["target"]
    )
    assert set(table["status"]) <= {"ok", "not_timed", "constant", "no_reference"}


def test_a_worker_that_keeps_models_open_is_not_started_anew():
    """Loky ends workers that have grown by 300 MB; ours hold data, networks and what was found out
    about them.
    """
    kept = (
        "(globals().setdefault('kept', bytearray(500 * 2**20)), __import__('os').getpid(), "
        "__import__('time').sleep(1.2))[1]"
    )
    with create_engine("processes", workers=1) as engine:
        assert len({engine.submit(eval, kept).result() for _ in range(3)}) == 1


def test_only_the_first_targets_of_a_task_are_timed(straight):
    table = BenchmarkRun(straight).results().to_pandas()
    timed = table[(table["metric"] == "time") & (table["status"] == "ok")]
    assert timed.groupby("explainer").size().to_dict() == {
        "saliency": 1,
        "gnn_explainer": 1,
        "random": 1,
    }


def test_every_explanation_has_a_row_for_every_metric_the_evaluator_names(straight, networks):
    judge, results = evaluated_here(networks, twins=False)
    assert list(dict.fromkeys(row.metric for row in results.rows)) == judge.metric_names
    judge = gg.Evaluator(judge.model, extras=True, **SETTINGS)
    assert (
        list(dict.fromkeys(row.metric for row in judge.compare([gg.Saliency()], [0]).rows))
        == judge.metric_names
    )
    assert stability_metric_names(gg.Evaluator(judge.model, stability="none").settings) == []


class Enough(Exception):
    """Stop here."""


def stop_after(shards):
    """A report that ends the run."""
    told = []

    def report(text, size):
        told.append(text)
        if len(told) > shards:  # the first report is on what is there
            raise Enough

    return report


def test_an_interrupted_run_is_readable_and_goes_on(tmp_path, networks, straight):
    path, folder = write_experiment(tmp_path / "tiny.yaml", block=1), tmp_path / "run"
    for shards in (1, 2):  # the first one measures times only
        with pytest.raises(Enough):
            run_here(path, folder, networks, report=stop_after(1))
        run = BenchmarkRun(folder)
        assert (run.num_shards, run.is_finished) == ((shards, 5), False)
        assert set(numbers(folder)) < set(numbers(straight))
        assert run.shards()["done"].tolist() == [True] * shards + [False] * (5 - shards)
    finished = run_here(path, folder, networks)
    assert finished.is_finished
    assert numbers(folder) == numbers(straight)
    assert [session["done"] for session in finished.sessions()] == [0, 1, 2]


def test_results_load_reads_a_run(straight):
    results = gg.Results.load(straight)
    assert len(results) == len(BenchmarkRun(straight).results())
    assert list(results.headline().index) == ["saliency", "gnn_explainer", "random"]
    assert results.headline().loc["saliency", "edge_stability"] == 1.0


def test_a_run_tells_versions_machine_and_seconds_of_every_shard(straight):
    run = BenchmarkRun(straight)
    (session,) = run.sessions()
    assert session["versions"]["graphgauge"] == gg.__version__
    assert (session["engine"], session["places"]) == ("inline", 1)
    shards = run.shards()
    assert (shards["seconds"] > 0).all()
    phases = ["explaining", "edge_curves", "feature_curves", "stability", "timing", "keeping"]
    assert sorted(run.phases()) == sorted([*phases, "other"])
    only_times = shards["explanations"] == 0
    assert only_times.tolist() == [True, False, False]
    assert (shards.loc[only_times, ["explaining", "timing"]] > 0).all(axis=None)
    assert (shards.loc[~only_times, phases] > 0).all(axis=None)
    assert shards[[*phases, "other"]].sum(axis=1).tolist() == pytest.approx(
        shards["seconds"].tolist()
    )
    assert run.phases() == pytest.approx(shards[[*phases, "other"]].sum().to_dict())
    assert shards["host"].nunique() == 1
    assert shards["explanations"].tolist() == [0, 6, 6]
    assert run.config["settings"]["cap"] == 6
    assert yaml.safe_load((straight / "experiment.yaml").read_text())["explainers"][1][
        "parameters"
    ] == {"epochs": 2}
    copy = read_experiment(straight / "experiment.yaml")
    assert copy.full_settings.digest == run.results().rows[0].settings


def test_a_changed_experiment_is_refused_and_restart_starts_over(tmp_path, networks):
    folder = tmp_path / "run"
    run_here(write_experiment(tmp_path / "tiny.yaml", targets={"number": 1}), folder, networks)
    changed = write_experiment(
        tmp_path / "tiny.yaml", targets={"number": 2}, settings={**SETTINGS, "cap": 5}
    )
    with pytest.raises(
        BadSetting,
        match=r"(?s)settings\.cap was 6 and is 5\n  targets\.number was 1 and is 2\n.*--restart",
    ):
        run_here(changed, folder, networks)
    assert BenchmarkRun(folder).config["settings"]["cap"] == 6
    run = run_here(changed, folder, networks, restart=True)
    assert (run.config["settings"]["cap"], run.num_shards) == (5, (2, 2))


def test_what_changes_no_number_may_change(tmp_path, networks):
    run_here(
        write_experiment(tmp_path / "tiny.yaml", targets={"number": 1}), tmp_path / "run", networks
    )
    other = write_experiment(
        tmp_path / "tiny.yaml", targets={"number": 1}, time_limit=5.0, description="new"
    )
    assert len(run_here(other, tmp_path / "run", networks).sessions()) == 2


def test_another_network_is_refused(tmp_path, networks):
    path = write_experiment(tmp_path / "tiny.yaml", targets={"number": 1})
    run_here(path, tmp_path / "run", networks)
    others = make_networks(tmp_path / "networks", [("BA-Shapes", "node")], factor=30)
    with pytest.raises(BadSetting, match=r"networks\.ba-shapes-node-gcn was '\w+' and is '\w+'"):
        run_here(path, tmp_path / "run", others)


def test_a_worker_with_another_network_ends_the_run(tmp_path, networks):
    place = RunEnvironment(networks=str(networks))
    plan = plan_run(read_experiment(write_experiment(tmp_path / "tiny.yaml")), place)
    with pytest.raises(BadModel, match="is not the one the run was planned with"):
        measure_shard(replace(plan.shards[0], network="other"), place)


def test_a_worker_measures_with_the_settings_of_the_plan(tmp_path, networks, monkeypatch):
    place, used = RunEnvironment(networks=str(networks)), []

    class RecordingEvaluator(gg.Evaluator):
        def compare(self, *args, **options):
            used.append(self.settings)
            return super().compare(*args, **options)

    monkeypatch.setattr("graphgauge.benchmark.worker.Evaluator", RecordingEvaluator)
    for changes in ({}, {"flip": 0.2, "flip_unit": "sd"}):
        path = write_experiment(tmp_path / "tiny.yaml", settings={**SETTINGS, **changes})
        plan = plan_run(read_experiment(path), place)
        assert measure_shard(plan.shards[1], place).fault is None  # the first measures times
        planned = plan.experiment.full_settings
        assert replace(used.pop(), timed=planned.timed) == planned  # records leave "sd" out


def test_a_broken_installation_stops_the_run_and_is_no_explainers_fault(
    tmp_path, networks, monkeypatch
):
    path = write_experiment(tmp_path / "tiny.yaml", targets={"number": 1})
    # as if a package that it needs were missing
    monkeypatch.setitem(sys.modules, "graphgauge.report.example_records", None)
    monkeypatch.delattr("graphgauge.report.collect_example_records", raising=False)
    with pytest.raises(ImportError, match=r"graphgauge\.report\.example_records"):
        run_here(path, tmp_path / "run", networks)
    assert BenchmarkRun(tmp_path / "run").shards()["done"].tolist() == [False, False]


def test_two_runners_on_one_folder_the_second_is_refused(tmp_path, networks):
    path = write_experiment(tmp_path / "tiny.yaml")
    with open_for_writing(tmp_path / "run"), pytest.raises(BadFile, match="is in use by process"):
        run_here(path, tmp_path / "run", networks)


def test_folders_that_hold_no_run_are_refused(tmp_path):
    with pytest.raises(BadFile, match=r"holds no benchmark run: there is no run\.sqlite"):
        BenchmarkRun(tmp_path)
    with open_for_writing(tmp_path / "run"):
        pass
    with pytest.raises(BadFile, match="holds no run yet"):
        gg.Results.load(tmp_path / "run")


def test_parquet_needs_a_package_that_is_named(straight, tmp_path, monkeypatch):
    for name in ("polars", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=r'pip install "graphgauge\[polars\]"'):
        gg.Results.load(straight).to_parquet(tmp_path / "rows.parquet")


def test_parquet_holds_the_table(straight, tmp_path):
    import polars

    results = gg.Results.load(straight)
    results.to_parquet(tmp_path / "rows.parquet")
    table, found = (
        results.to_pandas(),
        polars.read_parquet(tmp_path / "rows.parquet").to_dict(as_series=False),
    )
    assert list(found) == list(table.columns)
    assert [json.loads(target) for target in found["target"]] == table["target"].tolist()
    assert pd.Series(found["value"], dtype="float64").equals(table["value"].reset_index(drop=True))


def test_the_command_line_runs_summarises_continues_and_refuses(tmp_path, networks):
    path = write_experiment(tmp_path / "tiny.yaml", targets={"number": 1}, explainers=["saliency"])
    first = command(path, "--networks", networks, "--engine", "inline", "--json", cwd=tmp_path)
    out, told = first.communicate()
    assert (first.returncode, json.loads(out)["finished"]) == (0, True), told
    assert json.loads(out)["means"]["saliency"]["edge_stability"] == 1.0
    assert "1 of 1 explanations" in told
    assert (tmp_path / "runs" / "tiny" / "run.sqlite").exists()
    again = command(
        path, "--networks", networks, "--engine", "inline", "--targets", "2", cwd=tmp_path
    )
    assert again.communicate()[1].splitlines()[1] == "  targets.number was 1 and is 2"
    assert again.returncode == 2


def test_ctrl_c_leaves_a_readable_run_and_says_how_to_go_on(tmp_path, networks):
    explainers = [{"name": "gnn_explainer", "parameters": {"epochs": 50}}]
    path = write_experiment(
        tmp_path / "tiny.yaml", block=1, explainers=explainers, targets={"number": 60}
    )
    process = command(path, "--networks", networks, "--workers", "1", "--folder", tmp_path / "run")
    wait_for_shards(tmp_path / "run", 1)
    process.send_signal(signal.SIGINT)
    out, told = process.communicate(timeout=60)
    done, planned = BenchmarkRun(tmp_path / "run").num_shards
    assert (process.returncode, out) == (130, "")
    assert told.splitlines()[-1] == (
        f"stopped: {done} of {planned} shards are kept in {tmp_path / 'run'}. The same "
        "command continues."
    )
    assert 1 <= done < planned == 61


def wait_for_shards(folder, number, seconds=120):
    """Until a run in another process has so many shards."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if BenchmarkRun(folder).num_shards[0] >= number:
                return
        except BadFile:
            pass
        time.sleep(0.05)
    raise AssertionError(f"no {number} shards within {seconds} s")


def test_kill_9_of_the_command_leaves_a_run_that_ends_as_any_other(tmp_path, networks, straight):
    path = write_experiment(tmp_path / "tiny.yaml", block=1)
    for number in (1, 3):
        process = command(
            path, "--networks", networks, "--engine", "inline", "--folder", tmp_path / "run"
        )
        wait_for_shards(tmp_path / "run", number)
        process.kill()
        process.communicate()
    assert numbers(run_here(path, tmp_path / "run", networks).folder) == numbers(straight)
