"""Rows of the paper's preset on tasks of the published benchmark, as they were computed when the
file beside this one was written.

    GRAPHGAUGE_DATA=<folder with Cora> python tests/golden/golden_rows.py  # writes the file again

A number that moves here moves a published number. That is a decision, and stands under "Changed
scores" in the changelog.
"""

import json
from pathlib import Path

import graphgauge as gg
from graphgauge.benchmark.planning import wrap_network
from graphgauge.datasets import benchmark_targets, load, trained

FILE = Path(__file__).with_suffix(".json")
TASKS = (
    ("Cora", "node", "gcn"),
    ("Cora", "link", "gat"),
    ("BA-Shapes", "node", "gat"),
    ("BA-Shapes", "link", "gcn"),
    ("Synthetic", "node", "gat"),
    ("Synthetic", "link", "gcn"),
)
EXPLAINERS = (gg.InputXGradient(), gg.Saliency(), gg.LRP(), gg.GNNExplainer(epochs=20))


def key_of(data_set: str, level: str, network: str) -> str:
    """How the benchmark names a task and its network."""
    return f"{data_set.lower()}-{level} {network}"


def compute_rows(data_set: str, level: str, network: str) -> dict[str, list]:
    """Status and value of every metric of two targets, with the seeds that the benchmark uses."""
    model = wrap_network(trained(data_set, level, network), data := load(data_set, level))
    settings = {"stability": "binomial", "timed": 0}
    evaluator = gg.Evaluator(
        model, seed=0, seed_scope=(f"{data_set.lower()}-{level}", network), **settings
    )
    rows = evaluator.compare(EXPLAINERS, benchmark_targets(data, 2)).rows
    return {
        f"{row.explainer} {row.target} {row.metric}": [row.cell.status, row.cell.value]
        for row in rows
        if not row.metric.startswith("time")
    }


def main() -> None:
    """Write the file."""
    found = {key_of(*task): compute_rows(*task) for task in TASKS}
    parts = []
    for task, rows in found.items():
        lines = ",\n".join(
            f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in rows.items()
        )
        parts.append(f"{json.dumps(task)}: {{\n{lines}\n}}")
    FILE.write_text("{\n" + ",\n".join(parts) + "\n}\n")


if __name__ == "__main__":
    main()
