"""The table of trained networks in docs/benchmark.md, from folders of kept networks (``graphgauge
train all --keep DIR``).

    python bench/networks.py --trained DIR [--other DIR LABEL]...

One row for each network and folder: mean ± SD over five seeds of the score (accuracy, or r²) on
training, validation, test and all labels; the four scores of the kept network; the paper's figure;
the first part, of test, val, all and train in this order, whose mean reaches the paper's figure
less 0.03; the chosen settings. Networks that a folder does not hold have no row.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graphgauge.benchmark import SCORED_PARTS
from graphgauge.core import BadFile
from graphgauge.datasets import NETWORK_TASKS, NetworkTask, trained_record

CLOSE = 0.03  #: a part reaches the paper's figure if it is not lower by more than this
#: from the strictest reading of the paper's figure to the loosest
ORDER = ("test", "val", "all", "train")
HEADING = (
    "network",
    "run",
    *SCORED_PARTS,
    f"kept: {', '.join(SCORED_PARTS)}",
    "paper",
    "reached by",
    "settings",
)

Folders = list[tuple[Path, str]]  #: with their labels


def markdown(folders: Folders) -> str:
    """The whole table; the folders' rows of one network stand together."""
    lines = [HEADING, ["---"] * len(HEADING), *rows(folders)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def rows(folders: Folders) -> Iterator[list[str]]:
    """The cells of every network that is there, in the order of the paper."""
    for folder, _ in folders:
        if not any((folder / f"{name}.toml").exists() for name in NETWORK_TASKS):
            raise BadFile(
                f"{folder} holds no trained network. `graphgauge train all --keep {folder}` makes "
                "them."
            )
    for task in NETWORK_TASKS.values():
        for folder, label in folders:
            if (folder / f"{task.name}.toml").exists():
                yield cells(
                    task, label, trained_record(task.data_set, task.level, task.conv, folder)
                )


def cells(task: NetworkTask, label: str, record: dict[str, dict[str, Any]]) -> list[str]:
    """One network of one folder."""
    mean, sd, kept = record["scores"], record["scores_sd"], record["scores_kept"]
    return [
        task.name,
        label,
        *(f"{mean[part]:.3f} ± {sd[part]:.3f}" for part in SCORED_PARTS),
        ", ".join(f"{kept[part]:.3f}" for part in SCORED_PARTS),
        f"{task.paper:.2f}",
        reached_by(mean, task.paper),
        settings(record),
    ]


def reached_by(score: dict[str, float], paper: float) -> str:
    """The first part whose score is at least the paper's figure less 0.03, or "none"; NaN reaches
    nothing.

    >>> reached_by({"test": 0.75, "val": 0.77, "all": 0.9, "train": 1.0}, 0.8)
    'val'
    """
    # 0.8 - 0.03 has its last digit wrong
    return next((part for part in ORDER if score[part] >= paper - CLOSE - 1e-9), "none")


def settings(record: dict[str, dict[str, Any]]) -> str:
    """What was chosen from the grid, and how training stopped; or the point that was trained on
    batches of pairs.
    """
    given = record["settings"]
    names = {
        "hidden": "hidden",
        "lr": "learning_rate",
        "decay": "weight_decay",
        "dropout": "dropout",
    }
    chosen = ", ".join(f"{short} {given[name]:g}" for short, name in names.items())
    bias = ", decoder bias" if record["architecture"]["decoder_bias"] else ""
    length = (
        f"step {given['kept_epoch']} of {given['steps']}, {given['pairs']} pairs each"
        if "pairs" in given
        else f"epoch {given['kept_epoch']} of {given['epochs']}"
    )
    return f"{chosen}{bias}, watch {given['watch']}, {length}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trained", type=Path, required=True, metavar="DIR")
    parser.add_argument("--other", nargs=2, action="append", default=[], metavar=("DIR", "LABEL"))
    given = parser.parse_args()
    print(
        markdown(
            [(given.trained, "default"), *((Path(folder), label) for folder, label in given.other)]
        )
    )


if __name__ == "__main__":
    main()
