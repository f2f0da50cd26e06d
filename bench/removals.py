"""What `drop` changes against removal of edges by masks, and which of the two is nearer to the
paper's Table 1.

    python bench/removals.py benchmarks/paper benchmarks/paper-drop

A line for each kind of task and edge metric, over the targets that both runs have:

    change        mean of drop - mask over the explainers
    order         Spearman's ρ between the explainers' means, ties as in `comparison`
    mask, drop    mean |ours - paper| over all but LRP and GraphMask, whose edge scores are not the
                  paper's (docs/explainers.md)
"""

import argparse
from pathlib import Path

import pandas as pd

from graphgauge import Results
from graphgauge.benchmark import TIE_WIDTHS, as_study, compare_cells, spearman_correlation
from graphgauge.cli.console import run_app
from graphgauge.evaluation import Row

OTHERS = ("lrp", "graphmask")
#: metric -> what counts as tied
METRICS = {"edge_pertinence": TIE_WIDTHS["pertinence"], "edge_ec": TIE_WIDTHS["ec"]}


def removals(mask: Results, drop: Results) -> pd.DataFrame:
    """The lines; a kind that one of the runs lacks has none."""
    shared = targets(mask) & targets(drop)
    if not shared:
        return pd.DataFrame()
    runs = (
        Results(tuple(row for row in own.rows if key(row) in shared), own.settings)
        for own in (mask, drop)
    )
    cells = [
        compare_cells(as_study(results)).set_index(["kind", "metric", "explainer"])
        for results in runs
    ]
    both = (
        cells[0][["ours", "paper"]]
        .join(cells[1]["ours"].rename("dropped"), how="inner")
        .reset_index()
    )
    groups = both[both["metric"].isin(METRICS)].groupby(["kind", "metric"], sort=False)
    return pd.DataFrame(
        [
            {"kind": kind, "metric": metric, **line(own, METRICS[metric])}
            for (kind, metric), own in groups
        ]
    )


def key(row: Row) -> tuple[str, str, object]:
    """Which target of which network."""
    return row.task, row.model, row.target


def targets(results: Results) -> set[tuple[str, str, object]]:
    """All of them."""
    return {key(row) for row in results.rows}


def line(own: pd.DataFrame, tie: float) -> dict[str, float]:
    """One kind and metric: a row for each explainer."""
    same = own[~own["explainer"].isin(OTHERS)]
    return {
        "explainers": len(own),
        "change": float((own["dropped"] - own["ours"]).mean()),
        "order": float(
            spearman_correlation(own["ours"].to_numpy(), own["dropped"].to_numpy(), tie)
        ),
        "mask": float((same["ours"] - same["paper"]).abs().mean()),
        "drop": float((same["dropped"] - same["paper"]).abs().mean()),
    }


def command() -> None:
    """Read the command line, print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("mask", type=Path, help="folder of the run with masks")
    parser.add_argument("drop", type=Path, help="folder of the run with drop")
    chosen = parser.parse_args()
    print(
        removals(Results.load(chosen.mask), Results.load(chosen.drop))
        .round(3)
        .to_string(index=False)
    )


if __name__ == "__main__":
    run_app(command)
