"""Table 1 of the paper: mean and SD over data sets and networks, by kind of task and explainer,
under our names.
"""

import csv
from functools import cache
from importlib.resources import files

#: (kind, explainer, metric) -> mean, SD
_PaperTable = dict[tuple[str, str, str], tuple[float, float]]


@cache
def published_table() -> _PaperTable:
    """The paper's 4 x 8 x 7 cells, in its order.

    >>> published_table()["node_classification", "gnn_explainer", "feature_ec"]
    (32.2, 12.8)
    """
    lines = (
        files("graphgauge.evaluation")
        .joinpath("paper_table_1.csv")
        .read_text(encoding="utf-8")
        .splitlines()
    )
    return {
        (row["kind"], row["explainer"], metric): _parse_mean_and_sd(cell)
        for row in csv.DictReader(lines)
        for metric, cell in list(row.items())[2:]
    }


def _parse_mean_and_sd(text: str) -> tuple[float, float]:
    """Mean and SD, with a blank between them."""
    mean, sd = map(float, text.split())
    return mean, sd
