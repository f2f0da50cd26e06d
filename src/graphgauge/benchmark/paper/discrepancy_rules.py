"""Likely reasons why a cell of our Table 1 differs from the paper's: rules as data.

A reason is *known* when it is a difference that acts on this very cell (another rule inside the
explainer, another setting, fewer runs), and only *possible* when it is a choice that the paper left
open or data that could not be had. Possible reasons are listed after the word "unexplained": they
have not been shown to be the cause.
"""

from dataclasses import dataclass

from graphgauge.core import JsonObject
from graphgauge.evaluation import PRESETS, Settings

_UNEXPLAINED = "unexplained"


@dataclass(frozen=True)
class _DiscrepancyRule:
    """A reason, and the cells on which it acts; an empty tuple stands for every method, kind or
    metric.
    """

    reason: str
    is_known: bool
    methods: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()  #: parts of the name of a kind
    metrics: tuple[str, ...] = ()  #: parts of the name of a metric
    unless: str = ""  #: part of a label to which it does not apply

    def applies(self, label: str, method: str, kind: str, metric: str) -> bool:
        """Whether the rule acts on a cell."""
        is_spared = bool(self.unless) and self.unless in label
        return (
            not is_spared
            and _matches_any(self.methods, method)
            and _matches_any(self.kinds, kind)
            and _matches_any(self.metrics, metric)
        )


def _matches_any(parts: tuple[str, ...], name: str) -> bool:
    """Whether one of the parts is in the name, or there are no parts."""
    return not parts or any(part in name for part in parts)


_CURVE_METRICS = ("pertinence", "ec")

_DISCREPANCY_RULES = (
    _DiscrepancyRule(
        "PyG's GraphMask never trains its feature mask, nor its gates where layers change their "
        "width; the paper's stability of "
        "0.96 is that of untrained masks. Ours is trained (variant='pyg' is not)",
        True,
        methods=("graphmask",),
        metrics=(*_CURVE_METRICS, "stability"),
        unless="pyg",
    ),
    _DiscrepancyRule(
        "the paper's SD only fits fewer runs than its other rows have: 3 of 4",
        True,
        ("graphmask",),
        ("node_regression",),
    ),
    _DiscrepancyRule(
        "the paper's SD only fits fewer runs than its other rows have: 2 of 4",
        True,
        ("graphmask",),
        ("edge_regression",),
    ),
    _DiscrepancyRule(
        "LRP-gamma conserves relevance; the paper most likely ran Captum's rule, which loses "
        "relevance (variant='captum')",
        True,
        methods=("lrp",),
        metrics=_CURVE_METRICS,
        unless="captum",
    ),
    _DiscrepancyRule(
        "Captum rectifies nn.ReLU modules only, so with LeakyReLU the paper's rows are plain "
        "gradients (variant='captum')",
        True,
        methods=("guided_backprop", "deconvolution"),
        kinds=("regression",),
        metrics=_CURVE_METRICS,
        unless="captum",
    ),
    _DiscrepancyRule(
        "times are those of another machine and of another implementation, measured after a "
        "warm-up",
        True,
        metrics=("time",),
    ),
    _DiscrepancyRule(
        "whether Saliency trails InputXGradient depends on explaining the probability or the "
        "logit, which the paper leaves open",
        False,
        methods=("saliency",),
        kinds=("classification",),
        metrics=("pertinence",),
    ),
    _DiscrepancyRule(
        "the direction in which a value's curve must fall is not given in the paper; raw values "
        "are compared",
        False,
        kinds=("regression",),
        metrics=("pertinence",),
    ),
    _DiscrepancyRule(
        "GitHub's 128 features are a stand-in, the original ones cannot be had",
        False,
        (),
        ("classification",),
        ("feature",),
    ),
    _DiscrepancyRule(
        "MovieLens' 404 features and Synthetic's labels are our reading of the paper's words",
        False,
        (),
        ("regression",),
        _CURVE_METRICS,
    ),
    _DiscrepancyRule(
        "the networks are our own, trained by the paper's grid", False, metrics=_CURVE_METRICS
    ),
)

#: how a threshold is given in each unit
_FLIP_UNITS = {"sd": "SD of the predictions", "absolute": "in the unit of the values"}
#: settings that move the paper's numbers; the threshold of flips is in `_flip_reason`
_INFLUENTIAL_SETTINGS = (
    "edge_removal",
    "edge_scope",
    "removal_unit",
    "order",
    "cap",
    "regression_curve",
    "pooling",
    "medoids",
)


def likely_reason(cell: JsonObject, settings: Settings) -> str:
    """What is known to make a cell differ; otherwise "unexplained", with what may make it differ.

    Args:
        cell: A row of the compared cells.
        settings: Settings of our results.
    """
    label, method, kind, metric = (
        str(cell[name]) for name in ("label", "explainer", "kind", "metric")
    )
    rules = [rule for rule in _DISCREPANCY_RULES if rule.applies(label, method, kind, metric)]
    known = [*_run_reasons(cell, settings), *(rule.reason for rule in rules if rule.is_known)]
    possible = "; ".join(
        [
            *_capping_reason(cell),
            *_flip_reason(kind, metric, settings),
            *(rule.reason for rule in rules if not rule.is_known),
        ]
    )
    if known:
        return "; ".join(known)
    return f"{_UNEXPLAINED}; possible: {possible}" if possible else _UNEXPLAINED


def _capping_reason(cell: JsonObject) -> list[str]:
    """What would change if targets that never flip counted as the cap, if that is nearer to the
    paper.
    """
    ours, capped, paper = (float(cell[name]) for name in ("ours", "ours_capped", "paper"))
    if not abs(capped - paper) < abs(ours - paper):
        return []
    return [
        "what never flips counts as many edits as there are, by the paper's formula; counted as "
        f"the cap, ours is {capped:.1f}"
    ]


def _flip_reason(kind: str, metric: str, settings: Settings) -> list[str]:
    """The flip threshold of regression, which the paper does not give."""
    if "regression" not in kind or not _matches_any(_CURVE_METRICS, metric):
        return []
    paper = PRESETS["paper"]
    is_preset = (settings.flip, settings.flip_unit) == (paper.flip, paper.flip_unit)
    own = "" if is_preset else f"; ours is {settings.flip:g} {_FLIP_UNITS[settings.flip_unit]}"
    return [
        "the change that counts as a flip of a value is not given in the paper; "
        f"{paper.flip:g} {_FLIP_UNITS[paper.flip_unit]} is inferred{own}"
    ]


def _run_reasons(cell: JsonObject, settings: Settings) -> list[str]:
    """Reasons in our own run: fewer runs than in the paper, other settings than the paper's."""
    has, needs = int(cell["configurations"]), int(cell["paper_configurations"])
    fewer = (
        [f"ours averages {has} of the paper's {needs} data sets and models"] if has < needs else []
    )
    if not _matches_any(_CURVE_METRICS, str(cell["metric"])):
        return fewer
    paper = PRESETS["paper"]
    changed = [
        name for name in _INFLUENTIAL_SETTINGS if getattr(settings, name) != getattr(paper, name)
    ]
    return [
        *fewer,
        *(
            f"run with {name}={getattr(settings, name)!r}, not {getattr(paper, name)!r}"
            for name in changed
        ),
    ]
