"""Dask and Ray on two nodes of this machine, and local processes: the same bits, a killed worker,
foreign explainers.
"""

import contextlib
import subprocess
import sys

import pytest
from support.bad_explainer_effects import ALL, ELSEWHERE, HERE, check_contained, check_harmless
from support.clusters import PLUGINS, secret, two_nodes
from support.tiny_experiments import (
    UNTIMED,
    environment,
    numbers,
    run_here,
    wait_for,
    write_experiment,
)

from graphgauge.benchmark import BenchmarkRun
from graphgauge.core.errors import BadFile

#: seconds for a shard; with Ray a new worker loads torch within them, with Dask it has it before it
#: takes work
LIMITS = {"dask": 15.0, "ray": 30.0}


@pytest.fixture(scope="module")
def nodes(request):
    """Two places where work is done."""
    with two_nodes(request.param) as found:
        yield found


@contextlib.contextmanager
def asked(nodes, path, folder, networks):
    """The command line of a run, in a process of its own that does not outlive the test."""
    words = [
        path,
        "--engine",
        nodes.engine,
        *nodes.options,
        "--networks",
        networks,
        "--folder",
        folder,
        "--device",
        "cpu",
    ]
    arguments = [sys.executable, "-m", "graphgauge", "benchmark", *map(str, words)]
    process = subprocess.Popen(
        arguments,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=nodes.environment,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def check_ended_well(process):
    """Wait for the end."""
    _, told = process.communicate(timeout=180)
    assert process.returncode == 0, told[-3000:]


@pytest.mark.parametrize("nodes", ["dask", "ray"], indirect=True)
def test_foreign_explainers_are_contained_on_a_cluster(nodes, tmp_path, networks, good):
    path = write_experiment(
        tmp_path / "tiny.yaml",
        explainers=ALL,
        time_limit=LIMITS[nodes.engine],
        block=4,
        settings=UNTIMED,
    )
    nodes.open_gate()
    with asked(nodes, path, tmp_path / "run", networks) as process:
        check_ended_well(process)
    check_contained(tmp_path / "run", {**HERE, **ELSEWHERE}, good)
    check_harmless(tmp_path / "run")
    assert (
        len([line for line in BenchmarkRun(tmp_path / "run").log() if "(exiting) died" in line])
        == 2
    )


@pytest.mark.parametrize("nodes", ["dask", "ray", "processes"], indirect=True)
def test_a_run_is_complete_and_has_the_same_bits_although_a_node_is_killed_at_work(
    nodes, tmp_path, networks, monkeypatch
):
    """Both nodes finish a shard and wait in the middle of the next one.

    Then one of them is killed.
    """
    explainers = [
        "saliency",
        "waiting",
        {"name": "gnn_explainer", "parameters": {"epochs": 2}},
        "random",
    ]
    path = write_experiment(
        tmp_path / "tiny.yaml",
        explainers=explainers,
        block=1,
        targets={"number": 8},
        settings=UNTIMED,
    )
    folder = tmp_path / "there"
    nodes.close_gate()
    with asked(nodes, path, folder, networks) as process:
        wait_for(lambda: len(nodes.arrived()) == 2)
        nodes.open_gate()
        wait_for(lambda: len(workers_of(folder)) >= 2)
        nodes.close_gate()
        both = wait_for(lambda: nodes.arrived() if len(nodes.arrived()) == 2 else None)
        nodes.kill_one()
        wait_for(lambda: len(nodes.alive(both)) == 1)
        nodes.open_gate()
        check_ended_well(process)
    run = BenchmarkRun(folder)
    assert (run.is_finished, run.shards()["faults"].tolist(), run.sessions()[-1]["engine"]) == (
        True,
        [{}] * 8,
        nodes.engine,
    )
    assert set(both) <= workers_of(folder)
    assert [line for line in run.log() if "(saliency, waiting, gnn_explainer, random) died" in line]
    monkeypatch.syspath_prepend(str(PLUGINS))
    assert numbers(run.folder) == numbers(run_here(path, tmp_path / "here", networks).folder)


def workers_of(folder):
    """The processes that measured what is stored."""
    try:
        table = BenchmarkRun(folder).shards()
    except BadFile:
        return set()
    return set(table["pid"].dropna()) if "pid" in table else set()


LOCAL = """
from graphgauge.benchmark.engines import create_engine

if __name__ == "__main__":
    with create_engine({engine!r}) as found:
        results = [found.submit(divmod, number, 3).result(timeout=60) for number in (7, 8)]
        print(found.places, results)
"""


@pytest.mark.parametrize("engine", ["dask", "ray"])
def test_without_an_address_a_cluster_of_two_is_started_and_ended(engine, tmp_path):
    (tmp_path / "local.py").write_text(LOCAL.format(engine=engine))
    arguments = [sys.executable, tmp_path / "local.py"]
    done = subprocess.run(
        arguments,
        capture_output=True,
        text=True,
        check=False,
        env={**environment(), **secret()},
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, "2 [(2, 1), (2, 2)]\n"), done.stderr[-3000:]
