"""Checks of a diagnosis that compare each explainer with the random one of the run."""

from collections.abc import Iterator
from functools import partial

from graphgauge.guidelines.aggregation import SIDES, CaseKey, is_one_way, judged_pertinence_form
from graphgauge.guidelines.findings import (
    SIGNIFICANCE_LEVEL,
    DiagnosedRun,
    DiagnosticCheck,
    Finding,
    binomial_tail,
    format_share,
    make_finding,
)
from graphgauge.guidelines.paired_comparisons import (
    PairedComparison,
    RandomComparison,
    compare_with_random,
)
from graphgauge.guidelines.score_checks import smallest_p_of_side
from graphgauge.guidelines.thresholds import ROUNDING_TOLERANCE, metric_title
from graphgauge.metrics import MetricName


def _find_no_better_than_random(run: DiagnosedRun) -> Iterator[Finding]:
    """Find explainers that a random order matches; verdicts on that side are then undecided."""
    for explainer in run.explainers:
        for side in SIDES:
            random = _compare_run_with_random(run, explainer, side)
            if random is None:
                yield from _random_curves_findings(run, explainer, side)
            elif not (random.is_better or random.worse or random.p_value <= SIGNIFICANCE_LEVEL):
                yield _sign_test_finding(explainer, random)


def _find_worse_than_random(run: DiagnosedRun) -> Iterator[Finding]:
    """Find measures that are clearly worse than random, and others that contradict them."""
    for explainer in run.explainers:
        for side in SIDES:
            random = _compare_run_with_random(run, explainer, side)
            if random is None or not random.worse:
                continue
            worse, better = _describe(random.worse), _describe(random.better)
            text = f"The {side} side of {explainer} is worse than random: {'; '.join(worse)}"
            if better:
                text += f", although other measures are better: {'; '.join(better)}"
            numbers = {"difference": round(random.worse[0].difference, 12)}
            name = "contradiction" if better else "worse_than_random"
            yield make_finding(name, text, numbers, explainer)


def _find_no_baseline(run: DiagnosedRun) -> Iterator[Finding]:
    """Report that no explainer of the run stands for chance."""
    baseline = run.wanted.baseline
    if run.explainers and baseline not in set(run.table["explainer"]):
        text = f"The run has no explainer {baseline!r}, so EC has nothing to be compared with"
        yield make_finding("no_baseline", text, {})


def _compare_run_with_random(
    run: DiagnosedRun, explainer: str, side: str
) -> RandomComparison | None:
    """Compare one side of an explainer with random, over all tasks and networks of the run."""
    settings, baseline = run.results.settings, run.wanted.baseline
    form = judged_pertinence_form(settings, (metric for metric, _ in run.rows_by_metric))
    own, other = (partial(_values_by_case, run, name) for name in (explainer, baseline))
    return compare_with_random(side, form, baseline, own, other, is_one_way(settings))


def _values_by_case(run: DiagnosedRun, explainer: str, metric: str) -> dict[CaseKey, float]:
    """Return the values of a metric by (task and network, target, occurrence)."""
    values = run.values(metric, explainer).dropna().to_dict()
    return {
        (f"{task}/{model}", target, occurrence): value
        for (task, model, target, occurrence), value in values.items()
    }


def _sign_test_finding(explainer: str, random: RandomComparison) -> Finding:
    """Report the sign test of pertinence, and the other measures."""
    n, p = random.wins + random.losses, random.p_value
    first = next(
        (each for each in random.comparisons if MetricName.parse(each.metric).form == "tied"),
        random.comparisons[0],
    )
    verb = "beats" if random.baseline else "is above"
    test = (
        f"{format_share(random.wins, n)} targets (sign test p = {p:.3g})"
        if n
        else f"no target (p = {p:.3g}): all are ties"
    )
    head = f"{metric_title(first.metric)} of {explainer} {verb} {random.baseline_phrase} on {test}"
    others = _describe([each for each in random.comparisons if each is not first])
    numbers = {"wins": float(random.wins), "n": float(n), "p": p} if n else {"p": p}
    return make_finding("no_better_than_random", "; ".join([head, *others]), numbers, explainer)


def _random_curves_findings(run: DiagnosedRun, explainer: str, side: str) -> Iterator[Finding]:
    """Report if too few targets have p <= 0.05, or the least possible p, among random curves."""
    p_values = run.values(f"{side}_pertinence_p", explainer)
    if not len(p_values):
        return
    level = max(SIGNIFICANCE_LEVEL, smallest_p_of_side(run, side))
    hits = int((p_values <= level + ROUNDING_TOLERANCE).sum())
    p = binomial_tail(hits, len(p_values), level)
    if p > SIGNIFICANCE_LEVEL:
        text = (
            f"{explainer} ({side} side) is better than random orders (p ≤ {level:.3g}) on "
            f"{format_share(hits, len(p_values))} targets, and {100 * level:.3g} % would be by "
            f"chance (p = {p:.3g})"
        )
        numbers = {"hits": float(hits), "n": float(len(p_values)), "p": p}
        yield make_finding("no_better_than_random", text, numbers, explainer)


def _describe(comparisons: list[PairedComparison]) -> list[str]:
    """Describe comparisons: the metric and both numbers."""
    return [f"{metric_title(each.metric)} {each.numbers()}" for each in comparisons]


RANDOM_CHECKS: tuple[DiagnosticCheck, ...] = (
    _find_no_better_than_random,
    _find_worse_than_random,
    _find_no_baseline,
)
