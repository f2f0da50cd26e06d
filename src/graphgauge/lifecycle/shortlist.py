"""The shortlist: which explainers are worth measuring on data of one's own, from a benchmark.

    1. the benchmark's recommendation for the kind of task
    2. then those that miss no threshold there, in the order of the paper's hierarchy

The use counts here (stakes, latency, focus). One's own limits and number of features do not: they
are for one's own numbers. Benchmarks have no graph tasks; node tasks of the same sort stand in for
them, and the source says so. Where the project names its explainers, its list takes the place of
the shortlist and no benchmark is asked.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from graphgauge.core import FAIL
from graphgauge.guidelines import Recommendation, Requirements, consult, shipped_benchmark, verdicts

_SHORTLIST_SIZE = 3  #: explainers on a shortlist
PROJECT_LIST = "the project's own list"  #: the source where the project names its explainers


@dataclass(frozen=True)
class Shortlist:
    """The names, best first, and what they were taken from."""

    names: tuple[str, ...]
    kind: str
    source: str
    reason: str

    def record(self) -> dict[str, Any]:
        """As plain data."""
        return {**vars(self), "names": list(self.names)}


def build_shortlist(
    kind: str, requirements: Requirements | None = None, size: int = _SHORTLIST_SIZE
) -> Shortlist:
    """``size`` explainers for a kind of task such as "node_classification"; who misses a threshold
    there comes last.
    """
    asked = benchmark_kind(kind)
    wanted = replace(
        requirements or Requirements(),
        task_kind=asked,
        num_features=None,
        num_edges=None,
        limits={},
    )
    found = consult(asked, wanted)
    missing = _explainers_below_threshold(asked, wanted)
    others = sorted(found.others, key=lambda name: name in missing)
    return Shortlist(
        (found.chosen, *others[: size - 1]),
        kind,
        _describe_source(found, kind, asked),
        found.reason,
    )


def list_named_explainers(names: Iterable[str], kind: str) -> Shortlist:
    """The explainers that the project names, in its order, in the place of a shortlist."""
    return Shortlist(
        tuple(names), kind, PROJECT_LIST, "the project names them, so no benchmark was asked"
    )


def describe_shortlist(record: Mapping[str, Any]) -> tuple[str, str]:
    """What the list of a decision is, and what is on it.

    >>> describe_shortlist(list_named_explainers(["lrp", "saliency"], "node_regression").record())
    ('explainers', "lrp, saliency (the project's own list)")
    >>> describe_shortlist({"names": ["lrp"], "source": "the shipped benchmark"})
    ('shortlist', 'lrp (from the shipped benchmark)')
    """
    source, names = record.get("source", ""), ", ".join(record.get("names", []))
    return (
        ("explainers", f"{names} ({source})")
        if source == PROJECT_LIST
        else ("shortlist", f"{names} (from {source})")
    )


def benchmark_kind(kind: str) -> str:
    """The kind of task that a benchmark has.

    >>> benchmark_kind("graph_regression"), benchmark_kind("link_regression")
    ('node_regression', 'link_regression')
    """
    return kind.replace("graph_", "node_")


def _describe_source(found: Recommendation, kind: str, asked: str) -> str:
    """Where the shortlist comes from."""
    return (
        found.source
        if kind == asked
        else f"{found.source}; it has no graph tasks, so {asked.replace('_', ' ')} stands in"
    )


def _explainers_below_threshold(kind: str, wanted: Requirements) -> set[str]:
    """Explainers that fail in the benchmark's own numbers."""
    table = shipped_benchmark()
    return {
        verdict.explainer
        for verdict in verdicts(table[table["task"] == kind], wanted)
        if verdict.outcome == FAIL
    }
