"""Clusters of two nodes on this machine, started with the commands people use. A node is a process
with all its children.
"""

import contextlib
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil

from support.tiny_experiments import environment, wait_for

PLUGINS = Path(__file__).parent / "plugins"
#: a worker's death reaches the runner at once, and is not hidden by Dask's own four attempts
DASK = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}


def secret():
    """What all sides of a Ray cluster must share; by itself Ray would leave a token in the home
    directory.
    """
    return {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_USAGE_STATS_ENABLED": "0",
    }


class Nodes:
    """The processes of a cluster, how the command line names it, the environment that all sides
    share, and a gate to wait at.
    """

    def __init__(self, engine, folder):
        self.engine, self.folder, self.processes, self.options = engine, Path(folder), [], []
        self.gate = self.folder / "gate"
        self.gate.mkdir()
        self.environment = {**environment(PLUGINS), **DASK, **secret(), "GATE": str(self.gate)}

    def start(self, *words):
        """One more process, that writes to a file."""
        with (self.folder / f"node{len(self.processes)}.txt").open("w") as file:
            self.processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", *map(str, words)],
                    stdout=file,
                    stderr=file,
                    env=self.environment,
                )
            )

    def told(self, number):
        """What a process wrote so far."""
        return (self.folder / f"node{number}.txt").read_text()

    def kill_one(self):
        """End the last node as a power cut would; of local processes one that has arrived."""
        if self.processes:
            end_tree(self.processes.pop())
        else:
            psutil.Process(self.arrived()[0]).kill()

    def close_gate(self):
        """From here on all wait; nobody has arrived yet."""
        for path in self.gate.iterdir():
            path.unlink()

    def open_gate(self):
        """Nobody waits."""
        (self.gate / "open").touch()

    def arrived(self):
        """The processes at the gate."""
        return sorted(int(path.name) for path in self.gate.iterdir() if path.name.isdigit())

    def alive(self, numbers):
        """Those of the processes that still are."""
        return [
            number
            for number in numbers
            if psutil.pid_exists(number) and psutil.Process(number).status() != "zombie"
        ]


def end_tree(process):
    """Kill a process and all that it started."""
    with contextlib.suppress(psutil.NoSuchProcess):
        top = psutil.Process(process.pid)
        family = [*top.children(recursive=True), top]
        for member in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                member.kill()
        psutil.wait_procs(family[:-1], timeout=30)
    process.wait()


@contextlib.contextmanager
def two_nodes(engine):
    """A running cluster."""
    folder = tempfile.mkdtemp(prefix="gg")  # Ray's sockets need a short path
    nodes = Nodes(engine, folder)
    try:
        {"dask": start_dask, "ray": start_ray, "processes": start_nothing}[engine](nodes)
        yield nodes
    finally:
        for process in reversed(nodes.processes):
            end_tree(process)
        shutil.rmtree(folder, ignore_errors=True)


def start_nothing(nodes):
    """The run starts its own two processes."""
    nodes.options = ["--workers", 2]


def start_dask(nodes):
    """A scheduler and two workers with a nanny each, on loopback; torch is loaded before they take
    work.
    """
    address = f"tcp://127.0.0.1:{free_port()}"
    nodes.options = ["--address", address]
    nodes.start("distributed.cli.dask_scheduler", "--host", address, "--no-dashboard")
    for _ in range(2):
        options = [
            "--nthreads",
            1,
            "--no-dashboard",
            "--host",
            "127.0.0.1",
            "--local-directory",
            nodes.folder,
        ]
        nodes.start(
            "distributed.cli.dask_worker",
            address,
            *options,
            "--preload",
            "graphgauge.benchmark.worker",
        )
    wait_for(
        lambda: all("Starting established connection" in nodes.told(number) for number in (1, 2))
    )


def start_ray(nodes):
    """A head with one core, and a second node with one core."""
    address = f"127.0.0.1:{free_port()}"
    nodes.options = ["--address", address]
    size = ["--num-cpus", 1, "--object-store-memory", 100_000_000, "--block"]
    own = [
        "--port",
        address.rpartition(":")[2],
        "--temp-dir",
        nodes.folder,
        "--include-dashboard",
        "false",
    ]
    nodes.start("ray.scripts.scripts", "start", "--head", *own, *size)
    wait_for(lambda: "Ray runtime started" in nodes.told(0))
    nodes.start("ray.scripts.scripts", "start", "--address", address, *size)


def free_port():
    """A port nobody listens at."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
