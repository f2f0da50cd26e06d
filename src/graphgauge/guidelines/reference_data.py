"""The paper's guidelines as data, and what chance reaches, read once from the files in ``data/``.

    thresholds.toml   the table of thresholds for each kind of task; bands of stability and
                      pertinence; latency by use
    explainers.toml   the hierarchy, methods to avoid, choices for each kind of task
    practice.toml     sample sizes, transferability, early stopping, phases, troubleshooting,
                      the checklist
    chance.toml       our own data: the scores of random rankings and untrained masks
    benchmark.csv     our benchmark: task, explainer, metric, mean, sd, n

Every entry that comes from the paper has ``where``, the part of the appendix it comes from.
"""

import sys
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from graphgauge.core import JsonObject, lookup
from graphgauge.metrics import MetricName

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    import pandas as pd

_DATA_FOLDER = files("graphgauge.guidelines") / "data"
TASK_KINDS = ("node_classification", "node_regression", "link_classification", "link_regression")
BENCHMARK_FILE = "benchmark.csv"


@cache
def load_guideline(name: str) -> JsonObject:
    """Return one file of the guidelines: "thresholds", "explainers", "practice" or "chance"."""
    return tomllib.loads((_DATA_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def threshold_entry(metric: str) -> JsonObject:
    """Return the row of the table of thresholds for a metric, or for its twin.

    >>> threshold_entry("edge_pertinence_tied")["link_regression"]
    0.6
    """
    return lookup(
        {entry["metric"]: entry for entry in load_guideline("thresholds")["threshold"]},
        str(MetricName.parse(metric).as_paper()),
        "metric",
    )


def find_band(family: str, value: float) -> JsonObject:
    """Return the band of "stability" or "pertinence" that contains a value.

    >>> find_band("stability", 0.95)["name"], find_band("pertinence", 0.7)["name"]
    ('high', 'moderate')
    """
    return next(
        entry for entry in load_guideline("thresholds")[family]["band"] if _is_in_band(entry, value)
    )


def _is_in_band(entry: JsonObject, value: float) -> bool:
    """Whether a band contains a value."""
    endless = float("inf")
    return entry.get("least", -endless) <= value <= entry.get("most", endless) and entry.get(
        "above", -endless
    ) < value < entry.get("below", endless)


def metric_family(metric: str) -> str:
    """Return what a metric measures: "stability", "pertinence", "ec" or "time".

    >>> metric_family("feature_pertinence_tied"), metric_family("time")
    ('pertinence', 'time')
    """
    return lookup(
        {"stability": "stability", "pertinence": "pertinence", "ec": "ec", "time": "time"},
        MetricName.parse(metric).family,
        "metric",
    )


def transferability_entry(metric: str) -> JsonObject:
    """Return how well the values of a metric transfer to other data.

    >>> transferability_entry("edge_ec")["level"]
    'medium'
    """
    return next(
        entry
        for entry in load_guideline("practice")["transfer"]
        if entry["metric"] == metric_family(metric)
    )


def find_entry(entries: list[JsonObject], key: str, value: str, kind: str) -> JsonObject:
    """Return the entry whose ``key`` is ``value``."""
    return lookup({entry[key]: entry for entry in entries}, value, kind)


def troubleshooting_entry(name: str) -> JsonObject:
    """Return a row of the troubleshooting table."""
    return find_entry(load_guideline("practice")["trouble"], "name", name, "trouble")


def paper_choice(kind: str) -> JsonObject:
    """Return what the paper recommends for a kind of task."""
    return find_entry(load_guideline("explainers")["task"], "kind", kind, "kind of task")


def hierarchy_rank(explainer: str) -> int:
    """Return the rank in the paper's hierarchy; 5 if it is not listed, 6 if it is to be avoided.

    >>> hierarchy_rank("input_x_gradient"), hierarchy_rank("my_own"), hierarchy_rank("graphmask")
    (1, 5, 6)
    """
    if explainer in methods_to_avoid():
        return 6
    return next(
        (
            entry["rank"]
            for entry in load_guideline("explainers")["hierarchy"]
            if explainer in entry["explainers"]
        ),
        5,
    )


def methods_to_avoid() -> dict[str, JsonObject]:
    """Return the methods that the paper says to avoid, by name."""
    return {entry["explainer"]: entry for entry in load_guideline("explainers")["avoid"]}


def paper_table() -> "pd.DataFrame":
    """Return the paper's benchmark: task (a kind), explainer, metric, mean, sd, n (unknown)."""
    import pandas as pd

    from graphgauge.evaluation import published_table

    rows = [(kind, *names, *cell, None) for (kind, *names), cell in published_table().items()]
    return rename_edges_to_links(
        pd.DataFrame(rows, columns=["task", "explainer", "metric", "mean", "sd", "n"])
    )


def shipped_benchmark() -> "pd.DataFrame":
    """Return the summary of our own benchmark, in the columns of `paper_table`."""
    import pandas as pd

    with (_DATA_FOLDER / BENCHMARK_FILE).open(encoding="utf-8") as file:
        return rename_edges_to_links(pd.read_csv(file))


def rename_edges_to_links(summary: "pd.DataFrame") -> "pd.DataFrame":
    """Rename edge tasks to link tasks, as the guidelines call them.

    The paper's tables, and ours in the same layout, say edge.
    """
    names = {kind.replace("link_", "edge_"): kind for kind in TASK_KINDS}
    return summary.assign(task=[names.get(task, task) for task in summary["task"]])
