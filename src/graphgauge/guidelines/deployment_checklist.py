"""The paper's checklist of eight points before deployment, filled from a run.

done        the run, or evidence from the owner, shows it
not done    the run shows that it is not so
open        only the owner can do it
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from graphgauge.core import NOT_APPLICABLE, BadSetting, UnknownName, Verdict
from graphgauge.evaluation import OK, Results
from graphgauge.guidelines.recommendation import Recommendation, recommend
from graphgauge.guidelines.reference_data import load_guideline
from graphgauge.guidelines.requirements import Requirements
from graphgauge.guidelines.threshold_check import check
from graphgauge.metrics import MetricName

ITEM_DONE, ITEM_NOT_DONE, ITEM_OPEN = "done", "not done", "open"


@dataclass(frozen=True)
class ChecklistItem:
    """One point of the checklist: what it asks, its state, and the evidence."""

    name: str
    point: str
    state: str
    evidence: str

    def __str__(self) -> str:
        mark = "x" if self.state == ITEM_DONE else " "
        return f"[{mark}] {self.point} ({self.state}): {self.evidence}"


def checklist(
    results: Results,
    explainer: str | None = None,
    requirements: Requirements | None = None,
    evidence: Mapping[str, str] | None = None,
) -> list[ChecklistItem]:
    """Fill the eight points of the checklist.

    Args:
        results: The results of a run.
        explainer: The explainer in question (default: the recommended one).
        requirements: What the explanations are used for.
        evidence: Files by the name of one of the owner's points.

    Raises:
        BadSetting: Evidence names another point than one of the owner's.
        UnknownName: The run has no such explainer.
    """
    wanted, given = requirements or Requirements(), dict(evidence or {})
    unknown = [name for name in given if name not in _owner_items()]
    if unknown:
        raise BadSetting(
            f"evidence names {', '.join(map(repr, unknown))}, but the owner's points are "
            f"{', '.join(_owner_items())}."
        )
    recommendations = recommend(results, wanted)
    name = _resolve_explainer_name(results, explainer, recommendations)
    states = {
        "selection": _selection_state(name, recommendations),
        "validation": _validation_state(results, name),
        "thresholds": _thresholds_state(results, name, wanted),
        "latency": _latency_state(results, wanted),
        **{
            key: _evidence_state(given[key]) if key in given else (ITEM_OPEN, hint)
            for key, hint in _owner_items().items()
        },
    }
    entries = load_guideline("practice")["checklist"]
    return [
        ChecklistItem(entry["name"], entry["point"], *states[entry["name"]]) for entry in entries
    ]


def _resolve_explainer_name(
    results: Results, explainer: str | None, recommendations: list[Recommendation]
) -> str:
    """Return the explainer that the checklist is about, or raise if the run does not have it."""
    known = dict.fromkeys(row.explainer for row in results.rows)
    if explainer is not None and explainer not in known:
        raise UnknownName(f"The run has no explainer {explainer!r}. It has: {', '.join(known)}.")
    return explainer or recommendations[0].chosen


def _selection_state(name: str, recommendations: list[Recommendation]) -> tuple[str, str]:
    """Whether the explainer was compared with others and is the measured choice for every task."""
    alone = [own for own in recommendations if not own.others]
    if alone:
        return (
            ITEM_NOT_DONE,
            f"{name} was compared with no other explainer, so nothing was chosen; "
            f"paper: {alone[0].paper}",
        )
    against = [own for own in recommendations if name != own.chosen]
    if against:
        own = against[0]
        return (
            ITEM_NOT_DONE,
            f"{name} is not the choice, {own.chosen} is; "
            f"{own.others.get(name, 'it has no values')}",
        )
    first = recommendations[0]
    compared = ", ".join(first.others)
    return (
        ITEM_DONE,
        f"{name}: measured beside {compared} and chosen ({first.reason}); paper: {first.paper}",
    )


def _validation_state(results: Results, name: str) -> tuple[str, str]:
    """Whether every task measured the explainer on enough targets; time alone does not count."""
    least = next(
        entry["least_targets"]
        for entry in load_guideline("practice")["checklist"]
        if entry["name"] == "validation"
    )
    counts: dict[tuple[str, str], set[object]] = {}
    for row in results.rows:
        if row.explainer == name:
            measured = counts.setdefault((row.task, row.model), set())
            if row.cell.status == OK and MetricName.parse(row.metric).family != "time":
                measured.add(row.target)
    fewest = min(map(len, counts.values()))
    told = (
        f"{name} was measured on {fewest} targets, {least} are asked for; "
        "whether they are representative is the owner's to say"
    )
    return (ITEM_DONE if fewest >= least else ITEM_NOT_DONE), told


def _thresholds_state(results: Results, name: str, wanted: Requirements) -> tuple[str, str]:
    """Whether every number meets its threshold."""
    found = check(results, wanted, [name])
    worse = [each for each in found.verdicts if _speaks_against(each, found.code)]
    told = " ".join(each.reason for each in worse)
    return (ITEM_DONE if found.code == 0 else ITEM_NOT_DONE), f"{found.reason}. {told}".strip()


def _speaks_against(verdict: Verdict, code: int) -> bool:
    """Whether a verdict is worth telling: failed, doubtful, or missing in an incomplete check."""
    return verdict.outcome in ("fail", "undecided", "warn") or (
        code == 3 and verdict.outcome == NOT_APPLICABLE
    )


def _latency_state(results: Results, wanted: Requirements) -> tuple[str, str]:
    """Whether the settings save time where the use is interactive."""
    if wanted.latency != "interactive":
        return ITEM_DONE, "not needed: the use is not interactive"
    settings = results.settings
    saves = [
        f"early_stop={settings.early_stop!r}" if settings.early_stop != "none" else "",
        f"stability={settings.stability!r}" if settings.stability != "pairs" else "",
        "twins=False" if not settings.twins else "",
    ]
    said = ", ".join(filter(None, saves))
    return (
        (ITEM_DONE, f"set: {said}")
        if said
        else (
            ITEM_NOT_DONE,
            "early_stop='none' and twins=True: set early_stop='betting' or twins=False",
        )
    )


def _evidence_state(path: str) -> tuple[str, str]:
    """Whether the owner's evidence is a file that exists."""
    return (
        (ITEM_DONE, path) if Path(path).is_file() else (ITEM_NOT_DONE, f"there is no file {path}")
    )


def _owner_items() -> dict[str, str]:
    """Return the points that only the owner can do, each with a hint; no run can show them."""
    return {
        "translation": "show Evaluator.get_textual_explanation to readers and keep what they say",
        "monitoring": "no dashboard is known to this run",
        "revalidation": "triggers: "
        + ", ".join(load_guideline("practice")["phase"][2]["triggers"])
        + "; how often is yours to say",
        "compliance": "the requirements document of `graphgauge consult --requirements` is a start",
    }
