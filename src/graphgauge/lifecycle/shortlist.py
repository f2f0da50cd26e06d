"""The shortlist: which explainers are worth measuring on one's own data, according to a benchmark.

    1. the benchmark's recommendation for the kind of task
    2. the explainers that miss no threshold there, in the order of the paper's hierarchy

The use counts here (stakes, latency, focus). One's own limits and number of features do not,
because they apply to one's own numbers. Benchmarks have no graph tasks; node tasks of the same kind
stand in for them, and the source says so. Where the project names its explainers, its list replaces
the shortlist, and no benchmark is consulted.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from graphgauge.core import FAIL, JsonObject
from graphgauge.guidelines import Recommendation, Requirements, consult, shipped_benchmark, verdicts

_SHORTLIST_SIZE = 3  #: explainers on a shortlist
PROJECT_LIST = "the project's own list"  #: the source where the project names its explainers


@dataclass(frozen=True)
class Shortlist:
    """Names of explainers, best first, and where they come from."""

    names: tuple[str, ...]
    kind: str
    source: str
    reason: str

    def record(self) -> JsonObject:
        """Return the shortlist as plain data."""
        return {**vars(self), "names": list(self.names)}


def build_shortlist(
    kind: str, requirements: Requirements | None = None, size: int = _SHORTLIST_SIZE
) -> Shortlist:
    """List ``size`` explainers for a kind of task; those that miss a threshold there come last.

    Args:
        kind: Such as "node_classification".
        requirements: Stakes, latency and focus of the use.
        size: How many explainers to list.
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
    """List the explainers that the project names, in its order, instead of a shortlist."""
    return Shortlist(
        tuple(names), kind, PROJECT_LIST, "the project names them, so no benchmark was asked"
    )


def describe_shortlist(record: JsonObject) -> tuple[str, str]:
    """Describe the list of a decision: its title, then its content.

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
    """Return the kind of task that stands in for another one in a benchmark.

    >>> benchmark_kind("graph_regression"), benchmark_kind("link_regression")
    ('node_regression', 'link_regression')
    """
    return kind.replace("graph_", "node_")


def _describe_source(found: Recommendation, kind: str, asked: str) -> str:
    """Describe where the shortlist comes from."""
    return (
        found.source
        if kind == asked
        else f"{found.source}; it has no graph tasks, so {asked.replace('_', ' ')} stands in"
    )


def _explainers_below_threshold(kind: str, wanted: Requirements) -> set[str]:
    """Return the explainers that fail a verdict in the benchmark's own numbers."""
    table = shipped_benchmark()
    return {
        verdict.explainer
        for verdict in verdicts(table[table["task"] == kind], wanted)
        if verdict.outcome == FAIL
    }
