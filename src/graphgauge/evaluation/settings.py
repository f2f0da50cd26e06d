"""Every choice that moves a number, in one place; recorded with every result.

The paper leaves many of them open. `PRESETS["paper"]` holds the readings that fit its published
numbers best, `PRESETS["calibrated"]` those under which a number means what it says (a random
ranking scores 1/2, a p-value is one).
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from graphgauge.core import POOLINGS, BadSetting, UnknownName, blake2b_hex, lookup
from graphgauge.metrics import is_valid_top

_CHOICES = {
    "sides": ("both", "edges", "features"),
    "edge_removal": ("mask", "drop"),
    "edge_scope": ("messages", "induced"),
    "removal_unit": ("directed", "undirected"),
    "order": ("signed", "magnitude"),
    "direction": ("paper", "any", "down", "up", "towards_reference"),
    "regression_curve": ("raw", "towards", "abs"),
    "pooling": tuple(POOLINGS),
    "random_orders": ("candidates", "blocks"),
    "early_stop": ("paper", "betting", "none"),
    "stability": ("pairs", "binomial", "none"),
    "headline": ("paper", "twins"),
}


_DIRECTIONS = (
    "any",
    "down",
    "up",
    "towards_reference",
)  #: that order, curve and EC of values follow together


def _is_count(value: Any, least: int) -> bool:
    """Whether a value is a whole number, ``least`` or more."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_nonnegative_number(value: Any) -> bool:
    """Whether a value is a finite number, 0 or more."""
    return (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and 0 <= value < float("inf")
    )


@dataclass(frozen=True)
class Settings:
    """The defaults are the paper's."""

    sides: str = "both"  #: what curves are drawn for; or "edges", or "features"
    edge_removal: str = "mask"  #: "mask": messages times 0; "drop": the edge leaves the graph
    edge_scope: str = "messages"  #: or "induced": all edges among the nodes within reach
    removal_unit: str = "directed"  #: or "undirected": both directions go together
    order: str = "signed"  #: highest score first; or "magnitude"
    cap: int = 100  #: most edits
    #: a value has changed when it moved by more than this many SD of predictions (inferred, not in
    #: the paper)
    flip: float = 0.2
    tolerance: float = (
        1e-6  #: smaller differences are ties; of a probability, or of the SD of predictions
    )
    #: of values: which way edits are to move them, in order, curve and EC alike; "paper": as the
    #: next says
    direction: str = "paper"
    regression_curve: str = "raw"  #: or "towards" (the reference), or "abs" (change either way)
    pooling: str = "max"  #: of the neighbours' feature scores
    #: candidate references per class; of several, the easiest under separate random curves is used
    medoids: int = 1
    draws: int = (
        1  #: maps between neighbours drawn for each reference; the EC is the mean over them
    )
    #: of the paper's comparison: of all candidates; or "blocks": those of the twins, where there
    #: are twins
    random_orders: str = "candidates"
    trials: tuple[int, int] = (30, 100)  #: least and most random curves, or pairs of explanations
    early_stop: str = "paper"  #: or "betting" (a valid test), or "none"
    tau: float | None = 0.5  #: stop when the mean is on one side of it; None: never for that reason
    epsilon: float = 0.05  #: stop when the mean is known to within it
    twins: bool = True  #: the calibrated numbers beside the paper's
    twin_trials: int = 30  #: random curves the twins use, never early stopped
    feature_trials: int = (
        19  #: likewise on the side of features, where each explanation has random curves of its own
    )
    stability: str = (
        "pairs"  #: or "binomial": all pairs of ``calls`` explanations; or "none": not measured
    )
    calls: int = 15
    permutations: int = 20  #: for the stability that chance reaches
    timed: int = 5  #: targets explained alone for `time`
    #: fidelity, its areas, characterization, unfaithfulness, sparsity, deletion and insertion AUC
    extras: bool = False
    top: int | float = (
        #: edits that fidelity makes, and how many scores a known truth is compared with; below 1: a
        #: share
        10
    )
    headline: str = "paper"  #: which numbers a summary shows first
    keep: int | str = 100  #: scores a side of the explanations that a saved run keeps, or "all"

    def __post_init__(self) -> None:
        problems = [
            problem
            for problem in map(self.problem_with, (field.name for field in fields(self)))
            if problem
        ]
        if self.direction in _DIRECTIONS and self.regression_curve != "raw":
            problems.append(
                f"direction={self.direction!r} decides what a curve of values is; for regression_curve={self.regression_curve!r} "
                "set direction='paper', too"
            )
        if problems:
            raise BadSetting("; ".join(problems) + ".")

    def problem_with(self, name: str) -> str:
        """What is wrong with one setting; '' if nothing is."""
        value = getattr(self, name)
        if name in _CHOICES:
            known = ", ".join(map(repr, _CHOICES[name]))
            return (
                ""
                if value in _CHOICES[name]
                else f"{name} must be one of {known}, but {value!r} was given"
            )
        if name == "trials":
            is_pair = (
                isinstance(value, (tuple, list))
                and len(value) == 2
                and all(_is_count(item, 1) for item in value)
            )
            return (
                ""
                if is_pair and value[0] <= value[1]
                else f"trials must be (least, most) with 1 <= least <= most, but is {value!r}"
            )
        if name == "keep":
            return (
                ""
                if value == "all" or _is_count(value, 1)
                else f"keep must be 'all' or a number of scores, but is {value!r}"
            )
        if name in ("twins", "extras"):
            return (
                "" if isinstance(value, bool) else f"{name} must be True or False, but is {value!r}"
            )
        if name == "tau":
            return (
                ""
                if value is None or _is_nonnegative_number(value)
                else f"tau must be a number or None, but is {value!r}"
            )
        if name in ("flip", "tolerance", "epsilon"):
            return (
                ""
                if _is_nonnegative_number(value)
                else f"{name} must be a number, 0 or more, but is {value!r}"
            )
        if name == "top":
            return (
                ""
                if is_valid_top(value)
                else f"top must be a whole number, 1 or more, or a share between 0 and 1, but is {value!r}"
            )
        least = {"calls": 3, "timed": 0}.get(name, 1)
        return (
            ""
            if _is_count(value, least)
            else f"{name} must be a whole number, {least} or more, but is {value!r}"
        )

    def trials_of(self, side: str) -> int:
        """How many random curves the twins of a side use."""
        return self.feature_trials if side == "feature" else self.twin_trials

    @property
    def curve_sides(self) -> tuple[str, ...]:
        """The sides that curves are drawn for, as metrics call them."""
        return {"both": ("edge", "feature"), "edges": ("edge",), "features": ("feature",)}[
            self.sides
        ]

    def record(self) -> dict[str, Any]:
        """As plain data."""
        return {**asdict(self), "trials": list(self.trials)}

    @property
    def digest(self) -> str:
        """A short name of exactly these settings."""
        return blake2b_hex(json.dumps(self.record(), sort_keys=True), size=6)


PRESETS = {
    "paper": Settings(),
    "calibrated": Settings(
        trials=(100, 100),
        early_stop="none",
        twin_trials=100,
        feature_trials=39,
        direction="any",
        random_orders="blocks",
        draws=5,
        pooling="sum",
        medoids=3,
        stability="binomial",
        headline="twins",
    ),
}


def _check_setting_names(given: Iterable[str]) -> None:
    """Refuse names that are no settings, all at once."""
    known = {field.name: None for field in fields(Settings)}
    unknown = [name for name in given if name not in known]
    if len(unknown) > 1:
        raise UnknownName(
            f"No settings are called {', '.join(map(repr, unknown))}. Known: {', '.join(sorted(known))}."
        )
    for name in unknown:
        lookup(known, name, "setting")


def settings_from_preset(preset: str, **changed: Any) -> Settings:
    """A preset with some settings changed; refuses unknown names, all at once.

    >>> settings_from_preset("paper", cap=50).cap
    50
    """
    base = lookup(PRESETS, preset, "preset")
    _check_setting_names(changed)
    if isinstance(changed.get("trials"), list):
        changed["trials"] = tuple(changed["trials"])
    return replace(base, **changed)
