"""Dask and Ray, on clusters of two workers on this machine: the same bits, a killed worker, what hangs. Need their extras."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from tiny import environment, numbers, run_here, write_experiment

from graphgauge.benchmark import Run

HERE = Path(__file__).parent
#: the package of each engine, and what the command line of a worker at work looks like
CLUSTERS = {"dask": ("distributed", "spawn_main"), "ray": ("ray", "^ray::call")}


@pytest.fixture(params=CLUSTERS)
def cluster(request):
    """An engine whose package is there."""
    if find_spec(CLUSTERS[request.param][0]) is None:
        pytest.skip(f"the engine {request.param} needs the extra graphgauge[{request.param}]")
    return request.param


def on_a_cluster(engine, path, folder, networks, named=""):
    arguments = [sys.executable, HERE / "on_a_cluster.py", engine, path, folder, networks, named]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, env=environment(HERE / "plugins"), timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_a_cluster_gives_the_same_bits_although_a_worker_is_killed(cluster, tmp_path, networks):
    path = write_experiment(tmp_path / "tiny.yaml", block=1)
    told = on_a_cluster(cluster, path, tmp_path / "there", networks, CLUSTERS[cluster][1])
    assert told == {"killed": 1, "finished": True, "engine": cluster}
    assert numbers(tmp_path / "there") == numbers(run_here(path, tmp_path / "here", networks).folder)


def test_what_hangs_on_a_cluster_is_stopped(cluster, tmp_path, networks):
    path = write_experiment(tmp_path / "tiny.yaml", explainers=["saliency", "hanging"], block=4, time_limit=20.0)
    assert on_a_cluster(cluster, path, tmp_path / "run", networks)["finished"]
    found = {(row.explainer, row.cell.status) for row in Run(tmp_path / "run").results().rows if row.metric == "edge_ec"}
    assert found == {("saliency", "ok"), ("hanging", "timeout")}
