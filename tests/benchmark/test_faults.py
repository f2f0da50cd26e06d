"""Foreign explainers: each misdeed is contained, reported by name, and touches no other explainer's numbers."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from tiny import command, numbers, run_here, write_experiment

from graphgauge.benchmark import Run
from graphgauge.benchmark.engines import engine_of
from graphgauge.core.errors import BadSetting, UnknownName

PLUGINS = Path(__file__).parent / "plugins"
GOOD = ["saliency", "random"]
HERE = {
    "raising": ("failed", "RuntimeError: I do not feel like it"),
    "leaving": ("failed", "SystemExit: 3"),
    "misshapen": ("failed", "BadExplanation: misshapen.scores must give edge scores of shape"),
    "edits_x": ("changed_model", "edits_x changed the network or its data while explaining"),
    "changes_weights": ("changed_model", "changes_weights changed the network or its data while explaining"),
}
ELSEWHERE = {
    "exiting": ("failed", "the worker process ended 2 times without a result"),
    "hanging": ("timeout", "no result within"),
}


@pytest.fixture
def plugins(monkeypatch):
    """The bad explainers are installed, here and in processes that are started from here."""
    monkeypatch.syspath_prepend(str(PLUGINS))
    monkeypatch.setenv("PYTHONPATH", str(PLUGINS), prepend=":")


@pytest.fixture(scope="module")
def good(tmp_path_factory, networks):
    """The numbers of the good explainers, alone."""
    folder = tmp_path_factory.mktemp("good")
    return numbers(run_here(write_experiment(folder / "tiny.yaml", explainers=GOOD), folder / "run", networks).folder)


def check_contained(folder, expected, good):
    found = [row for row in Run(folder).results().rows if row.explainer not in GOOD]
    for name, (status, message) in expected.items():
        cells = [row.cell for row in found if row.explainer == name]
        assert {cell.status for cell in cells} == {status}
        assert all(cell.value is None and message in cell.message for cell in cells), cells[0]
    assert [row for row in numbers(folder) if any(f"'explainer': '{name}'" in row for name in GOOD)] == good
    assert set(Run(folder).shards()["faults"][0]) == set(expected)


def test_what_can_be_caught_is_contained_in_this_process(tmp_path, networks, plugins, good):
    explainers = ["saliency", *HERE, "nan", "chatty", "random"]
    run = run_here(write_experiment(tmp_path / "tiny.yaml", explainers=explainers), tmp_path / "run", networks)
    check_contained(run.folder, HERE, good)
    table = run.results().to_pandas()
    nan = table[(table["explainer"] == "nan") & ~table["metric"].str.startswith("time")]
    assert set(nan["status"]) == {"nan_attribution"}
    chatty = table[(table["explainer"] == "chatty") & (table["metric"] == "edge_ec")]
    assert set(chatty["status"]) == {"ok"}
    assert table.groupby(["explainer", "metric"]).size().eq(4).all()
    assert any("nan gives NaN or infinite scores" in remark for remark in run.shards()["remarks"][0])


def test_what_hangs_or_exits_is_contained_in_processes(tmp_path, networks, plugins, good):
    path = write_experiment(tmp_path / "tiny.yaml", explainers=["saliency", *ELSEWHERE, "random"], time_limit=10.0, block=4)
    run = run_here(path, tmp_path / "run", networks, "processes", workers=1)
    check_contained(run.folder, ELSEWHERE, good)
    assert [line for line in run.log() if "exiting" in line and "died" in line]
    assert children() == []


def children():
    """Worker processes that are still there."""
    return [
        child
        for child in psutil.Process().children(recursive=True)
        if "loky" in " ".join(child.cmdline()) and "tracker" not in " ".join(child.cmdline())
    ]


def test_retry_measures_a_repaired_explainer_as_if_it_had_never_failed(tmp_path, networks, plugins, monkeypatch):
    """The explainer 'mended' fails while the variable is set: the run that was repaired equals one without a fault."""
    path = write_experiment(tmp_path / "tiny.yaml", explainers=["saliency", "mended"], targets={"number": 3})
    monkeypatch.setenv("MENDED_IS_BROKEN", "1")
    run = run_here(path, tmp_path / "run", networks)
    assert set(run.shards()["faults"][0]) == {"mended"}
    monkeypatch.delenv("MENDED_IS_BROKEN")
    before = numbers(run.folder)
    assert numbers(run_here(path, tmp_path / "run", networks).folder) == before
    told = []
    run_here(path, tmp_path / "run", networks, retry=True, report=lambda text, size: told.append((text.partition(",")[0], size)))
    assert told == [
        ("2 of 2 shards are there", 3),
        ("ba-shapes-node gcn block 0 tried again", 2),
        ("ba-shapes-node gcn block 1 tried again", 1),
    ]
    assert numbers(run.folder) == numbers(run_here(path, tmp_path / "whole", networks).folder) != before
    assert run.shards()["faults"].tolist() == [{}, {}]
    assert run.is_finished


def test_no_process_outlives_a_killed_run(tmp_path, networks, plugins):
    path = write_experiment(tmp_path / "tiny.yaml", explainers=["hanging"])
    process = command(path, "--networks", networks, "--workers", "1", "--folder", tmp_path / "run", extra_path=PLUGINS)
    try:
        workers = wait_for(
            lambda: [child for child in psutil.Process(process.pid).children() if "popen_loky" in " ".join(child.cmdline())]
        )
        wait_for(lambda: any(worker.num_threads() > 1 and worker.cpu_times().user > 2 for worker in workers))
    finally:
        process.kill()
        process.communicate()
    gone, alive = psutil.wait_procs(workers, timeout=30)
    assert (len(gone), alive) == (1, [])


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM that a process could answer")
def test_sigterm_ends_a_run_as_ctrl_c_does(tmp_path, networks, plugins):
    path = write_experiment(tmp_path / "tiny.yaml", explainers=["saliency", "hanging"], models=["gcn"])
    process = command(path, "--networks", networks, "--workers", "1", "--folder", tmp_path / "run", extra_path=PLUGINS)
    try:
        workers = wait_for(
            lambda: [child for child in psutil.Process(process.pid).children() if "popen_loky" in " ".join(child.cmdline())]
        )
        wait_for(lambda: any(worker.num_threads() > 1 and worker.cpu_times().user > 2 for worker in workers))
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert (process.returncode, told.splitlines()[-1]) == (
        130,
        f"stopped: 0 of 2 shards are kept in {tmp_path / 'run'}. The same command continues.",
    )
    assert "Traceback" not in told
    assert [worker for worker in workers if worker.is_running()] == []
    assert Run(tmp_path / "run").num_shards == (0, 2)
    assert (tmp_path / "run" / "run.lock").read_text() == ""


def wait_for(look, seconds=120):
    """Until something is there."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError("it did not come")


def test_engines_are_found_by_name_and_mistakes_are_told():
    with pytest.raises(UnknownName, match=r"No engine is called 'proceses'\. Did you mean 'processes'\?"):
        engine_of("proceses")
    for name in ("inline", "processes"):
        with pytest.raises(BadSetting, match=f"the engine '{name}' runs on this machine and takes no address"):
            engine_of(name, address="tcp://127.0.0.1:1")
    with pytest.raises(BadSetting, match="workers must be 1 or more, but is 0"):
        engine_of("processes", workers=0)


@pytest.mark.parametrize("name", ["dask", "ray"])
def test_engines_that_are_not_installed_are_named_with_the_command(name):
    package = {"dask": "distributed", "ray": "ray"}[name]
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from graphgauge.benchmark.engines import engine_of\n"
        f"try:\n    engine_of({name!r}, address='x')\nexcept ImportError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f'pip install "graphgauge[{name}]"' in done.stdout
