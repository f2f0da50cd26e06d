"""Which files does a reader follow, from a call to the number that it gives?

    python bench/call_paths.py

Three calls are made on a small graph: `Evaluator.compare`, ``graphgauge evaluate`` and one request
to the service. At the places where something happens (the network runs, a metric is computed, an
answer is logged) the script writes down which files of the package are on the call stack. The
network has been wrapped and probed before, so what stands here is what happens at every call.
"""

import asyncio
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import torch
import yaml
from safetensors.torch import save_model
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

import graphgauge as gg
from graphgauge.datasets import save_graph

if TYPE_CHECKING:
    from fastapi import FastAPI

PACKAGE = Path(gg.__file__).parent
TOKEN = "only-for-this-measurement"
#: "the network runs" -> files and functions on the stack, from the call inwards
Stacks = dict[str, list[str]]


class RecordedNetwork(nn.Module):
    """A GCN of two layers that writes down who calls it."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = GCNConv(4, 8), GCNConv(8, 3)
        self.record: Callable[[], None] = lambda: None

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of each node.  (N, 3)"""
        self.record()
        return self.second(self.first(x, edge_index).relu(), edge_index)


def package_stack() -> list[str]:
    """Files of the package on the call stack with their functions, from the call inwards."""
    lines: list[str] = []
    frame = sys._getframe(1)
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(PACKAGE):
            lines.append(f"{path.relative_to(PACKAGE).as_posix()}:{frame.f_code.co_name}")
        frame = frame.f_back  # type: ignore[assignment]
    return lines[::-1]


def files_of(stacks: Stacks) -> list[str]:
    """The files of some stacks, in the order in which they are reached."""
    return list(
        dict.fromkeys(line.partition(":")[0] for stack in stacks.values() for line in stack)
    )


@contextmanager
def recorded(stacks: Stacks, what: str, owner: type, method: str) -> Iterator[None]:
    """Write down the stack of the first call of a method."""
    original = getattr(owner, method)

    def record(*args: object, **kwargs: object) -> object:
        stacks.setdefault(what, [*package_stack(), place_of(original)])
        return original(*args, **kwargs)

    with patch.object(owner, method, record):
        yield


def place_of(function: Callable[..., object]) -> str:
    """File and name of a function of the package."""
    path = Path(function.__code__.co_filename)
    return f"{path.relative_to(PACKAGE).as_posix()}:{function.__name__}"


def small_model() -> tuple[gg.NodeClassificationModel, RecordedNetwork]:
    """A wrapped network on a random graph, and the network itself."""
    draw = torch.Generator().manual_seed(0)
    edge_index = torch.randint(30, (2, 300), generator=draw)
    data = Data(x=torch.randn(30, 4, generator=draw), edge_index=edge_index)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = RecordedNetwork()
    return gg.NodeClassificationModel(net, data), net


def _what_runs(stack: list[str]) -> str:
    """What the network is run for."""
    if any(line.startswith("perturbation/") for line in stack):
        return "the network runs on edited copies"
    if any(line.startswith("explainers/gradients.py") for line in stack):
        return "the prediction is explained"
    return "the computation graph is cut out"


def path_of_compare() -> Stacks:
    """The Effective Compactness of edges: explanation, curve, metric."""
    model, net = small_model()
    evaluator = gg.Evaluator(model, sides="edges", stability="none", timed=0)
    evaluator.compare([gg.InputXGradient()], [1])  # probes the network
    stacks: Stacks = {}

    def record() -> None:
        stack = package_stack()
        stacks.setdefault(_what_runs(stack), stack)

    net.record = record
    with recorded(stacks, "the metric is computed", gg.metrics.EffectiveCompactness, "measure"):
        evaluator.compare([gg.InputXGradient()], [2])
    return stacks


def write_project(folder: Path) -> Path:
    """The files that ``graphgauge evaluate`` reads; the path of the first of them."""
    model, net = small_model()
    save_model(net, str(folder / "weights.safetensors"))
    save_graph(model.data, folder / "graph.safetensors")
    path = folder / "graphgauge.yaml"
    keys = {
        "model": f"{Path(__file__).stem}:RecordedNetwork",
        "weights": "weights.safetensors",
        "data": "graph.safetensors",
        "device": "cpu",
        "level": "node",
        "task": "classification",
        "explainers": ["saliency", "random"],
        "targets": [1, 2, 3],
    }
    path.write_text(yaml.safe_dump(keys), encoding="utf-8")
    return path


def path_of_evaluate() -> Stacks:
    """``graphgauge evaluate``, down to `Evaluator.compare` and to the files of a run."""
    from typer.testing import CliRunner

    from graphgauge.cli.main import app

    stacks: Stacks = {}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        for what, owner, method in (
            ("the project is read", gg.Project, "read"),
            ("the explainers are compared", gg.Evaluator, "compare"),
            ("the numbers are saved", gg.Results, "save"),
        ):
            stack.enter_context(recorded(stacks, what, owner, method))
        config = write_project(Path(folder))
        output = str(Path(folder) / "run")
        done = CliRunner().invoke(app, ["evaluate", str(config), "--output", output])
        if "the numbers are saved" not in stacks:
            raise RuntimeError(f"graphgauge evaluate saved nothing: {done.output}")
    return stacks


def path_of_request() -> Stacks:
    """One request to the service: the question, the explanation, the audit log."""
    from graphgauge.serve import Settings, create_app

    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(token=TOKEN, budget_ms=60_000)
        audit = Path(folder) / "log.sqlite"
        app = create_app(small_model()[0], gg.InputXGradient(), audit, settings=settings)
        return asyncio.run(ask_service(app))


async def ask_service(app: "FastAPI") -> Stacks:
    """Start a service, wait until it is ready, and ask one question."""
    from httpx import ASGITransport, AsyncClient

    from graphgauge.serve import Service
    from graphgauge.store import AuditLog

    stacks: Stacks = {}
    client = AsyncClient(transport=ASGITransport(app), base_url="http://127.0.0.1")
    async with app.router.lifespan_context(app), client:
        while (await client.get("/ready")).status_code != 200:
            await asyncio.sleep(0.01)
        with ExitStack() as stack:
            for what, owner, method in (
                ("the question is queued", Service, "ask"),
                ("the prediction is explained", gg.InputXGradient, "explain"),
                ("the answer is logged", AuditLog, "append"),
            ):
                stack.enter_context(recorded(stacks, what, owner, method))
            headers = {"Authorization": f"Bearer {TOKEN}"}
            answer = await client.post("/explain", json={"target": 3}, headers=headers)
    if answer.status_code != 200:
        raise RuntimeError(f"the service answered {answer.status_code}: {answer.text}")
    return stacks


#: what is called -> how its path is found
CALLS: dict[str, Callable[[], Stacks]] = {
    "Evaluator.compare": path_of_compare,
    "graphgauge evaluate": path_of_evaluate,
    "one request of graphgauge serve": path_of_request,
}


def main() -> None:
    """Print the path of each call."""
    for name, find in CALLS.items():
        stacks = find()
        print(f"{name}: {len(files_of(stacks))} files")
        for what, stack in stacks.items():
            print(f"  {what}\n    " + "\n    ".join(stack))


if __name__ == "__main__":
    main()
