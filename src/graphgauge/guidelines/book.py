"""The paper's guidelines as data, and what chance reaches; read once from the files in ``data/``.

    thresholds.toml   table of thresholds for each kind of task; bands of stability and pertinence; latency by use
    explainers.toml   hierarchy, methods to avoid, choices for each kind of task
    practice.toml     sample sizes, transferability, early stopping, phases, troubleshooting, checklist
    chance.toml       ours: what random rankings and untrained masks score
    benchmark.csv     our benchmark (benchmarks/paper): task, explainer, metric, mean, sd, n

Every entry of the paper's has ``where``: the part of the appendix it stands in.
"""

import sys
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from graphgauge.core.registry import lookup

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    import pandas as pd

DATA = files("graphgauge.guidelines") / "data"
KINDS = ("node_classification", "node_regression", "link_classification", "link_regression")
BENCHMARK = "benchmark.csv"


@cache
def guide(name: str) -> dict[str, Any]:
    """One file of the guidelines: "thresholds", "explainers", "practice" or "chance"."""
    return tomllib.loads((DATA / f"{name}.toml").read_text(encoding="utf-8"))


def threshold_entry(metric: str) -> dict[str, Any]:
    """The line of the table of thresholds for a metric, or for its twin.

    >>> threshold_entry("edge_pertinence_tied")["link_regression"]
    0.6
    """
    return lookup(
        {entry["metric"]: entry for entry in guide("thresholds")["threshold"]},
        metric.removesuffix("_tied"),
        "metric",
    )


def band(family: str, value: float) -> dict[str, Any]:
    """The band of "stability" or "pertinence" that a value lies in.

    >>> band("stability", 0.95)["name"], band("pertinence", 0.7)["name"]
    ('high', 'moderate')
    """
    return next(entry for entry in guide("thresholds")[family]["band"] if is_inside(entry, value))


def is_inside(entry: dict[str, Any], value: float) -> bool:
    """Whether a value lies in a band."""
    endless = float("inf")
    return (
        entry.get("least", -endless) <= value <= entry.get("most", endless)
        and entry.get("above", -endless) < value < entry.get("below", endless)
    )  # fmt: skip


def family_of(metric: str) -> str:
    """What kind of number a metric is: "stability", "pertinence", "ec", "time".

    >>> family_of("feature_pertinence_tied"), family_of("time")
    ('pertinence', 'time')
    """
    plain = metric.removeprefix("feature_").removeprefix("edge_")
    return lookup(
        {"stability": "stability", "pertinence": "pertinence", "ec": "ec", "time": "time"},
        plain.split("_")[0],
        "metric",
    )


def transfer(metric: str) -> dict[str, Any]:
    """How far a metric's numbers travel to other data.

    >>> transfer("edge_ec")["level"]
    'medium'
    """
    return next(
        entry for entry in guide("practice")["transfer"] if entry["metric"] == family_of(metric)
    )


def named(entries: list[dict[str, Any]], key: str, value: str, kind: str) -> dict[str, Any]:
    """The entry whose ``key`` is ``value``."""
    return lookup({entry[key]: entry for entry in entries}, value, kind)


def trouble(name: str) -> dict[str, Any]:
    """A line of the troubleshooting table."""
    return named(guide("practice")["trouble"], "name", name, "trouble")


def paper_choice(kind: str) -> dict[str, Any]:
    """What the paper recommends for a kind of task."""
    return named(guide("explainers")["task"], "kind", kind, "kind of task")


def rank_of(explainer: str) -> int:
    """Place in the paper's hierarchy; 5: it is not in it; 6: to be avoided.

    >>> rank_of("input_x_gradient"), rank_of("my_own"), rank_of("graphmask")
    (1, 5, 6)
    """
    if explainer in avoided():
        return 6
    return next(
        (
            entry["rank"]
            for entry in guide("explainers")["hierarchy"]
            if explainer in entry["explainers"]
        ),
        5,
    )


def avoided() -> dict[str, dict[str, Any]]:
    """The methods that the paper says to avoid."""
    return {entry["explainer"]: entry for entry in guide("explainers")["avoid"]}


def paper_table() -> "pd.DataFrame":
    """The paper's benchmark as a summary: columns task (a kind), explainer, metric, mean, sd, n
    (not told).
    """
    import pandas as pd

    from graphgauge.evaluation.published import published_table

    rows = [(kind, *names, *cell, None) for (kind, *names), cell in published_table().items()]
    return edges_as_links(
        pd.DataFrame(rows, columns=["task", "explainer", "metric", "mean", "sd", "n"])
    )


def shipped_benchmark() -> "pd.DataFrame":
    """Our own benchmark's summary, in the same columns."""
    import pandas as pd

    with (DATA / BENCHMARK).open(encoding="utf-8") as file:
        return edges_as_links(pd.read_csv(file))


def edges_as_links(summary: "pd.DataFrame") -> "pd.DataFrame":
    """A summary whose kinds are named as here: the paper's tables, and ours in its layout, call
    links edges.
    """
    names = {kind.replace("link_", "edge_"): kind for kind in KINDS}
    return summary.assign(task=[names.get(task, task) for task in summary["task"]])
