"""Every choice that moves a number, in one place; recorded with every result.

The paper leaves many of them open. `PRESETS["paper"]` holds the readings that fit its published
numbers best, `PRESETS["calibrated"]` those under which a number means what it says (a random
ranking scores 1/2, a p-value is one).
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Literal, TypeAlias, get_args

from typing_extensions import TypedDict, Unpack

from graphgauge.core import BadSetting, JsonObject, UnknownName, blake2b_hex, lookup
from graphgauge.metrics import CurveSide, is_valid_top

Preset: TypeAlias = Literal["paper", "calibrated"]
Sides: TypeAlias = Literal["both", "edges", "features"]
EdgeRemoval: TypeAlias = Literal["mask", "drop"]
EdgeScope: TypeAlias = Literal["messages", "induced"]
RemovalUnit: TypeAlias = Literal["directed", "undirected"]
Order: TypeAlias = Literal["signed", "magnitude"]
Direction: TypeAlias = Literal["paper", "any", "down", "up", "towards_reference"]
RegressionCurve: TypeAlias = Literal["raw", "towards", "abs"]
Pooling: TypeAlias = Literal["max", "sum", "mean", "abs_max"]
FlipUnit: TypeAlias = Literal["sd", "absolute"]
RandomOrders: TypeAlias = Literal["candidates", "blocks"]
EarlyStop: TypeAlias = Literal["paper", "betting", "none"]
StabilityForm: TypeAlias = Literal["pairs", "binomial", "none"]
Headline: TypeAlias = Literal["paper", "twins"]

_CHOICES: dict[str, tuple[str, ...]] = {
    "sides": get_args(Sides),
    "edge_removal": get_args(EdgeRemoval),
    "edge_scope": get_args(EdgeScope),
    "removal_unit": get_args(RemovalUnit),
    "order": get_args(Order),
    "direction": get_args(Direction),
    "regression_curve": get_args(RegressionCurve),
    "pooling": get_args(Pooling),
    "random_orders": get_args(RandomOrders),
    "flip_unit": get_args(FlipUnit),
    "early_stop": get_args(EarlyStop),
    "stability": get_args(StabilityForm),
    "headline": get_args(Headline),
}
#: settings that are newer than the first stored runs, and the value that these runs had; a record
#: leaves such a value out, so that the digests of stored runs stay the same
_VALUES_OF_OLD_RECORDS: JsonObject = {"flip_unit": "sd"}
#: directions that order, curve and EC of values follow together
_DIRECTIONS = ("any", "down", "up", "towards_reference")


class SettingChanges(TypedDict, total=False):
    """Settings by name, as `Evaluator` takes them; `Settings` says what each of them means."""

    sides: Sides
    edge_removal: EdgeRemoval
    edge_scope: EdgeScope
    removal_unit: RemovalUnit
    order: Order
    cap: int
    flip: float
    flip_unit: FlipUnit
    tolerance: float
    direction: Direction
    regression_curve: RegressionCurve
    pooling: Pooling
    medoids: int
    draws: int
    random_orders: RandomOrders
    trials: tuple[int, int]
    early_stop: EarlyStop
    tau: float | None
    epsilon: float
    twins: bool
    twin_trials: int
    feature_trials: int
    stability: StabilityForm
    calls: int
    permutations: int
    timed: int
    extras: bool
    top: int | float
    headline: Headline
    keep: int | Literal["all"]


@dataclass(frozen=True)
class Settings:
    """Every setting of an evaluation; the defaults are those of the preset "paper".

    Args:
        sides: What curves are drawn for: "both", "edges" or "features".
        edge_removal: "mask" multiplies the messages of an edge by 0, and normalisation stays as it
            is; "drop" takes the edge out of the graph.
        edge_scope: "messages": edges that can carry a message to the target; "induced": all edges
            among the nodes within reach.
        removal_unit: "directed": one edge; "undirected": both directions go together.
        order: "signed": highest score first; "magnitude": largest absolute score first.
        cap: The largest number of edits.
        flip: A value has changed when it moved by more than this. Of regression only. The paper
            does not give its threshold; 0.1 in the unit of the values is inferred.
        flip_unit: The unit of ``flip``: "sd", standard deviations of the predictions; "absolute",
            the unit of the predictions themselves, such as euros.
        tolerance: Smaller differences are ties; of a probability, or of the SD of predictions.
        direction: Of regression: which way edits are to move values, in order, curve and EC alike;
            "paper": as ``regression_curve`` says.
        regression_curve: "raw" values, "towards" the reference, or "abs": change either way.
        pooling: How the scores of neighbours' features become one score.
        medoids: Candidate references per class; of several, the easiest one is used, judged by
            random curves of its own.
        draws: Maps between neighbours that are drawn for each reference; EC is the mean over them.
        random_orders: Random orders of the paper's comparison: of all "candidates", or "blocks":
            those of the calibrated forms, where there are any.
        trials: Least and most random curves, or pairs of explanations.
        early_stop: "paper": the paper's rule; "betting": a valid test; "none".
        tau: Stop when the mean is on one side of it; None: never for that reason.
        epsilon: Stop when the mean is known to within it.
        twins: Whether the calibrated numbers are measured beside the paper's.
        twin_trials: Random curves of the calibrated forms, never stopped early.
        feature_trials: The same for features, where each explanation has random curves of its own.
        stability: "pairs" of explanations; "binomial": all pairs of ``calls`` explanations; "none".
        calls: Explanations of the binomial form.
        permutations: Permutations for the stability that chance reaches.
        timed: Targets that are explained alone, for the metric ``time``.
        extras: Whether fidelity, its areas, characterization, unfaithfulness, sparsity, deletion
            and insertion AUC are measured.
        top: Edits that fidelity makes, and scores that a known truth is compared with; below 1: a
            share of the candidates.
        headline: Which numbers a summary shows first: the "paper"'s, or their "twins".
        keep: Scores a side of the explanations that a saved run keeps, or "all".

    Raises:
        BadSetting: If a value is not possible; the message names all that are not.

    >>> Settings(cap=50).curve_sides
    ('edge', 'feature')
    """

    sides: Sides = "both"
    edge_removal: EdgeRemoval = "mask"
    edge_scope: EdgeScope = "messages"
    removal_unit: RemovalUnit = "directed"
    order: Order = "signed"
    cap: int = 100
    flip: float = 0.1
    flip_unit: FlipUnit = "absolute"
    tolerance: float = 1e-6
    direction: Direction = "paper"
    regression_curve: RegressionCurve = "raw"
    pooling: Pooling = "max"
    medoids: int = 1
    draws: int = 1
    random_orders: RandomOrders = "candidates"
    trials: tuple[int, int] = (30, 100)
    early_stop: EarlyStop = "paper"
    tau: float | None = 0.5
    epsilon: float = 0.05
    twins: bool = True
    twin_trials: int = 30
    feature_trials: int = 19
    stability: StabilityForm = "pairs"
    calls: int = 15
    permutations: int = 20
    timed: int = 5
    extras: bool = False
    top: int | float = 10
    headline: Headline = "paper"
    keep: int | Literal["all"] = 100

    def __post_init__(self) -> None:
        problems = [
            problem
            for problem in map(self.problem_with, (field.name for field in fields(self)))
            if problem
        ]
        if self.direction in _DIRECTIONS and self.regression_curve != "raw":
            problems.append(
                f"direction={self.direction!r} decides what a curve of values is; for "
                f"regression_curve={self.regression_curve!r} set direction='paper', too"
            )
        if problems:
            raise BadSetting("; ".join(problems) + ".")

    def problem_with(self, name: str) -> str:
        """What is wrong with one setting; '' if nothing is."""
        value = getattr(self, name)
        is_fine, expected = _check_setting(name, value)
        if is_fine:
            return ""
        found = f"{value!r} was given" if name in _CHOICES else f"is {value!r}"
        return f"{name} must be {expected}, but {found}"

    def trials_of(self, side: str) -> int:
        """How many random curves the twins of a side use."""
        return self.feature_trials if side == "feature" else self.twin_trials

    @property
    def curve_sides(self) -> tuple[CurveSide, ...]:
        """The sides that curves are drawn for, as metrics call them."""
        sides: dict[str, tuple[CurveSide, ...]] = {
            "both": ("edge", "feature"),
            "edges": ("edge",),
            "features": ("feature",),
        }
        return sides[self.sides]

    def to_dict(self) -> JsonObject:
        """Every setting by name, as plain data."""
        return {**asdict(self), "trials": list(self.trials)}

    def record(self) -> JsonObject:
        """What is stored with results; `from_record` reads it.

        A setting that is newer than the first stored runs is left out where it has the value that
        these runs had. So their records and digests stay the same.

        >>> "flip_unit" in settings_from_preset("paper").record()
        True
        >>> "flip_unit" in settings_from_preset("calibrated").record()
        False
        """
        return {
            name: value
            for name, value in self.to_dict().items()
            if value != _VALUES_OF_OLD_RECORDS.get(name, ...)
        }

    @classmethod
    def from_record(cls, record: JsonObject) -> "Settings":
        """Read what `record` wrote, in this version or an earlier one.

        Args:
            record: The settings of stored results. Where it says nothing about a setting that is
                newer than it, the setting has the value that it had then: without ``flip_unit``,
                ``flip`` counts standard deviations. Other settings that it leaves out have their
                default.

        Raises:
            TypeError: If a setting is not known.
            LookupError: If there are no ``trials``.
            BadSetting: If a value is not possible.

        >>> old = {"flip": 0.2, "trials": [30, 100]}
        >>> Settings.from_record(old).flip_unit
        'sd'
        """
        return cls(**{**_VALUES_OF_OLD_RECORDS, **record, "trials": tuple(record["trials"])})

    @cached_property
    def digest(self) -> str:
        """A short name of exactly these settings."""
        return blake2b_hex(json.dumps(self.record(), sort_keys=True), size=6)


def _check_setting(name: str, value: object) -> tuple[bool, str]:
    """Whether a setting has a value that it can have, and what it must be, as a text."""
    if name in _CHOICES:
        known = ", ".join(map(repr, _CHOICES[name]))
        return value in _CHOICES[name], f"one of {known}"
    if name == "trials":
        is_pair = (
            isinstance(value, (tuple, list))
            and len(value) == 2
            and all(_is_count(item, 1) for item in value)
        )
        return (
            is_pair and value[0] <= value[1],  # type: ignore[index]
            "(least, most) with 1 <= least <= most",
        )
    if name == "keep":
        return value == "all" or _is_count(value, 1), "'all' or a number of scores"
    if name in ("twins", "extras"):
        return isinstance(value, bool), "True or False"
    if name == "tau":
        return value is None or _is_nonnegative_number(value), "a number or None"
    if name in ("flip", "tolerance", "epsilon"):
        return _is_nonnegative_number(value), "a number, 0 or more"
    if name == "top":
        return is_valid_top(value), "a whole number, 1 or more, or a share between 0 and 1"
    least = {"calls": 3, "timed": 0}.get(name, 1)
    return _is_count(value, least), f"a whole number, {least} or more"


def _is_count(value: object, least: int) -> bool:
    """Whether a value is a whole number, ``least`` or more."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_nonnegative_number(value: object) -> bool:
    """Whether a value is a finite number, 0 or more."""
    return (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and 0 <= value < float("inf")
    )


PRESETS: dict[str, Settings] = {
    "paper": Settings(),
    "calibrated": Settings(
        flip=0.2,
        flip_unit="sd",
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
            f"No settings are called {', '.join(map(repr, unknown))}. "
            f"Known: {', '.join(sorted(known))}."
        )
    for name in unknown:
        lookup(known, name, "setting")


def settings_from_preset(preset: str, **changed: Unpack[SettingChanges]) -> Settings:
    """A preset with some settings changed.

    Args:
        preset: "paper" or "calibrated".
        changed: Settings by name; see `Settings`.

    Raises:
        UnknownName: If the preset or a setting does not exist; all wrong names are told at once.
        BadSetting: If a value is not possible.

    >>> settings_from_preset("paper", cap=50).cap
    50
    """
    base = lookup(PRESETS, preset, "preset")
    _check_setting_names(changed)
    changes: JsonObject = dict(changed)
    if isinstance(changes.get("trials"), list):  # as YAML and JSON write it
        changes["trials"] = tuple(changes["trials"])
    return replace(base, **changes)
