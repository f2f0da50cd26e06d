"""Does a GPU give what the CPU gives, and how fast?  Needs CUDA.

    python bench/device.py [--copies 200000]

Runs `check_model` on the GPU, compares predictions of edited copies with the CPU's in float32 and
float64, times them, and fills the card so that unions have to be halved.
"""

import argparse

import torch
from timing import seconds
from unions import silence_one

from graphgauge.checks import check_model
from graphgauge.datasets import ba_shapes, trained_gcn
from graphgauge.models import NodeClassificationModel

TARGETS = range(300, 700, 40)


def wrapped(device: str, dtype: torch.dtype, budget: str | None = None) -> NodeClassificationModel:
    """The same trained network and graph on a device."""
    data = ba_shapes()
    net = trained_gcn(data, epochs=20).to(device, dtype)
    data.x = data.x.to(dtype)
    return NodeClassificationModel(net, data.to(device), memory_budget=budget)


def predictions(model: NodeClassificationModel, copies: int) -> torch.Tensor:
    """Of ``copies`` copies of ten targets, each with another edge silenced."""
    graphs = model.computation_graphs(TARGETS)
    return model.pred_copies(
        graphs, torch.arange(copies, device=model.source.device) % len(graphs), silence_one
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--copies", type=int, default=200_000)
    copies = parser.parse_args().copies
    print(torch.cuda.get_device_name(0), "torch", torch.__version__)
    for result in check_model(wrapped("cuda", torch.float32)):
        print(" ", result)
    for dtype in (torch.float32, torch.float64):
        gap = (
            (
                predictions(wrapped("cuda", dtype), 2000).cpu()
                - predictions(wrapped("cpu", dtype), 2000)
            )
            .abs()
            .max()
        )
        print(f"largest difference from the CPU, {dtype}: {gap:.1e}")
    model = wrapped("cuda", torch.float32)
    spent = seconds(lambda: predictions(model, copies), 3)
    print(
        f"{copies} edited copies: {spent:.3f} s, {torch.cuda.max_memory_allocated() / 2**30:.1f} "
        "GiB at most"
    )
    greedy = wrapped("cuda", torch.float32, budget="100TiB")
    ballast = torch.empty(
        torch.cuda.mem_get_info()[0] - 6 * 2**30, dtype=torch.uint8, device="cuda"
    )
    rows = predictions(greedy, 4 * copies)
    print(
        f"{4 * copies} copies with 6 GiB free: {greedy.executor.halvings} halvings, {len(rows)} "
        f"rows, {len(ballast)} bytes taken"
    )


if __name__ == "__main__":
    main()
