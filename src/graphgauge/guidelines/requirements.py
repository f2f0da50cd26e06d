"""What a use requires of explanations: kind of task, stakes, latency, and limits of its own."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from graphgauge.core import BadSetting, JsonObject
from graphgauge.guidelines.reference_data import TASK_KINDS, load_guideline
from graphgauge.metrics import MetricName

STAKES = ("standard", "high-stakes")
LATENCIES = ("interactive", "batch", "offline")
LEAST_EDITS = 1  #: of any explanation; ours, the paper's shares of few features fall below it
#: judged by the bands; the paper's table has no column for them
GRAPH_KINDS = ("graph_classification", "graph_regression")


@dataclass(frozen=True)
class Requirements:
    """Requirements on explanations. The defaults are the paper's table of thresholds.

    Args:
        task_kind: Such as "node_classification" or "node-classification"; None: inferred from the
            rows (pairs of nodes are links, and |change| is measured for values only).
        stakes: "standard" or "high-stakes", where stability below 0.95 is a warning. Stability
            below 0.80 always fails.
        latency: "interactive" (100-300 ms), "batch" or "offline"; None: the table's 5 s.
        num_features: Number of features of the data; feature limits are shares of it, and at least
            1 edit.
        num_edges: Number of edges of a typical computation graph, for a limit such as
            ``{"edge_ec": "25%"}``.
        focus: "feature" or "edge": judge only that side (and time); None: both.
        is_difficult: Whether pertinence of 0.5 to 0.6 is a warning instead of a failure.
        limits: Thresholds by metric that replace the table's: numbers, or shares such as "10%",
            which are at least 1 edit.
        baseline: Name of the explainer in the run that stands for chance.

    Raises:
        BadSetting: A value is not one of the choices, or a limit is not a number.

    >>> Requirements(latency="batch", limits={"edge_ec": 12}).limit("edge_ec")
    12.0
    """

    task_kind: str | None = None
    stakes: str = "standard"
    latency: str | None = None
    num_features: int | None = None
    num_edges: int | None = None
    focus: str | None = None
    is_difficult: bool = False
    limits: Mapping[str, float | str] = field(default_factory=dict)
    baseline: str = "random"  #: the explainer in the run that stands for chance

    def __post_init__(self) -> None:
        if isinstance(self.task_kind, str):
            object.__setattr__(self, "task_kind", self.task_kind.replace("-", "_"))
        problems = [*self.wrong_choices(), *self.wrong_sizes(), *self.wrong_limits()]
        if problems:
            raise BadSetting("; ".join(problems) + ".")

    def wrong_choices(self) -> list[str]:
        """List settings whose value is not one of the choices."""
        known = {
            "task_kind": (None, *TASK_KINDS, *GRAPH_KINDS),
            "stakes": STAKES,
            "latency": (None, *LATENCIES),
        }
        known["focus"] = (None, "feature", "edge")
        return [
            f"{name} must be one of {', '.join(map(repr, filter(None, choices)))}, "
            f"but {getattr(self, name)!r} was given"
            for name, choices in known.items()
            if getattr(self, name) not in choices
        ]

    def wrong_sizes(self) -> list[str]:
        """List counts that are not positive whole numbers."""
        sizes = {name: getattr(self, name) for name in ("num_features", "num_edges")}
        return [
            f"{name} must be a whole number, 1 or more, but is {size!r}"
            for name, size in sizes.items()
            if size is not None
            and (not isinstance(size, int) or isinstance(size, bool) or size < 1)
        ]

    def wrong_limits(self) -> list[str]:
        """List limits of metrics that are not judged, and limits that are not numbers."""
        known = [entry["metric"] for entry in load_guideline("thresholds")["threshold"]]
        unknown = [
            f"limits names {name!r}, but judged are {', '.join(known)}"
            for name in self.limits
            if name not in known
        ]
        return [
            *unknown,
            *(
                problem
                for name, limit in self.limits.items()
                if (problem := _limit_problem(name, limit))
            ),
        ]

    def limit(self, metric: str) -> float | None:
        """Return the user's own threshold of a metric; None if there is none."""
        name = MetricName.parse(metric)
        given = self.limits.get(str(name.as_paper()))
        if given is None or not isinstance(given, str):
            return None if given is None else float(given)
        size = self.num_edges if name.side == "edge" else self.num_features
        if size is None:
            side = "num_edges" if name.side == "edge" else "num_features"
            raise BadSetting(
                f"the limit {given!r} of {metric} is a share, but {side} is not given."
            )
        return edits_for_share(size, _parse_percentage(given))

    def record(self) -> JsonObject:
        """Return the requirements as plain data."""
        return {item.name: getattr(self, item.name) for item in fields(self)} | {
            "limits": dict(self.limits)
        }


def _parse_percentage(text: str) -> float:
    """Parse a share that is written with a percent sign.

    >>> _parse_percentage("12.5%")
    0.125
    """
    number = float(text.removesuffix("%"))
    if not text.endswith("%") or not 0 <= number < float("inf"):
        raise ValueError(text)
    return number / 100


def edits_for_share(size: int, share: float) -> float:
    """Turn a share of the features or edges into edits; at least one, as no explanation needs less.

    >>> edits_for_share(200, 0.1), edits_for_share(16, 0.1), edits_for_share(7, 0.1)
    (20.0, 1.6, 1.0)
    """
    # 0.2 * 3 is 0.6, not 0.6000000000000001
    return max(float(LEAST_EDITS), round(share * size, 12))


def _limit_problem(name: str, limit: Any) -> str:
    """Return what is wrong with a limit; '' if nothing is."""
    try:
        number = _parse_percentage(limit) if isinstance(limit, str) else float(limit)
    except (TypeError, ValueError):
        return f"the limit of {name} must be a number or a share such as '10%', but is {limit!r}"
    if isinstance(limit, str) and MetricName.parse(name).family != "ec":
        return (
            f"the limit of {name} must be a number: shares are for feature_ec and edge_ec, "
            f"but {limit!r} was given"
        )
    return (
        ""
        if 0 <= number < float("inf")
        else f"the limit of {name} must be 0 or more, but is {limit!r}"
    )
