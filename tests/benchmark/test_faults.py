"""Foreign explainers: each misdeed is contained, reported by name, and touches no other explainer's
numbers.
"""

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from support.bad_explainer_effects import ALL, ELSEWHERE, HERE, check_contained, check_harmless
from support.tiny_experiments import UNTIMED, command, numbers, run_here, wait_for, write_experiment

from graphgauge.benchmark import BenchmarkRun
from graphgauge.benchmark.engines import create_engine
from graphgauge.core.errors import BadSetting, UnknownName

PLUGINS = Path(__file__).parent.parent / "support" / "plugins"


@pytest.fixture
def plugins(monkeypatch):
    """The bad explainers are installed, here and in processes that are started from here."""
    monkeypatch.syspath_prepend(str(PLUGINS))
    monkeypatch.setenv("PYTHONPATH", str(PLUGINS), prepend=":")


def test_what_can_be_caught_is_contained_in_this_process(tmp_path, networks, plugins, good):
    explainers = [name for name in ALL if name not in ELSEWHERE]
    run = run_here(
        write_experiment(tmp_path / "tiny.yaml", explainers=explainers, settings=UNTIMED),
        tmp_path / "run",
        networks,
    )
    check_contained(run.folder, HERE, good)
    check_harmless(run.folder)


def test_everything_is_contained_in_processes(tmp_path, networks, plugins, good):
    path = write_experiment(
        tmp_path / "tiny.yaml", explainers=ALL, time_limit=25.0, block=4, settings=UNTIMED
    )
    run = run_here(path, tmp_path / "run", networks, "processes", workers=1)
    check_contained(run.folder, {**HERE, **ELSEWHERE}, good)
    check_harmless(run.folder)
    assert [line for line in run.log() if "exiting" in line and "died" in line]
    assert children() == []


def children():
    """Worker processes that are still there."""
    return [
        child
        for child in psutil.Process().children(recursive=True)
        if "loky" in " ".join(child.cmdline()) and "tracker" not in " ".join(child.cmdline())
    ]


def test_retry_measures_a_repaired_explainer_as_if_it_had_never_failed(
    tmp_path, networks, plugins, monkeypatch
):
    """The explainer 'mended' fails while the variable is set: the run that was repaired equals one
    without a fault.
    """
    path = write_experiment(
        tmp_path / "tiny.yaml", explainers=["saliency", "mended"], targets={"number": 3}
    )
    monkeypatch.setenv("MENDED_IS_BROKEN", "1")
    run = run_here(path, tmp_path / "run", networks)
    assert set(run.shards()["faults"][0]) == {"mended"}
    monkeypatch.delenv("MENDED_IS_BROKEN")
    before = numbers(run.folder)
    assert numbers(run_here(path, tmp_path / "run", networks).folder) == before
    told = []
    run_here(
        path,
        tmp_path / "run",
        networks,
        retry=True,
        report=lambda text, size: told.append((text.partition(",")[0], size)),
    )
    assert told == [
        ("3 of 3 shards are there", 3),
        ("ba-shapes-node gcn block 2 tried again", 0),
        ("ba-shapes-node gcn block 0 tried again", 2),
        ("ba-shapes-node gcn block 1 tried again", 1),
    ]
    assert (
        numbers(run.folder)
        == numbers(run_here(path, tmp_path / "whole", networks).folder)
        != before
    )
    assert run.shards()["faults"].tolist() == [{}, {}, {}]
    assert run.is_finished


def test_no_process_outlives_a_killed_run(tmp_path, networks, plugins):
    path = write_experiment(tmp_path / "tiny.yaml", explainers=["hanging"])
    process = command(
        path,
        "--networks",
        networks,
        "--workers",
        "1",
        "--folder",
        tmp_path / "run",
        extra_path=PLUGINS,
    )
    try:
        workers = wait_for(
            lambda: [
                child
                for child in psutil.Process(process.pid).children()
                if "popen_loky" in " ".join(child.cmdline())
            ]
        )
        wait_for(
            lambda: any(
                worker.num_threads() > 1 and worker.cpu_times().user > 2 for worker in workers
            )
        )
    finally:
        process.kill()
        process.communicate()
    gone, alive = psutil.wait_procs(workers, timeout=30)
    assert (len(gone), alive) == (1, [])


@pytest.mark.skipif(
    sys.platform == "win32", reason="Windows has no SIGTERM that a process could answer"
)
def test_sigterm_ends_a_run_as_ctrl_c_does(tmp_path, networks, plugins):
    path = write_experiment(
        tmp_path / "tiny.yaml", explainers=["saliency", "hanging"], models=["gcn"]
    )
    process = command(
        path,
        "--networks",
        networks,
        "--workers",
        "1",
        "--folder",
        tmp_path / "run",
        extra_path=PLUGINS,
    )
    try:
        workers = wait_for(
            lambda: [
                child
                for child in psutil.Process(process.pid).children()
                if "popen_loky" in " ".join(child.cmdline())
            ]
        )
        wait_for(
            lambda: any(
                worker.num_threads() > 1 and worker.cpu_times().user > 2 for worker in workers
            )
        )
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert (process.returncode, told.splitlines()[-1]) == (
        130,
        f"stopped: 0 of 3 shards are kept in {tmp_path / 'run'}. The same command continues.",
    )
    assert "Traceback" not in told
    assert [worker for worker in workers if worker.is_running()] == []
    assert BenchmarkRun(tmp_path / "run").num_shards == (0, 3)
    assert (tmp_path / "run" / "run.lock").read_text() == ""


def test_engines_are_found_by_name_and_mistakes_are_told():
    with pytest.raises(
        UnknownName, match=r"No engine is called 'proceses'\. Did you mean 'processes'\?"
    ):
        create_engine("proceses")
    for name in ("inline", "processes"):
        with pytest.raises(
            BadSetting, match=f"the engine '{name}' runs on this machine and takes no address"
        ):
            create_engine(name, address="tcp://127.0.0.1:1")
    with pytest.raises(BadSetting, match="workers must be 1 or more, but is 0"):
        create_engine("processes", workers=0)


@pytest.mark.parametrize("name", ["dask", "ray"])
def test_engines_that_are_not_installed_are_named_with_the_command(name):
    package = {"dask": "distributed", "ray": "ray"}[name]
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from graphgauge.benchmark.engines import create_engine\n"
        "try:\n"
        f"    create_engine({name!r}, address='x')\n"
        "except ImportError as error:\n"
        "    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f'pip install "graphgauge[{name}]"' in done.stdout
