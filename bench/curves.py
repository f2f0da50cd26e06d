"""Edge curves from versions of single nodes against copies of whole graphs: seconds of both in one
run, and whether bits differ.

    python bench/curves.py [--data Cora BA-Shapes] [--targets 10] [--trials 10] [--device cpu]

Random orders of up to 100 removals; the better of two times each, one after the other. Cora needs
its files (GRAPHGAUGE_DATA).
"""

import argparse
import time
from collections.abc import Callable

import torch
from torch import Tensor

from graphgauge.benchmark import wrap_network
from graphgauge.datasets import load, trained
from graphgauge.evaluation import sample_targets
from graphgauge.execution import GraphBatch, GraphCopies
from graphgauge.models import BaseModel
from graphgauge.perturbation import CurveLines, EdgeEdits, random_orders, steps_between

CAP = 100


def timed(call: Callable[[], Tensor]) -> tuple[float, Tensor]:
    """Seconds of the better of two calls, and what it found."""
    took, found = [], torch.zeros(0)
    for _ in range(2):
        start = time.perf_counter()
        found = call().cpu()
        took.append(time.perf_counter() - start)
    return min(took), found


def compared(model: BaseModel, number: int, trials: int, removal: str) -> str:
    """Both ways, as a line of a table."""
    graphs = model.computation_graphs(sample_targets(model, number, seed=0))
    edits = EdgeEdits.from_graphs(model, graphs, removal)
    order = random_orders(edits.candidates, list(range(number)), CAP, 0, trials).flatten(0, 1)
    lines = CurveLines(torch.arange(number, device=order.device).repeat_interleave(trials), order)
    line, step = steps_between(torch.zeros_like(lines.case), (order >= 0).sum(1))

    def by_copies() -> Tensor:
        def edit(union: GraphBatch) -> GraphBatch:
            return edits.edit(union, lines, line[union.copy], step[union.copy])

        return model.pred_copies(graphs, lines.case[line], edit, kind="copies")

    def by_versions() -> Tensor:
        points: GraphCopies = edits.versioned_copies(model, lines, line, step)
        return model.pred_rows(model.executor.outputs, points, kind="versions")

    (slow, wanted), (fast, found) = timed(by_copies), timed(by_versions)
    gap = (
        "the same bits"
        if torch.equal(wanted, found)
        else f"{float((wanted - found).abs().max()):.1e}"
    )
    return f"{removal} | {len(line):,} | {slow:.2f} | {fast:.2f} | {slow / fast:.1f} | {gap} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", default=["Cora", "BA-Shapes"])
    parser.add_argument("--targets", type=int, default=10)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    print(
        "| task | network | removal | points | copies, s | versions, s | ratio | difference |\n"
        "|---|---|---|---|---|---|---|---|"
    )
    for name in options.data:
        for level in ("node", "link"):
            for conv in ("gcn", "gat"):
                model = wrap_network(
                    trained(name, level, conv).to(options.device),
                    load(name, level).to(options.device),
                )
                for removal in ("mask", "drop"):
                    line = compared(model, options.targets, options.trials, removal)
                    print(f"| {name}, {level} | {conv} | {line}", flush=True)


if __name__ == "__main__":
    main()
