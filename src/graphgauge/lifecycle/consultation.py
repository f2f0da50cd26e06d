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

from graphgauge.core.verdicts import FAIL
from graphgauge.guidelines import Recommendation, Requirements, consult, shipped_benchmark, verdicts

SIZE = 3  #: explainers on a shortlist
NAMED = "the project's own list"  #: the source where the project names its explainers


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


def shortlist(kind: str, requirements: Requirements | None = None, size: int = SIZE) -> Shortlist:
    """``size`` explainers for a kind of task such as "node_classification"; who misses a threshold
    there comes last.
    """
    asked = stand_in(kind)
    wanted = replace(
        requirements or Requirements(),
        task_kind=asked,
        num_features=None,
        num_edges=None,
        limits={},
    )
    found = consult(asked, wanted)
    missing = missing_a_threshold(asked, wanted)
    others = sorted(found.others, key=lambda name: name in missing)
    return Shortlist(
        (found.chosen, *others[: size - 1]), kind, told_source(found, kind, asked), found.reason
    )


def own_list(names: Iterable[str], kind: str) -> Shortlist:
    """The explainers that the project names, in its order, in the place of a shortlist."""
    return Shortlist(tuple(names), kind, NAMED, "the project names them, so no benchmark was asked")


def told_list(record: Mapping[str, Any]) -> tuple[str, str]:
    """What the list of a decision is, and what is on it.

    >>> told_list(own_list(["lrp", "saliency"], "node_regression").record())
    ('explainers', "lrp, saliency (the project's own list)")
    >>> told_list({"names": ["lrp"], "source": "the shipped benchmark"})
    ('shortlist', 'lrp (from the shipped benchmark)')
    """
    source, names = record.get("source", ""), ", ".join(record.get("names", []))
    return (
        ("explainers", f"{names} ({source})")
        if source == NAMED
        else ("shortlist", f"{names} (from {source})")
    )


def stand_in(kind: str) -> str:
    """The kind of task that a benchmark has.

    >>> stand_in("graph_regression"), stand_in("link_regression")
    ('node_regression', 'link_regression')
    """
    return kind.replace("graph_", "node_")


def told_source(found: Recommendation, kind: str, asked: str) -> str:
    """Where the shortlist comes from."""
    return (
        found.source
        if kind == asked
        else f"{found.source}; it has no graph tasks, so {asked.replace('_', ' ')} stands in"
    )


def missing_a_threshold(kind: str, wanted: Requirements) -> set[str]:
    """Explainers that fail in the benchmark's own numbers."""
    table = shipped_benchmark()
    return {
        verdict.explainer
        for verdict in verdicts(table[table["task"] == kind], wanted)
        if verdict.outcome == FAIL
    }
