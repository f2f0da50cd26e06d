"""Measure the service under load, from a second process on loopback; or kill it under load.

    python bench/service.py [--rate 200] [--seconds 30] [--nodes 20000]
        measures p50, p99 and memory, and checks that there is no error and no lost entry
    python bench/service.py --kill [--kills 5]
        kills the service with SIGKILL, and checks that the log has every answered question

A transaction-like graph is generated (16 features, about 5 edges a node, a two-layer GCN with its
first weights) and served with InputXGradient. Questions are sent at fixed times whatever the
answers do, over connections that stay open, and a latency counts from the moment at which a
question was due: a service that falls behind cannot hide it.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import psutil

TOKEN = "only-for-this-bench-on-loopback"
CONNECTIONS = 64


@dataclass
class Load:
    """What came back: seconds per answer, receipts (answer, number, digest), and errors."""

    seconds: list[float] = field(default_factory=list)
    receipts: list[tuple[str, int, str]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


# --- the process that serves ----------------------------------------------------------------------


def serve(nodes: int, port: int, audit: str) -> None:
    """Generate a graph and serve it until told to stop."""
    import torch

    from graphgauge.explainers import InputXGradient
    from graphgauge.serve import Service, Settings, run_service

    torch.set_num_threads(1)
    settings = Settings(
        port=port, token=TOKEN, budget_ms=2000, max_waiting=4096, rate=10_000, burst=10_000
    )
    run_service(Service(made_model(nodes), InputXGradient(), audit, settings=settings))


def made_model(nodes: int) -> Any:
    """A sparse random graph with 16 features, and a GCN."""
    import torch
    from torch_geometric.data import Data
    from torch_geometric.nn import GCN

    import graphgauge as gg

    draw = torch.Generator().manual_seed(0)
    ends = torch.randint(nodes, (2, nodes * 5 // 2), generator=draw)
    data = Data(
        x=torch.randn(nodes, 16, generator=draw), edge_index=torch.cat([ends, ends.flip(0)], 1)
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = GCN(16, 32, 2, 2)
    return gg.NodeClassificationModel(net, data, feature_names=[f"feature {k}" for k in range(16)])


@contextmanager
def started(nodes: int, audit: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The serving process, warm, and its port; what it says is kept beside the log."""
    words = [sys.executable, __file__, "--serve", str(audit), "--nodes", str(nodes)]
    said = audit.with_suffix(".txt")
    with (
        said.open("wb") as file,
        subprocess.Popen(words, stderr=file, env={**os.environ, "OMP_NUM_THREADS": "1"}) as process,
    ):
        try:
            yield process, port_of(process, said)
        finally:
            process.kill()


def port_of(process: subprocess.Popen[bytes], said: Path) -> int:
    """The port, as soon as the service tells it."""
    while process.poll() is None:
        lines = [line for line in said.read_text().splitlines() if "graphgauge serves on" in line]
        if lines and "(" in lines[0]:
            return int(lines[0].split(":")[2].split()[0])
        time.sleep(0.05)
    raise SystemExit(f"the service did not start: {said.read_text()}")


# --- the process that asks ------------------------------------------------------------------------


def request(target: int, port: int) -> bytes:
    """One question as HTTP."""
    body = json.dumps({"target": target, "asked_by": "bench"}).encode()
    head = (
        "POST /explain HTTP/1.1\r\n"
        f"Host: 127.0.0.1:{port}\r\n"
        f"Authorization: Bearer {TOKEN}\r\n"
        "Content-Type: application/json\r\n"
    )
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def answered(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Status and body of one answer."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length")
    )
    return int(head.split(b" ", 2)[1]), await reader.readexactly(length)


async def ask_all(port: int, dues: list[float], nodes: int, load: Load) -> None:
    """Send every question when it is due, over whichever connection is free."""
    dice, start = random.Random(0), time.monotonic() + 0.2
    waiting: asyncio.Queue[tuple[float, int]] = asyncio.Queue()
    askers = [asyncio.create_task(ask_from(waiting, port, load)) for _ in range(CONNECTIONS)]
    for due in dues:
        await asyncio.sleep(max(0.0, start + due - time.monotonic()))
        waiting.put_nowait((start + due, dice.randrange(nodes)))
    for _ in askers:
        waiting.put_nowait((0.0, -1))
    await asyncio.gather(*askers)


async def ask_from(waiting: "asyncio.Queue[tuple[float, int]]", port: int, load: Load) -> None:
    """One connection."""
    writer: asyncio.StreamWriter | None = None
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while (item := await waiting.get())[1] >= 0:
            writer.write(request(item[1], port))
            status, body = await answered(reader)
            load.seconds.append(time.monotonic() - item[0])
            found = json.loads(body)
            if status != 200:
                load.errors.append(f"{status} {found}")
            else:
                load.receipts.append(
                    (found["id"], found["audit"]["number"], found["audit"]["digest"])
                )
    except (OSError, asyncio.IncompleteReadError) as error:
        load.errors.append(f"{type(error).__name__}: {error}")
    finally:
        if writer is not None:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


# --- what is measured -----------------------------------------------------------------------------


def lost(audit: Path, receipts: list[tuple[str, int, str]]) -> int:
    """Receipts that the log does not hold; the chain itself must be whole."""
    from graphgauge.store import json_lines, verify_log

    found = verify_log(audit)
    if found.fault:
        raise SystemExit(f"the log is not whole: {found.fault}")
    kept = {
        (line["record"].get("answer"), line["number"], line["digest"])
        for line in map(json.loads, json_lines(audit))
    }
    return sum(receipt not in kept for receipt in receipts)


def mean_batch(port: int) -> float:
    """Questions in one call of the explainer, from the service's own figures."""
    asked = Request(
        f"http://127.0.0.1:{port}/metrics", headers={"Authorization": f"Bearer {TOKEN}"}
    )
    with urlopen(asked) as answer:
        lines = [
            line.split()
            for line in answer.read().decode().splitlines()
            if line.startswith("graphgauge_batch_size_")
        ]
    figures = {words[0]: float(words[1]) for words in lines}
    return figures["graphgauge_batch_size_sum"] / figures["graphgauge_batch_size_count"]


def under_load(nodes: int, rate: float, seconds: float, folder: Path) -> dict[str, Any]:
    """Ask at a steady rate; latencies in milliseconds, memory in MiB."""
    load = Load()
    with started(nodes, folder / "audit.sqlite") as (process, port):
        memory = psutil.Process(process.pid)
        before, cpu = memory.memory_info().rss, sum(memory.cpu_times()[:2])
        asyncio.run(ask_all(port, [k / rate for k in range(int(rate * seconds))], nodes, load))
        after, spent = memory.memory_info().rss, sum(memory.cpu_times()[:2]) - cpu
        batch = mean_batch(port)
        process.send_signal(signal.SIGTERM)
        code = process.wait(60)
    cuts = statistics.quantiles(load.seconds, n=1000)
    return {
        "asked": int(rate * seconds),
        "answered": len(load.receipts),
        "errors": load.errors,
        "lost": lost(folder / "audit.sqlite", load.receipts),
        "p50_ms": round(cuts[499] * 1000, 1),
        "p99_ms": round(cuts[989] * 1000, 1),
        "max_ms": round(max(load.seconds) * 1000, 1),
        "memory_mib": [round(before / 2**20), round(after / 2**20)],
        "mean_batch": round(batch, 1),
        "cpu_share": round(spent / seconds, 2),
        "exit_code": code,
    }


def killed(nodes: int, rate: float, after: float, folder: Path) -> dict[str, int]:
    """Kill the service with -9 in the middle of the load, and look for what it had answered."""
    load = Load()

    async def run(process: "subprocess.Popen[bytes]", port: int) -> None:
        asking = asyncio.create_task(
            ask_all(port, [k / rate for k in range(int(rate * (after + 2)))], nodes, load)
        )
        await asyncio.sleep(after)
        process.kill()
        await asyncio.wait([asking], timeout=10)

    with started(nodes, folder / "audit.sqlite") as (process, port):
        asyncio.run(run(process, port))
    return {"answered": len(load.receipts), "lost": lost(folder / "audit.sqlite", load.receipts)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rate", type=float, default=200)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--serve", metavar="AUDIT", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.nodes, 0, options.serve)
        return
    with tempfile.TemporaryDirectory(prefix="service-") as place:
        if not options.kill:
            print(
                json.dumps(
                    under_load(options.nodes, options.rate, options.seconds, Path(place)), indent=2
                )
            )
        for number in range(options.kills if options.kill else 0):
            folder = Path(place) / str(number)
            folder.mkdir()
            found = killed(
                options.nodes, options.rate, 1 + random.Random(number).random() * 4, folder
            )
            print(json.dumps(found), flush=True)
            if found["lost"] or not found["answered"]:
                raise SystemExit("an answer is not in the log, or nothing was answered")


if __name__ == "__main__":
    main()
