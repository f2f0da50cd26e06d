"""Small experiments on generated data, networks that are made in a moment, and how runs are
compared.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import torch
import yaml

from graphgauge.benchmark import (
    BenchmarkRun,
    RunEnvironment,
    RunOptions,
    execute_plan,
    plan_run,
    read_experiment,
)
from graphgauge.benchmark.engines import create_engine
from graphgauge.benchmark.paper.early_stopping import StoppingRule
from graphgauge.benchmark.paper.grid_search import GridSearch, search_grid
from graphgauge.benchmark.paper.network_files import write_network
from graphgauge.datasets.network_tasks import find_network_task

SETTINGS = {
    "cap": 6,
    "trials": [3, 6],
    "twin_trials": 3,
    "calls": 3,
    "permutations": 2,
    "stability": "binomial",
    "timed": 1,
}
UNTIMED = {**SETTINGS, "timed": 0}  #: timed targets are shards of their own, and run alone
EXPERIMENT = {
    "name": "tiny",
    "tasks": ["ba-shapes-node"],
    "models": ["gcn"],
    "explainers": ["saliency", {"name": "gnn_explainer", "parameters": {"epochs": 2}}, "random"],
    "settings": SETTINGS,
    "targets": {"number": 4},
    "block": 2,
}


def make_networks(folder, tasks=(("BA-Shapes", "node"), ("BA-Shapes", "link")), factor=20):
    """Networks after three epochs, kept as the library keeps its own."""
    for data_set, level in tasks:
        data = find_network_task(data_set, level, "gcn").load()
        for conv in ("gcn", "gat"):
            wanted = GridSearch(StoppingRule(epochs=3), points=1)
            found = search_grid(data, conv, wanted)
            with torch.no_grad():
                found.state[next(iter(found.state))].mul_(factor)  # so that classes differ
            write_network(
                find_network_task(data_set, level, conv),
                found,
                wanted,
                {"command": "", "device": "cpu", "data": ""},
                Path(folder),
            )
    return Path(folder)


def write_experiment(path, **changes):
    """An experiment file."""
    path.write_text(yaml.safe_dump({**EXPERIMENT, **changes}, sort_keys=False))
    return path


def run_here(
    path, folder, networks, engine="inline", report=None, restart=False, retry=False, **options
):
    """Run an experiment from Python."""
    place = RunEnvironment(networks=str(networks))
    plan = plan_run(read_experiment(path), place)
    with create_engine(engine, **options) as workers:
        return execute_plan(
            plan,
            RunOptions(Path(folder), place, restart, retry),
            workers,
            report or (lambda text, size: None),
        )


def numbers(folder):
    """All rows but clocks, sorted, as text: floats to the last bit."""
    rows = [
        row.record()
        for row in BenchmarkRun(folder).results().rows
        if not row.metric.startswith("time")
    ]
    return sorted(
        repr({name: value for name, value in row.items() if name != "seconds"}) for row in rows
    )


def command(*arguments, extra_path="", **options):
    """The command line in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "graphgauge", "benchmark", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(extra_path),
        preexec_fn=hears_ctrl_c,
        **options,
    )


def hears_ctrl_c():
    """A suite that a shell runs in the background hands down that Ctrl-C is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def environment(extra_path=""):
    """One thread, and packages that only this test has."""
    path = os.pathsep.join([*([str(extra_path)] if extra_path else []), *sys.path])
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path}


def wait_for(look, seconds=120):
    """Until something is there."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError("it did not come")
