"""Checks of a diagnosis on scores: constant, identical or unstable ones, too few curves."""

from collections.abc import Iterator
from itertools import combinations

from graphgauge.evaluation import OK
from graphgauge.guidelines.aggregation import SIDES
from graphgauge.guidelines.explanation_verdicts import smallest_p_value
from graphgauge.guidelines.findings import (
    SIGNIFICANCE_LEVEL,
    DiagnosedRun,
    DiagnosticCheck,
    Finding,
    find_rule,
    format_share,
    load_rules,
    make_finding,
)
from graphgauge.guidelines.reference_data import load_guideline
from graphgauge.guidelines.thresholds import metric_title


def _find_constant_scores(run: DiagnosedRun) -> Iterator[Finding]:
    """Find scores whose order means nothing."""
    for explainer in run.explainers:
        for side in SIDES:
            rows = run.rows(f"{side}_stability_corrected", explainer)
            constant = rows[rows["status"] == "constant"]
            if len(constant):
                text = (
                    f"{side.capitalize()} scores of {explainer} are constant, or there is but one, "
                    f"on {format_share(len(constant), len(rows))} targets"
                )
                numbers = {"hit": float(len(constant)), "n": float(len(rows))}
                yield make_finding("constant_scores", text, numbers, explainer)


def _find_never_flipped(run: DiagnosedRun) -> Iterator[Finding]:
    """Find explanations that never change the prediction."""
    notable = load_rules()["diagnosis"]["notable_open"]
    for explainer in run.explainers:
        for side in SIDES:
            rows = run.rows(f"{side}_ec", explainer)
            rows = rows[(rows["status"] == OK) & rows["flipped"].notna()]
            is_open = ~rows["flipped"].astype(bool)
            if not len(rows) or is_open.mean() < notable:
                continue
            count, mean = int(is_open.sum()), float(rows["value"].mean())
            text = (
                f"The prediction never changes on {format_share(count, len(rows))} targets of "
                f"{explainer} ({side} side), so its mean EC of {mean:.4g} mixes two things"
            )
            numbers = {"open": float(count), "n": float(len(rows)), "mean": mean}
            yield make_finding("never_flipped", text, numbers, explainer)


def _find_same_explainers(run: DiagnosedRun) -> Iterator[Finding]:
    """Find pairs of explainers with the same numbers on every shared target."""
    gradient_like = load_guideline("explainers")["traits"]["gradient_like"]
    for first, second in combinations(run.explainers, 2):
        sides = [side for side in SIDES if _have_same_numbers(run, first, second, side)]
        if not sides:
            continue
        n = len(run.values(f"{sides[0]}_ec", first))
        text = (
            f"{first} and {second} have the same numbers ({' and '.join(sides)} side) "
            f"on all {n} targets"
        )
        is_gradient = {first, second} & set(gradient_like) or "gradient" in first + second
        advice = find_rule("same_explainers")["gradient_advice" if is_gradient else "advice"]
        yield make_finding("same_explainers", text, {"n": float(n)}, first, advice)


def _have_same_numbers(run: DiagnosedRun, first: str, second: str, side: str) -> bool:
    """Whether two explainers have the same numbers everywhere, and numbers that could differ."""
    rules, has_varied = load_rules()["diagnosis"], False
    for form in rules["forms"]:
        values, others = (run.values(f"{side}_{form}", name) for name in (first, second))
        least = rules["least_shared"] if form == "ec" else 0
        if len(values) < least or not values.sort_index().equals(others.sort_index()):
            return False
        has_varied = has_varied or values.nunique() > 1
    return has_varied


def _find_changing_deterministic(run: DiagnosedRun) -> Iterator[Finding]:
    """Find deterministic explainers whose scores depend on the seed."""
    deterministic = load_guideline("explainers")["traits"]["deterministic"]
    for explainer, metric, values in run.values_per_side("stability"):
        low = values[values < 1 - 1e-5]
        if explainer in deterministic and len(low):
            share, least = format_share(len(low), len(values)), float(low.min())
            text = (
                f"{metric_title(metric)} of {explainer}, which is deterministic, is below 1 on "
                f"{share} targets (least {least:.4g})"
            )
            numbers = {"low": float(len(low)), "n": float(len(values)), "least": least}
            yield make_finding("changing_deterministic", text, numbers, explainer)


def _find_untrained_mask(run: DiagnosedRun) -> Iterator[Finding]:
    """Find high stability that permuted scores reach too."""
    limit = load_guideline("thresholds")["stability"]["band"][1]["least"]
    near_chance = load_rules()["diagnosis"]["near_chance"]
    untrained = load_guideline("chance")["stability"]["untrained_masks"]
    advice = find_rule("untrained_mask")["advice"].format(chance=untrained)
    for explainer, metric, values in run.values_per_side("stability"):
        corrected = run.values(f"{metric}_corrected", explainer)
        if len(corrected) and values.mean() >= limit and corrected.mean() < near_chance:
            numbers = {"mean": float(values.mean()), "corrected": float(corrected.mean())}
            text = (
                f"{metric_title(metric)} of {explainer} is {numbers['mean']:.4g}, but "
                f"{numbers['corrected']:.4g} once corrected for chance"
            )
            yield make_finding("untrained_mask", text, numbers, explainer, advice)


# --- random curves --------------------------------------------------------------------------------


def _find_few_trials(run: DiagnosedRun) -> Iterator[Finding]:
    """Find conclusions that rest on too few random curves."""
    least, paper_least = (
        run.results.settings.trials[0],
        load_guideline("practice")["early_stopping"]["least_trials"],
    )
    if least < paper_least:
        text = (
            f"At least {least} random curves are drawn, "
            f"and the paper's rule begins at {paper_least}"
        )
        yield make_finding("few_trials", text, {"trials": float(least)})


def _find_coarse_p_values(run: DiagnosedRun) -> Iterator[Finding]:
    """Find p-values that cannot be small enough."""
    settings = run.results.settings
    for side in SIDES if settings.twins else ():
        least = smallest_p_of_side(run, side)
        if least > SIGNIFICANCE_LEVEL:
            curves = settings.trials_of(side)
            setting = "feature_trials" if side == "feature" else "twin_trials"
            text = (
                f"p-values of the {side} side come from {curves} random curves, "
                f"so none is below {least:.3g}"
            )
            advice = find_rule("few_trials")["p_value_advice"].format(setting=setting)
            numbers = {"trials": float(curves), "least": least}
            yield make_finding("few_trials", text, numbers, advice=advice)


def _find_loose_stopping(run: DiagnosedRun) -> Iterator[Finding]:
    """Report the paper's rule for early stopping, which errs more often than it claims."""
    settings, chance = run.results.settings, load_guideline("chance")["early_stopping"]
    if settings.early_stop == "paper" and settings.tau is not None and len(run.table):
        wrong, claimed = 100 * chance["wrong_at_half"], 100 * chance["claimed"]
        text = (
            f"Random curves stop early by the paper's rule, which calls {wrong:.3g} % of "
            f"explanations that are worth a random order better or worse, not {claimed:.3g} %"
        )
        advice = find_rule("few_trials")["stop_advice"]
        numbers = {"wrong": wrong, "claimed": claimed}
        yield make_finding("few_trials", text, numbers, advice=advice)


def smallest_p_of_side(run: DiagnosedRun, side: str) -> float:
    """Return the smallest p-value that a side of this run can have; 0 if none was measured."""
    has_p = any(metric == f"{side}_pertinence_p" for metric, _ in run.rows_by_metric)
    return smallest_p_value(run.results.settings.trials_of(side)) if has_p else 0.0


SCORE_CHECKS: tuple[DiagnosticCheck, ...] = (
    _find_constant_scores,
    _find_never_flipped,
    _find_same_explainers,
    _find_changing_deterministic,
    _find_untrained_mask,
    _find_few_trials,
    _find_coarse_p_values,
    _find_loose_stopping,
)
