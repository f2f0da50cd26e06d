"""Diagnosis of a run: the paper's troubleshooting table (`troubleshooting.py`), and what else we
have seen go wrong.

empty_graphs           targets that no edge can reach
no_reference           nothing to substitute from
no_mask                messages that cannot be masked
far_edges              edges too far away to be scored that change predictions
constant_scores        permuting the scores changes nothing
never_flipped          an EC that is only the number of candidates
same_explainers        two explainers with the same numbers everywhere
changing_deterministic a deterministic explainer whose stability is below 1
untrained_mask         stability above its threshold that chance reaches too
few_trials             too few random curves; the stopping rule that errs in 37 % of null cases
no_better_than_random  nothing shows that a side beats the random explainer of the run (without one: 0.5, or the random curves)
worse_than_random      a measure of faithfulness is clearly worse than that of the random explainer
contradiction          the same, while another measure of the side is clearly better
no_baseline            there is no random explainer to compare with
unequal_targets        explainers compared on different targets
poor_model             a network that is not shown to be better than none
unknown_accuracy       nobody said how good the model is
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

from graphgauge.evaluation import OK, ModelAccuracy, Results
from graphgauge.execution import ADVICE_WITHOUT_MASKS
from graphgauge.guidelines.aggregation import SIDES, CaseKey, is_one_way, judged_pertinence_form
from graphgauge.guidelines.explainer_verdicts import smallest_p_value
from graphgauge.guidelines.findings import (
    SIGNIFICANCE_LEVEL,
    DiagnosedRun,
    Finding,
    binomial_tail,
    format_share,
)
from graphgauge.guidelines.paired_comparisons import RandomComparison, compare_with_random
from graphgauge.guidelines.reference_data import load_guideline
from graphgauge.guidelines.requirements import Requirements
from graphgauge.guidelines.thresholds import ROUNDING_TOLERANCE, metric_title
from graphgauge.guidelines.troubleshooting import TROUBLESHOOTING_CHECKS

if TYPE_CHECKING:
    import pandas as pd

_RANKING_FORMS = (
    "ec",
    "pertinence",
    "pertinence_tied",
    "pertinence_rank",
)  #: numbers that are equal for equal rankings
_LEAST_SHARED = 5  #: targets that two explainers must agree on
_NEAR_CHANCE = 0.1  #: corrected stability that is as good as none
_FAR_CHANGE = 1e-5  #: of a prediction; less is rounding
_MANY_OPEN = 0.25  #: share of explanations that never change the prediction

_DiagnosticCheck = Callable[[DiagnosedRun], Iterator[Finding]]


def diagnose(
    results: Results,
    requirements: Requirements | None = None,
    accuracy: Any = None,
    summary: "pd.DataFrame | None" = None,
) -> list[Finding]:
    """Everything that the checks find. ``summary``: a benchmark to compare with.

    ``accuracy``: the score of the model on its task, where the results do not know it: a share such
    as 0.81, or a `ModelAccuracy`.
    """
    stated = ModelAccuracy.from_value(accuracy)
    run = DiagnosedRun(
        results,
        requirements or Requirements(),
        results.accuracy if stated is None else stated,
        summary,
    )
    return [finding for check in _DIAGNOSTIC_CHECKS for finding in check(run)]


def _make_status_check(name: str, status: str, what: str, advice: str) -> _DiagnosticCheck:
    """A check that counts the targets with a status, once for all explainers it hits alike."""

    def look(run: DiagnosedRun) -> Iterator[Finding]:
        rows = run.table[run.table["metric"].isin([f"{side}_ec" for side in SIDES])]
        for metric, part in rows.groupby("metric", sort=False):
            hit = part[part["status"] == status].drop_duplicates(["task", "model", "target"])
            n = len(part.drop_duplicates(["task", "model", "target"]))
            if len(hit):
                text = (
                    f"{metric_title(str(metric))}: {what} for {format_share(len(hit), n)} targets"
                )
                yield Finding(name, text, advice, {"hit": float(len(hit)), "n": float(n)})

    return look


_empty_graphs = _make_status_check(
    "empty_graphs",
    "empty",
    "no edge can carry a message",
    "these targets are left out of the means; give targets with neighbours",
)
_no_reference = _make_status_check(
    "no_reference",
    "no_reference",
    "there is no reference to substitute from",
    "the model predicts one class only, or nothing one SD away; look at its predictions",
)
_no_mask = _make_status_check(
    "no_mask", "no_mask", "messages cannot be masked", ADVICE_WITHOUT_MASKS
)


def _far_edges(run: DiagnosedRun) -> Iterator[Finding]:
    """Edges beyond the counted hops act on the predictions, as in networks with global attention."""
    network = run.results.made.get("network", {})
    far = network.get("edges_beyond_hops")
    if not isinstance(far, dict) or far["largest_change"] <= _FAR_CHANGE:
        return
    text = (
        f"Edges more than {network['hops']} hops away move a prediction by up to {far['largest_change']:.2g} (the largest of "
        f"{far['dropped']} drops), but a target's edge scores cover {far['scored_per_target']:g} of {far['edges']} edges on average"
    )
    advice = "edge scores, EC and pertinence leave them out; give the model a larger num_hops= to score edges further away"
    yield Finding("far_edges", text, advice, {name: float(value) for name, value in far.items()})


def _constant_scores(run: DiagnosedRun) -> Iterator[Finding]:
    """Scores whose order means nothing."""
    for explainer in run.explainers:
        for side in SIDES:
            rows = run.rows(f"{side}_stability_corrected", explainer)
            hit = rows[rows["status"] == "constant"]
            if len(hit):
                on = format_share(len(hit), len(rows))
                text = f"{side.capitalize()} scores of {explainer} are constant, or there is but one, on {on} targets"
                numbers = {"hit": float(len(hit)), "n": float(len(rows))}
                advice = (
                    "their order is drawn by lot; leave such targets out, or take another explainer"
                )
                yield Finding("constant_scores", text, advice, numbers, explainer)


def _never_flipped(run: DiagnosedRun) -> Iterator[Finding]:
    """Explanations that never change the prediction."""
    for explainer in run.explainers:
        for side in SIDES:
            rows = run.rows(f"{side}_ec", explainer)
            rows = rows[(rows["status"] == OK) & rows["flipped"].notna()]
            is_open = ~rows["flipped"].astype(bool)
            if not len(rows) or is_open.mean() < _MANY_OPEN:
                continue
            count, mean = int(is_open.sum()), float(rows["value"].mean())
            on = f"{format_share(count, len(rows))} targets of {explainer} ({side} side)"
            text = f"The prediction never changes on {on}, so its mean EC of {mean:.4g} mixes two things"
            numbers = {"open": float(count), "n": float(len(rows)), "mean": mean}
            yield Finding(
                "never_flipped",
                text,
                "read flip_curve(): the share flipped within k edits",
                numbers,
                explainer,
            )


def _same_explainers(run: DiagnosedRun) -> Iterator[Finding]:
    """Pairs of explainers whose rankings give the same numbers on every shared target."""
    for first, second in combinations(run.explainers, 2):
        sides = [side for side in SIDES if _have_same_numbers(run, first, second, side)]
        if sides:
            n = len(run.values(f"{sides[0]}_ec", first))
            text = f"{first} and {second} have the same numbers ({' and '.join(sides)} side) on all {n} targets"
            yield Finding(
                "same_explainers",
                text,
                _same_explainers_advice(first, second),
                {"n": float(n)},
                first,
            )


def _have_same_numbers(run: DiagnosedRun, first: str, second: str, side: str) -> bool:
    """Whether two explainers have the same numbers everywhere, and numbers that could differ."""
    varied = False
    for form in _RANKING_FORMS:
        own, other = (run.values(f"{side}_{form}", name) for name in (first, second))
        if len(own) < (_LEAST_SHARED if form == "ec" else 0) or not own.sort_index().equals(
            other.sort_index()
        ):
            return False
        varied = varied or own.nunique() > 1
    return varied


def _same_explainers_advice(first: str, second: str) -> str:
    """Why two explainers may be one."""
    alike = load_guideline("explainers")["traits"]["gradient_like"]
    if first in alike or second in alike or "gradient" in first + second:
        return (
            "GuidedBackprop and Deconvolution are the plain gradient where the network has no rectifier they catch "
            "(variant='captum' sees nn.ReLU modules only); count them once"
        )
    return "count them once, and see whether one wraps the other"


def _changing_deterministic(run: DiagnosedRun) -> Iterator[Finding]:
    """Explainers whose scores should not depend on the seed."""
    names = load_guideline("explainers")["traits"]["deterministic"]
    for explainer, metric, own in run.values_per_side("stability"):
        low = own[own < 1 - 1e-5]
        if explainer in names and len(low):
            on = f"{format_share(len(low), len(own))} targets (least {low.min():.4g})"
            text = (
                f"{metric_title(metric)} of {explainer}, which is deterministic, is below 1 on {on}"
            )
            numbers = {"low": float(len(low)), "n": float(len(own)), "least": float(low.min())}
            advice = "the network itself draws at random: run check_model"
            yield Finding("changing_deterministic", text, advice, numbers, explainer)


def _untrained_mask(run: DiagnosedRun) -> Iterator[Finding]:
    """High stability that permuted scores reach too."""
    limit = load_guideline("thresholds")["stability"]["band"][1]["least"]
    for explainer, metric, own in run.values_per_side("stability"):
        corrected = run.values(f"{metric}_corrected", explainer)
        if len(corrected) and own.mean() >= limit and corrected.mean() < _NEAR_CHANCE:
            text = f"{metric_title(metric)} of {explainer} is {own.mean():.4g}, but {corrected.mean():.4g} once corrected for chance"
            chance = load_guideline("chance")["stability"]["untrained_masks"]
            advice = f"masks that were never trained reach {chance}: see whether this one learns at all (check_explainer)"
            yield Finding(
                "untrained_mask",
                text,
                advice,
                {"mean": float(own.mean()), "corrected": float(corrected.mean())},
                explainer,
            )


def _few_trials(run: DiagnosedRun) -> Iterator[Finding]:
    """Too few random curves for what is said about them."""
    settings, rule = run.results.settings, load_guideline("practice")["early_stopping"]
    if settings.trials[0] < rule["least_trials"]:
        text = f"At least {settings.trials[0]} random curves are drawn, and the paper's rule begins at {rule['least_trials']}"
        yield Finding(
            "few_trials",
            text,
            "set trials=(30, 100) or more",
            {"trials": float(settings.trials[0])},
        )
    for side in SIDES if settings.twins else ():
        least = _smallest_p_of_side(run, side)
        if least > SIGNIFICANCE_LEVEL:
            curves, name = (
                settings.trials_of(side),
                "feature_trials" if side == "feature" else "twin_trials",
            )
            text = f"p-values of the {side} side come from {curves} random curves, so none is below {least:.3g}"
            yield Finding(
                "few_trials",
                text,
                f"set {name}=19 or more",
                {"trials": float(curves), "least": least},
            )
    chance = load_guideline("chance")["early_stopping"]
    if settings.early_stop == "paper" and settings.tau is not None and len(run.table):
        wrong, claimed = 100 * chance["wrong_at_half"], 100 * chance["claimed"]
        text = (
            f"Random curves stop early by the paper's rule, which calls {wrong:.3g} % of explanations that are worth a random "
            f"order better or worse, not {claimed:.3g} %"
        )
        advice = "for verdicts use pertinence_p, or early_stop='none' or 'betting'"
        yield Finding("few_trials", text, advice, {"wrong": wrong, "claimed": claimed})


def _smallest_p_of_side(run: DiagnosedRun, side: str) -> float:
    """The smallest p-value that a side of this run can have; 0 where none was measured."""
    has_p = any(metric == f"{side}_pertinence_p" for metric, _ in run.rows_by_metric)
    return smallest_p_value(run.results.settings.trials_of(side)) if has_p else 0.0


def _no_better_than_random(run: DiagnosedRun) -> Iterator[Finding]:
    """Explainers that a random order matches; the verdicts of that side are undecided then
    (`judging`).
    """
    for explainer in run.explainers:
        for side in SIDES:
            against = _compare_run_with_random(run, explainer, side)
            if against is None:
                finding = _random_curves_finding(run, explainer, side)
                if finding is not None and finding.numbers["p"] > SIGNIFICANCE_LEVEL:
                    yield finding
            elif (
                not against.is_better and not against.worse and against.p_value > SIGNIFICANCE_LEVEL
            ):
                yield _sign_test_finding(run, explainer, against)


def _compare_run_with_random(
    run: DiagnosedRun, explainer: str, side: str
) -> RandomComparison | None:
    """One side of an explainer beside the random one, over all tasks and networks of the run."""
    form = judged_pertinence_form(
        run.results.settings, (metric for metric, _ in run.rows_by_metric)
    )
    own, other = (partial(_values_by_case, run, name) for name in (explainer, run.wanted.baseline))
    return compare_with_random(
        side, form, run.wanted.baseline, own, other, is_one_way(run.results.settings)
    )


def _values_by_case(run: DiagnosedRun, explainer: str, metric: str) -> dict[CaseKey, float]:
    """The values of a metric by (task and network, target, occurrence)."""
    own = run.values(metric, explainer).dropna().to_dict()
    return {
        (f"{task}/{model}", target, occurrence): value
        for (task, model, target, occurrence), value in own.items()
    }


def _matches_random_finding(text: str, numbers: dict[str, float], explainer: str) -> Finding:
    """What is said of scores that do not beat chance."""
    advice = "nothing shows that its scores are better than random here: do not rely on them"
    return Finding("no_better_than_random", text, advice, numbers, explainer)


def _sign_test_finding(run: DiagnosedRun, explainer: str, against: RandomComparison) -> Finding:
    """The sign test of pertinence, and the other measures beside it."""
    n = against.wins + against.losses
    first = next(
        (own for own in against.comparisons if own.metric.endswith("_tied")), against.comparisons[0]
    )
    others = [
        f"{metric_title(own.metric)} {own.numbers()}"
        for own in against.comparisons
        if own is not first
    ]
    test = (
        f"{format_share(against.wins, n)} targets (sign test p = {against.p_value:.3g})"
        if n
        else f"no target (p = {against.p_value:.3g}): all are ties"
    )
    verb = (
        f"beats {against.baseline_phrase} on"
        if against.baseline
        else f"is above {against.baseline_phrase} on"
    )
    text = "; ".join([f"{metric_title(first.metric)} of {explainer} {verb} {test}", *others])
    numbers = (
        {"wins": float(against.wins), "n": float(n), "p": against.p_value}
        if n
        else {"p": against.p_value}
    )
    return _matches_random_finding(text, numbers, explainer)


def _worse_than_random(run: DiagnosedRun) -> Iterator[Finding]:
    """Measures that are clearly worse than random, and whether another one contradicts them."""
    for explainer in run.explainers:
        for side in SIDES:
            against = _compare_run_with_random(run, explainer, side)
            if against is None or not against.worse:
                continue
            worse, better = (
                [f"{metric_title(own.metric)} {own.numbers()}" for own in each]
                for each in (against.worse, against.better)
            )
            text = f"The {side} side of {explainer} is worse than random: {'; '.join(worse)}"
            text += f", although other measures are better: {'; '.join(better)}" if better else ""
            advice = (
                "do not rely on it: its measures contradict each other"
                if better
                else "do not rely on it"
            )
            numbers = {"difference": round(against.worse[0].difference, 12)}
            yield Finding(
                "contradiction" if better else "worse_than_random", text, advice, numbers, explainer
            )


def _no_baseline(run: DiagnosedRun) -> Iterator[Finding]:
    """No explainer that stands for chance."""
    if run.explainers and run.wanted.baseline not in set(run.table["explainer"]):
        text = f"The run has no explainer {run.wanted.baseline!r}, so EC has nothing to be compared with"
        yield Finding("no_baseline", text, "add RandomExplainer() to the comparison", {})


def _random_curves_finding(run: DiagnosedRun, explainer: str, side: str) -> Finding | None:
    """How many targets have p <= 0.05 (or the least p there can be) among the random curves; as
    many would by chance.
    """
    own = run.values(f"{side}_pertinence_p", explainer)
    if not len(own):
        return None
    level = max(SIGNIFICANCE_LEVEL, _smallest_p_of_side(run, side))
    hits = int((own <= level + ROUNDING_TOLERANCE).sum())
    p = binomial_tail(hits, len(own), level)
    on = f"{format_share(hits, len(own))} targets, and {100 * level:.3g} % would be by chance (p = {p:.3g})"
    text = f"{explainer} ({side} side) is better than random orders (p ≤ {level:.3g}) on {on}"
    numbers = {"hits": float(hits), "n": float(len(own)), "p": p}
    return _matches_random_finding(text, numbers, explainer)


def _unequal_targets(run: DiagnosedRun) -> Iterator[Finding]:
    """Explainers with values on other targets than the rest."""
    for side in SIDES:
        sets = {name: set(run.values(f"{side}_ec", name).index) for name in run.explainers}
        sets = {name: own for name, own in sets.items() if own}
        shared = set.intersection(*sets.values()) if sets else set()
        uneven = {name: len(own) for name, own in sets.items() if own != shared}
        if uneven:
            counts = ", ".join(f"{name} {count}" for name, count in uneven.items())
            text = f"Explainers are compared on different targets ({side} side): {len(shared)} are shared by all, but {counts}"
            numbers = {
                "shared": float(len(shared)),
                **{name: float(count) for name, count in uneven.items()},
            }
            yield Finding("unequal_targets", text, "compare on the shared ones", numbers)


def _poor_model(run: DiagnosedRun) -> Iterator[Finding]:
    """A network that is not shown to be better than none."""
    if run.accuracy is not None and run.accuracy.is_poor:
        told = run.accuracy.warning
        advice = "a faithful explanation of a poor model explains mistakes: train or choose a better one first"
        yield Finding(
            "poor_model", told[0].upper() + told[1:], advice, {"score": run.accuracy.value}
        )


def _unknown_accuracy(run: DiagnosedRun) -> Iterator[Finding]:
    """Nothing in a run says how good the model is."""
    if run.accuracy is None:
        text = "The accuracy (or r²) of the model on its task is not known"
        yield Finding(
            "unknown_accuracy",
            text,
            "a faithful explanation of a wrong model explains a mistake: pass accuracy=",
            {},
        )


_DIAGNOSTIC_CHECKS: tuple[_DiagnosticCheck, ...] = (
    *TROUBLESHOOTING_CHECKS,
    _empty_graphs,
    _no_reference,
    _no_mask,
    _far_edges,
    _constant_scores,
    _never_flipped,
    _same_explainers,
    _changing_deterministic,
    _untrained_mask,
    _few_trials,
    _no_better_than_random,
    _worse_than_random,
    _no_baseline,
    _unequal_targets,
    _poor_model,
    _unknown_accuracy,
)
