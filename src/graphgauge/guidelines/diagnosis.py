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

from graphgauge.evaluation import ModelAccuracy, Results
from graphgauge.evaluation.cells import OK
from graphgauge.guidelines.book import guide
from graphgauge.guidelines.comparisons import AgainstRandom, compare_with_random
from graphgauge.guidelines.findings import SIGNIFICANT, Finding, Run, binomial_tail, share
from graphgauge.guidelines.judging import least_p
from graphgauge.guidelines.limits import NEAR, title
from graphgauge.guidelines.measures import SIDES, Case, is_one_way, judged_form
from graphgauge.guidelines.requirements import Requirements
from graphgauge.guidelines.troubleshooting import TROUBLES
from graphgauge.models.masking import WITHOUT_MASKS

if TYPE_CHECKING:
    import pandas as pd

FORMS = (
    "ec",
    "pertinence",
    "pertinence_tied",
    "pertinence_rank",
)  #: numbers that are equal for equal rankings
LEAST_SHARED = 5  #: targets that two explainers must agree on
NEAR_CHANCE = 0.1  #: corrected stability that is as good as none
FAR_CHANGE = 1e-5  #: of a prediction; less is rounding
MANY_OPEN = 0.25  #: share of explanations that never change the prediction

Check = Callable[[Run], Iterator[Finding]]


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
    stated = ModelAccuracy.read(accuracy)
    run = Run(
        results,
        requirements or Requirements(),
        results.accuracy if stated is None else stated,
        summary,
    )
    return [finding for check in CHECKS for finding in check(run)]


def status_share(name: str, status: str, what: str, advice: str) -> Check:
    """A check that counts the targets with a status, once for all explainers it hits alike."""

    def look(run: Run) -> Iterator[Finding]:
        rows = run.table[run.table["metric"].isin([f"{side}_ec" for side in SIDES])]
        for metric, part in rows.groupby("metric", sort=False):
            hit = part[part["status"] == status].drop_duplicates(["task", "model", "target"])
            n = len(part.drop_duplicates(["task", "model", "target"]))
            if len(hit):
                text = f"{title(str(metric))}: {what} for {share(len(hit), n)} targets"
                yield Finding(name, text, advice, {"hit": float(len(hit)), "n": float(n)})

    return look


empty_graphs = status_share(
    "empty_graphs",
    "empty",
    "no edge can carry a message",
    "these targets are left out of the means; give targets with neighbours",
)
no_reference = status_share(
    "no_reference",
    "no_reference",
    "there is no reference to substitute from",
    "the model predicts one class only, or nothing one SD away; look at its predictions",
)
no_mask = status_share("no_mask", "no_mask", "messages cannot be masked", WITHOUT_MASKS)


def far_edges(run: Run) -> Iterator[Finding]:
    """Edges beyond the counted hops act on the predictions, as in networks with global attention."""
    network = run.results.made.get("network", {})
    far = network.get("edges_beyond_hops")
    if not isinstance(far, dict) or far["largest_change"] <= FAR_CHANGE:
        return
    text = (
        f"Edges more than {network['hops']} hops away move a prediction by up to {far['largest_change']:.2g} (the largest of "
        f"{far['dropped']} drops), but a target's edge scores cover {far['scored_per_target']:g} of {far['edges']} edges on average"
    )
    advice = "edge scores, EC and pertinence leave them out; give the model a larger num_hops= to score edges further away"
    yield Finding("far_edges", text, advice, {name: float(value) for name, value in far.items()})


def constant_scores(run: Run) -> Iterator[Finding]:
    """Scores whose order means nothing."""
    for explainer in run.explainers:
        for side in SIDES:
            rows = run.rows(f"{side}_stability_corrected", explainer)
            hit = rows[rows["status"] == "constant"]
            if len(hit):
                on = share(len(hit), len(rows))
                text = f"{side.capitalize()} scores of {explainer} are constant, or there is but one, on {on} targets"
                numbers = {"hit": float(len(hit)), "n": float(len(rows))}
                advice = (
                    "their order is drawn by lot; leave such targets out, or take another explainer"
                )
                yield Finding("constant_scores", text, advice, numbers, explainer)


def never_flipped(run: Run) -> Iterator[Finding]:
    """Explanations that never change the prediction."""
    for explainer in run.explainers:
        for side in SIDES:
            rows = run.rows(f"{side}_ec", explainer)
            rows = rows[(rows["status"] == OK) & rows["flipped"].notna()]
            is_open = ~rows["flipped"].astype(bool)
            if not len(rows) or is_open.mean() < MANY_OPEN:
                continue
            count, mean = int(is_open.sum()), float(rows["value"].mean())
            on = f"{share(count, len(rows))} targets of {explainer} ({side} side)"
            text = f"The prediction never changes on {on}, so its mean EC of {mean:.4g} mixes two things"
            numbers = {"open": float(count), "n": float(len(rows)), "mean": mean}
            yield Finding(
                "never_flipped",
                text,
                "read flip_curve(): the share flipped within k edits",
                numbers,
                explainer,
            )


def same_explainers(run: Run) -> Iterator[Finding]:
    """Pairs of explainers whose rankings give the same numbers on every shared target."""
    for first, second in combinations(run.explainers, 2):
        sides = [side for side in SIDES if agree(run, first, second, side)]
        if sides:
            n = len(run.values(f"{sides[0]}_ec", first))
            text = f"{first} and {second} have the same numbers ({' and '.join(sides)} side) on all {n} targets"
            yield Finding(
                "same_explainers", text, same_advice(first, second), {"n": float(n)}, first
            )


def agree(run: Run, first: str, second: str, side: str) -> bool:
    """Whether two explainers have the same numbers everywhere, and numbers that could differ."""
    varied = False
    for form in FORMS:
        own, other = (run.values(f"{side}_{form}", name) for name in (first, second))
        if len(own) < (LEAST_SHARED if form == "ec" else 0) or not own.sort_index().equals(
            other.sort_index()
        ):
            return False
        varied = varied or own.nunique() > 1
    return varied


def same_advice(first: str, second: str) -> str:
    """Why two explainers may be one."""
    alike = guide("explainers")["traits"]["gradient_like"]
    if first in alike or second in alike or "gradient" in first + second:
        return (
            "GuidedBackprop and Deconvolution are the plain gradient where the network has no rectifier they catch "
            "(variant='captum' sees nn.ReLU modules only); count them once"
        )
    return "count them once, and see whether one wraps the other"


def changing_deterministic(run: Run) -> Iterator[Finding]:
    """Explainers whose scores should not depend on the seed."""
    names = guide("explainers")["traits"]["deterministic"]
    for explainer, metric, own in run.each("stability"):
        low = own[own < 1 - 1e-5]
        if explainer in names and len(low):
            on = f"{share(len(low), len(own))} targets (least {low.min():.4g})"
            text = f"{title(metric)} of {explainer}, which is deterministic, is below 1 on {on}"
            numbers = {"low": float(len(low)), "n": float(len(own)), "least": float(low.min())}
            advice = "the network itself draws at random: run check_model"
            yield Finding("changing_deterministic", text, advice, numbers, explainer)


def untrained_mask(run: Run) -> Iterator[Finding]:
    """High stability that permuted scores reach too."""
    limit = guide("thresholds")["stability"]["band"][1]["least"]
    for explainer, metric, own in run.each("stability"):
        corrected = run.values(f"{metric}_corrected", explainer)
        if len(corrected) and own.mean() >= limit and corrected.mean() < NEAR_CHANCE:
            text = f"{title(metric)} of {explainer} is {own.mean():.4g}, but {corrected.mean():.4g} once corrected for chance"
            chance = guide("chance")["stability"]["untrained_masks"]
            advice = f"masks that were never trained reach {chance}: see whether this one learns at all (check_explainer)"
            yield Finding(
                "untrained_mask",
                text,
                advice,
                {"mean": float(own.mean()), "corrected": float(corrected.mean())},
                explainer,
            )


def few_trials(run: Run) -> Iterator[Finding]:
    """Too few random curves for what is said about them."""
    settings, rule = run.results.settings, guide("practice")["early_stopping"]
    if settings.trials[0] < rule["least_trials"]:
        text = f"At least {settings.trials[0]} random curves are drawn, and the paper's rule begins at {rule['least_trials']}"
        yield Finding(
            "few_trials",
            text,
            "set trials=(30, 100) or more",
            {"trials": float(settings.trials[0])},
        )
    for side in SIDES if settings.twins else ():
        least = least_p_of(run, side)
        if least > SIGNIFICANT:
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
    chance = guide("chance")["early_stopping"]
    if settings.early_stop == "paper" and settings.tau is not None and len(run.table):
        wrong, claimed = 100 * chance["wrong_at_half"], 100 * chance["claimed"]
        text = (
            f"Random curves stop early by the paper's rule, which calls {wrong:.3g} % of explanations that are worth a random "
            f"order better or worse, not {claimed:.3g} %"
        )
        advice = "for verdicts use pertinence_p, or early_stop='none' or 'betting'"
        yield Finding("few_trials", text, advice, {"wrong": wrong, "claimed": claimed})


def least_p_of(run: Run, side: str) -> float:
    """The smallest p-value that a side of this run can have; 0 where none was measured."""
    has_p = any(metric == f"{side}_pertinence_p" for metric, _ in run.parts)
    return least_p(run.results.settings.trials_of(side)) if has_p else 0.0


def no_better_than_random(run: Run) -> Iterator[Finding]:
    """Explainers that a random order matches; the verdicts of that side are undecided then
    (`judging`).
    """
    for explainer in run.explainers:
        for side in SIDES:
            against = beside_random(run, explainer, side)
            if against is None:
                finding = against_curves(run, explainer, side)
                if finding is not None and finding.numbers["p"] > SIGNIFICANT:
                    yield finding
            elif not against.is_better and not against.worse and against.p > SIGNIFICANT:
                yield no_better_finding(run, explainer, against)


def beside_random(run: Run, explainer: str, side: str) -> AgainstRandom | None:
    """One side of an explainer beside the random one, over all tasks and networks of the run."""
    form = judged_form(run.results.settings, (metric for metric, _ in run.parts))
    own, other = (partial(values_by_case, run, name) for name in (explainer, run.wanted.baseline))
    return compare_with_random(
        side, form, run.wanted.baseline, own, other, is_one_way(run.results.settings)
    )


def values_by_case(run: Run, explainer: str, metric: str) -> dict[Case, float]:
    """The values of a metric by (task and network, target, occurrence)."""
    own = run.values(metric, explainer).dropna().to_dict()
    return {
        (f"{task}/{model}", target, occurrence): value
        for (task, model, target, occurrence), value in own.items()
    }


def no_better(text: str, numbers: dict[str, float], explainer: str) -> Finding:
    """What is said of scores that do not beat chance."""
    advice = "nothing shows that its scores are better than random here: do not rely on them"
    return Finding("no_better_than_random", text, advice, numbers, explainer)


def no_better_finding(run: Run, explainer: str, against: AgainstRandom) -> Finding:
    """The sign test of pertinence, and the other measures beside it."""
    n = against.wins + against.losses
    first = next(
        (own for own in against.comparisons if own.metric.endswith("_tied")), against.comparisons[0]
    )
    others = [
        f"{title(own.metric)} {own.numbers()}" for own in against.comparisons if own is not first
    ]
    test = (
        f"{share(against.wins, n)} targets (sign test p = {against.p:.3g})"
        if n
        else f"no target (p = {against.p:.3g}): all are ties"
    )
    verb = f"beats {against.who} on" if against.baseline else f"is above {against.who} on"
    text = "; ".join([f"{title(first.metric)} of {explainer} {verb} {test}", *others])
    numbers = (
        {"wins": float(against.wins), "n": float(n), "p": against.p} if n else {"p": against.p}
    )
    return no_better(text, numbers, explainer)


def worse_than_random(run: Run) -> Iterator[Finding]:
    """Measures that are clearly worse than random, and whether another one contradicts them."""
    for explainer in run.explainers:
        for side in SIDES:
            against = beside_random(run, explainer, side)
            if against is None or not against.worse:
                continue
            worse, better = (
                [f"{title(own.metric)} {own.numbers()}" for own in each]
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


def no_baseline(run: Run) -> Iterator[Finding]:
    """No explainer that stands for chance."""
    if run.explainers and run.wanted.baseline not in set(run.table["explainer"]):
        text = f"The run has no explainer {run.wanted.baseline!r}, so EC has nothing to be compared with"
        yield Finding("no_baseline", text, "add RandomExplainer() to the comparison", {})


def against_curves(run: Run, explainer: str, side: str) -> Finding | None:
    """How many targets have p <= 0.05 (or the least p there can be) among the random curves; as
    many would by chance.
    """
    own = run.values(f"{side}_pertinence_p", explainer)
    if not len(own):
        return None
    level = max(SIGNIFICANT, least_p_of(run, side))
    hits = int((own <= level + NEAR).sum())
    p = binomial_tail(hits, len(own), level)
    on = (
        f"{share(hits, len(own))} targets, and {100 * level:.3g} % would be by chance (p = {p:.3g})"
    )
    text = f"{explainer} ({side} side) is better than random orders (p ≤ {level:.3g}) on {on}"
    numbers = {"hits": float(hits), "n": float(len(own)), "p": p}
    return no_better(text, numbers, explainer)


def unequal_targets(run: Run) -> Iterator[Finding]:
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


def poor_model(run: Run) -> Iterator[Finding]:
    """A network that is not shown to be better than none."""
    if run.accuracy is not None and run.accuracy.is_poor:
        told = run.accuracy.warning
        advice = "a faithful explanation of a poor model explains mistakes: train or choose a better one first"
        yield Finding(
            "poor_model", told[0].upper() + told[1:], advice, {"score": run.accuracy.value}
        )


def unknown_accuracy(run: Run) -> Iterator[Finding]:
    """Nothing in a run says how good the model is."""
    if run.accuracy is None:
        text = "The accuracy (or r²) of the model on its task is not known"
        yield Finding(
            "unknown_accuracy",
            text,
            "a faithful explanation of a wrong model explains a mistake: pass accuracy=",
            {},
        )


CHECKS: tuple[Check, ...] = (
    *TROUBLES,
    empty_graphs,
    no_reference,
    no_mask,
    far_edges,
    constant_scores,
    never_flipped,
    same_explainers,
    changing_deterministic,
    untrained_mask,
    few_trials,
    no_better_than_random,
    worse_than_random,
    no_baseline,
    unequal_targets,
    poor_model,
    unknown_accuracy,
)
