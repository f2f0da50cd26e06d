"""check_metric passes metrics that are right and names what is wrong with others.

For every check there is a broken metric, or several.
"""

import importlib.util
import random
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
import torch

import graphgauge as gg
from graphgauge.checks import METRIC_CHECKS
from graphgauge.checks.bundle_rewrites import (
    has_case,
    is_identical,
    number_of_targets,
    take_targets,
    with_first,
)
from graphgauge.checks.metric_bundles import example_bundles
from graphgauge.checks.metric_grades import graded_bundles, meaningless_bundles
from graphgauge.checks.metric_invariances import _same_random_states
from graphgauge.core.errors import BadSetting, FailedCheck, UndefinedScore, UnknownName
from graphgauge.core.rng_state import save_rng_state
from graphgauge.metrics import (
    BUNDLE_KINDS,
    METRICS,
    Auroc,
    Curves,
    DeletionAuc,
    EdgeStability,
    EdgeStabilityCorrected,
    FidelityMinus,
    FidelityPlus,
    Metric,
    Pairs,
    Pertinence,
    PertinenceRank,
    PertinenceTied,
    Sparsity,
    Vectors,
    bundles,
    mean_over_cases,
)

PAGE = Path(__file__).parents[2] / "docs" / "own-metrics.md"


def outcome(metric, name):
    (result,) = gg.check_metric(metric, only=[name], on_fail="return")
    return result.status, result.reason


def failures(results):
    return {result.name for result in results if result.status == "failed"}


# --- what passes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_passes_and_the_checks_leave_no_trace(name):
    """Six permutations instead of twenty, to save time."""
    metric = METRICS[name]
    before = save_rng_state()
    results = gg.check_metric(metric(**{"permutations": 6} if metric.randomised else {}))
    assert _same_random_states(before, save_rng_state())
    assert [result.name for result in results] == list(METRIC_CHECKS)
    assert sum(result.status == "passed" for result in results) >= 20
    assert all(result.reason for result in results if result.status != "passed")


def test_what_a_metric_does_not_accept_is_noted_with_its_reason():
    status, reason = outcome(METRICS["unfaithfulness"](), "some_targets_have_a_value")
    assert status == "noted"
    assert "refuses 'regression values' (unfaithfulness needs 'start_prob'" in reason


def test_what_cannot_be_said_of_a_metric_is_skipped():
    assert outcome(FidelityPlus(), "meaningless_explanations_reach_the_chance") == (
        "skipped",
        "chance is None: it depends on the case",
    )
    assert outcome(Pertinence(), "order_of_trials_does_not_matter")[0] == "skipped"
    assert outcome(Auroc(), "order_of_trials_does_not_matter") == ("skipped", "there are no trials")
    assert outcome(Auroc(), "order_of_edges_does_not_matter")[0] == "skipped"
    assert outcome(DeletionAuc(), "scale_of_scores_does_not_matter")[0] == "skipped"
    assert outcome(Sparsity(), "order_of_cases_does_not_matter") == (
        "skipped",
        "there is one case per target",
    )


def test_draws_that_cannot_be_repeated_with_other_seeds_are_not_compared():
    drawn = saying(OnTruth, by_place, randomised=True)
    assert outcome(drawn, "numbers_of_nodes_do_not_matter") == (
        "skipped",
        "the metric draws at random, and only pairs carry seeds",
    )


SETTINGS = [
    FidelityPlus(top=20),
    Pertinence(least=5, most=60, tau=None),
    EdgeStabilityCorrected(permutations=1),
]


@pytest.mark.parametrize("metric", SETTINGS, ids=repr)
def test_metrics_pass_with_other_settings(metric):
    gg.check_metric(metric)


def test_looking_at_the_first_random_curves_only_is_noted():
    assert outcome(PertinenceTied(trials=30), "order_of_trials_does_not_matter") == (
        "noted",
        "the metric looks at the first 30 random curves only",
    )


def module_of(text, path, monkeypatch):
    """The text as a module that can be imported."""
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, path.stem, module)
    spec.loader.exec_module(module)
    return module


def test_the_metric_of_the_docs_page_passes(tmp_path, monkeypatch):
    code, test, *_ = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    page = module_of(
        f"import pytest\nimport graphgauge\n{code}\n{test}",
        tmp_path / "own_metrics_page.py",
        monkeypatch,
    )
    for name in METRIC_CHECKS:
        page.test_steepest_edit(name)
    with pytest.raises(FailedCheck):
        monkeypatch.setattr(page.SteepestEdit, "higher_is_better", False)
        page.test_steepest_edit("better_explanations_are_not_worse")


# --- what fails -----------------------------------------------------------------------------------


SIMPLE = DeletionAuc()


@dataclass(frozen=True)
class OnCurves(Metric[Curves]):
    """Made of one function of curves; each broken metric is one of these with something wrong."""

    name = "made_of_a_function"
    bounds = (-torch.inf, torch.inf)
    higher_is_better = False
    chance = None
    needs = "curves"
    function: Callable = SIMPLE

    def __call__(self, bundle):
        return self.function(bundle)


@dataclass(frozen=True)
class OnPairs(OnCurves):
    higher_is_better = True
    needs = "pairs"


@dataclass(frozen=True)
class OnScores(OnCurves):
    higher_is_better = True
    needs = "scores"


@dataclass(frozen=True)
class OnTruth(OnCurves):
    higher_is_better = True
    needs = "truth"


def saying(kind=OnCurves, function=None, **said):
    """A metric that says something else about itself."""
    made = type("Saying", (kind,), said)
    return made(**{} if function is None else {"function": function})


class Thawed(OnCurves):
    """Not decorated, so not frozen, although its parent is."""


@dataclass(frozen=True)
class Lossy(OnCurves):
    """Forgets a parameter on its way."""

    size: int = 1

    def __reduce__(self):
        return Lossy, ()


@dataclass(frozen=True)
class Remembering(OnCurves):
    """Counts its calls."""

    calls: list = field(default_factory=list, compare=False)

    def __call__(self, bundle):
        self.calls.append(1)
        return DeletionAuc()(bundle) + len(self.calls)


def writing(curves):
    """Writes into its input."""
    curves.start.zero_()
    return DeletionAuc()(curves)


def appending(vectors):
    """Lengthens its input."""
    found = Sparsity()(vectors)
    vectors.score.append(torch.ones(1))
    return found


def tolist(curves):
    """Numbers, but no tensor."""
    return DeletionAuc()(curves).tolist()


def refusing(bundle):
    raise UndefinedScore("never today")


def drawing(curves):
    """Draws from the global state of torch."""
    return DeletionAuc()(curves) + torch.rand(curves.num_targets).double()


def consuming(curves):
    """Moves the global states of NumPy or Python without using them."""
    np.random.rand()
    random.random()
    return DeletionAuc()(curves)


def without_gaps(curves):
    """Reads gaps behind the length of a curve as 0."""
    return mean_over_cases(
        curves.curve.nan_to_num(0, 0, 0).mean(1), curves.target, curves.num_targets
    )


def first_case(curves):
    """The first case listed speaks for its target."""
    value = torch.full((curves.num_targets,), torch.nan, dtype=torch.float64)
    for case in range(len(curves.target) - 1, -1, -1):
        value[curves.target[case]] = curves.start[case]
    return value


def weighted_wins(curves):
    """Later random curves count more."""
    below = (curves.curve[:, :1] < curves.random[:, :, 0]).double()
    weight = torch.arange(1.0, below.size(1) + 1, dtype=torch.float64)
    return mean_over_cases(
        (below * weight).sum(1) / weight.sum(), curves.target, curves.num_targets
    )


def in_single(curves):
    """Squares in the precision of its input, far from 0."""
    return mean_over_cases(
        ((curves.curve[:, 0] + 1e3).square() - 1e6), curves.target, curves.num_targets
    )


def first_edges(pairs):
    """Only half of the edges, as they are listed."""
    half = [(edge.size(1) + 1) // 2 for edge in pairs.first_edge]
    first, second = (
        [edge[:, :size] for edge, size in zip(part, half, strict=True)]
        for part in (pairs.first_edge, pairs.second_edge)
    )
    return EdgeStability()(replace(pairs, first_edge=first, second_edge=second))


def last_pair(pairs):
    """Only the last pair."""
    return EdgeStability()(
        replace(
            pairs,
            first_edge=[e[-1:] for e in pairs.first_edge],
            second_edge=[e[-1:] for e in pairs.second_edge],
        )
    )


def first_nodes(pairs):
    """Only the first node, whichever that is."""
    first, second = (
        [x[:, :1].flatten(1) for x in part] for part in (pairs.first_feature, pairs.second_feature)
    )
    return EdgeStability()(replace(pairs, first_edge=first, second_edge=second))


def with_epsilon(pairs):
    """A cosine saved by an epsilon."""
    both = zip(pairs.first_edge, pairs.second_edge, strict=True)
    values = [(a * b).sum(1) / (a.norm(dim=1) * b.norm(dim=1) + 1e-8) for a, b in both]
    return torch.stack(
        [
            v.mean() if a.size(1) else v.mean() * torch.nan
            for v, a in zip(values, pairs.first_edge, strict=True)
        ]
    )


def by_place(truths):
    """Early entries count as high scores."""
    return Auroc()(
        replace(truths, score=[torch.arange(len(row), 0, -1).double() for row in truths.score])
    )


def among_others(value):
    """Values as shares of the largest in the bundle."""
    return value / value[~value.isnan()].abs().max() if (~value.isnan()).any() else value


def by_number(value):
    """Values move with the number of their target."""
    return value + torch.arange(len(value))


BROKEN = {
    "name_can_be_typed": [saying(name="My Metric"), saying(name="deletion-auc"), saying(name=None)],
    "metric_says_what_its_number_means": [
        saying(higher_is_better=1),
        saying(needs="lines"),
        saying(randomised=None),
    ],
    "bounds_are_an_interval": [
        saying(bounds=(1.0, 0.0)),
        saying(bounds=(0.0, torch.nan)),
        saying(bounds=[0.0, 1.0]),
    ],
    "chance_lies_in_the_bounds": [
        saying(bounds=(0.0, 1.0), chance=1.5),
        saying(chance="half"),
        saying(chance=torch.inf),
    ],
    "metric_cannot_be_changed": [Thawed()],
    "metric_can_travel": [OnCurves(lambda curves: curves.start), Lossy(size=2)],
    "some_targets_have_a_value": [
        OnCurves(refusing),
        OnCurves(lambda c: torch.full((c.num_targets,), torch.nan)),
    ],
    "one_value_per_target": [
        OnCurves(lambda c: c.start),
        OnCurves(tolist),
        OnCurves(lambda c: DeletionAuc()(c).nan_to_num(0).long()),
        OnPairs(lambda p: torch.tensor([float(len(e)) for e in p.first_edge])),
    ],
    "no_targets_give_no_values": [
        OnCurves(lambda c: DeletionAuc()(c) / DeletionAuc()(c).max()),
        OnScores(lambda v: torch.ones(3)),
    ],
    "targets_without_a_case_have_no_value": [
        OnCurves(lambda c: DeletionAuc()(c).nan_to_num(0)),
        OnScores(lambda v: Sparsity()(v).nan_to_num(1)),
        OnPairs(lambda p: EdgeStability()(p).nan_to_num(1)),
        OnTruth(lambda t: Auroc()(t).nan_to_num(0.5)),
    ],
    "values_lie_in_the_bounds": [
        saying(bounds=(0.0, 1.0)),
        saying(OnScores, Sparsity(), bounds=(0.0, 0.5)),
    ],
    "better_explanations_are_not_worse": [
        saying(higher_is_better=True),
        OnPairs(lambda p: -EdgeStability()(p)),
        OnTruth(lambda t: 1 - Auroc()(t)),
        OnCurves(lambda c: -FidelityMinus()(c)),
        OnTruth(lambda t: (Auroc()(t) - 0.5).abs()),
    ],
    "meaningless_explanations_reach_the_chance": [
        saying(function=Pertinence(), chance=0.5),
        saying(function=METRICS["pertinence_p"](), chance=0.5),
        saying(OnPairs, EdgeStability(), chance=0.0),
        saying(OnTruth, METRICS["average_precision"](), chance=0.3),
    ],
    "order_of_targets_does_not_matter": [
        OnCurves(lambda c: by_number(DeletionAuc()(c))),
        OnTruth(lambda t: by_number(Auroc()(t))),
    ],
    "other_targets_do_not_matter": [
        OnCurves(lambda c: among_others(DeletionAuc()(c))),
        OnScores(lambda v: among_others(Sparsity()(v))),
    ],
    "order_of_cases_does_not_matter": [OnCurves(first_case)],
    "order_of_trials_does_not_matter": [
        OnCurves(weighted_wins),
        OnCurves(Pertinence()),
        OnPairs(last_pair),
    ],
    "numbers_of_nodes_do_not_matter": [
        OnTruth(by_place),
        OnPairs(first_nodes),
        saying(OnPairs, first_nodes, randomised=True),
    ],
    "order_of_edges_does_not_matter": [
        OnPairs(first_edges),
        OnPairs(EdgeStabilityCorrected(permutations=3)),
        saying(OnPairs, first_edges, randomised=True),
    ],
    "scale_of_scores_does_not_matter": [
        OnPairs(with_epsilon),
        OnScores(lambda v: torch.stack([row.sum() for row in v.score])),
    ],
    "precision_does_not_matter": [OnCurves(in_single)],
    "gaps_never_become_a_score": [OnCurves(without_gaps)],
    "bundles_are_left_as_they_were": [OnCurves(writing), OnScores(appending)],
    "same_bundle_gives_the_same_values": [Remembering(), OnCurves(drawing)],
    "global_random_states_play_no_role": [OnCurves(drawing), OnCurves(consuming)],
}
CASES = [(name, metric) for name, metrics in BROKEN.items() for metric in metrics]


@pytest.mark.parametrize(
    ("name", "metric"), CASES, ids=[f"{name}-{k}" for k, (name, _) in enumerate(CASES)]
)
def test_every_check_sees_the_defects_it_is_for(name, metric):
    with pytest.raises(FailedCheck, match=rf"fails 1 of 1 checks:\nfailed  {name}: \S"):
        gg.check_metric(metric, only=[name])


def test_no_check_is_without_a_broken_metric():
    assert list(BROKEN) == list(METRIC_CHECKS)


@pytest.mark.parametrize(
    "metric",
    [OnCurves(), OnPairs(EdgeStability()), OnScores(Sparsity()), OnTruth(Auroc())],
    ids=lambda m: m.needs,
)
def test_what_the_broken_metrics_are_made_of_passes(metric):
    assert failures(gg.check_metric(metric, on_fail="return")) == set()


@pytest.mark.parametrize(
    "change", [lambda value: 1 - value, lambda value: value * 0 + 0.5], ids=["turned", "blind"]
)
def test_scores_alone_are_graded_with_a_remark_only(change):
    assert (
        outcome(OnScores(lambda v: change(Sparsity()(v))), "better_explanations_are_not_worse")[0]
        == "noted"
    )


def test_a_metric_that_cannot_tell_good_from_bad_is_noted():
    blind = OnCurves(lambda c: mean_over_cases(c.start, c.target, c.num_targets))
    assert outcome(blind, "better_explanations_are_not_worse") == (
        "noted",
        "the ideal, a mediocre and the worst explanation get the same value",
    )


def test_a_wrong_form_is_one_failure_and_not_twenty():
    results = gg.check_metric(OnCurves(tolist), on_fail="return")
    assert failures(results) == {"one_value_per_target", "no_targets_give_no_values"}


def test_an_unknown_bundle_is_one_failure_and_not_twenty():
    results = gg.check_metric(saying(needs="lines"), on_fail="return")
    assert failures(results) - {"metric_can_travel", "metric_cannot_be_changed"} == {
        "metric_says_what_its_number_means"
    }


def test_a_bundle_that_lets_gaps_in_is_noticed(monkeypatch):
    """Bundles refuse NaN themselves; without that, a metric that makes a number of it is found."""
    for name in ("_check_curve_heights", "_check_pair"):
        monkeypatch.setattr(bundles, name, lambda *args: None)
    status, reason = outcome(PertinenceTied(), "gaps_never_become_a_score")
    assert (status, reason) == ("failed", "nan in 'start' ('probabilities') becomes a finite score")
    assert outcome(EdgeStability(), "gaps_never_become_a_score")[0] == "failed"


def test_reasons_name_the_target_and_the_numbers():
    _, reason = outcome(OnCurves(first_case), "order_of_cases_does_not_matter")
    assert re.match(
        (
            r"values depend on the order of the cases: target \d of 'probabilities' gets \S+ "
            r"instead of \S+$"
        ),
        reason,
    )
    _, reason = outcome(
        saying(OnPairs, EdgeStability(), chance=0.0), "meaningless_explanations_reach_the_chance"
    )
    assert re.match(
        r"explanations that mean nothing \('scores'\) get 0\.\d+ ± 0\.\d+, but chance is 0\.0$",
        reason,
    )


# --- how it is called -----------------------------------------------------------------------------


def test_what_is_not_a_metric_is_refused():
    with pytest.raises(BadSetting, match=r"needs a metric .* That is the class: call it"):
        gg.check_metric(Auroc)
    with pytest.raises(BadSetting, match="needs a metric such as"):
        gg.check_metric("auroc")
    with pytest.raises(BadSetting, match="on_fail must be"):
        gg.check_metric(Auroc(), on_fail="ignore")
    with pytest.raises(UnknownName, match="Did you mean 'values_lie_in_the_bounds'"):
        gg.check_metric(Auroc(), only=["value_lies_in_the_bounds"])


def test_only_the_named_checks_run():
    names = ["metric_can_travel", "name_can_be_typed"]
    assert [result.name for result in gg.check_metric(Auroc(), only=names)] == names


# --- what metrics are tried on --------------------------------------------------------------------


def test_example_bundles_repeat_and_change_with_the_seed():
    for needs in BUNDLE_KINDS:
        one, same, other = example_bundles(needs), example_bundles(needs), example_bundles(needs, 1)
        assert all(
            is_identical(list(vars(one[kind]).values()), list(vars(same[kind]).values()))
            for kind in one
        )
        assert any(
            not is_identical(list(vars(one[kind]).values()), list(vars(other[kind]).values()))
            for kind in one
        )


def test_every_example_bundle_has_a_target_with_nothing_to_measure():
    """Edges alone and features alone, too."""
    for needs in BUNDLE_KINDS:
        assert all(not has_case(bundle).all() for bundle in example_bundles(needs).values())


def test_example_bundles_hold_what_metrics_stumble_over():
    curves = example_bundles("curves")
    probabilities = curves["probabilities"]
    assert probabilities.target.bincount(minlength=6).tolist() == [2, 1, 3, 1, 0, 2]
    assert (probabilities.candidates < probabilities.cap).all()
    capped = curves["more candidates than the cap"]
    assert (capped.candidates > capped.cap).all()
    assert capped.curve.size(1) > capped.cap
    ties = curves["many ties"]
    assert (ties.curve[:, None, 0] == ties.random[:, :, 0]).double().mean() > 0.1
    assert curves["regression values"].start.min() > 1
    assert curves["regression values"].start_prob is None
    assert set(curves["one candidate"].candidates.tolist()) == {1}
    pairs = example_bundles("pairs")
    assert (pairs["sparse scores"].first_edge[2] == 0).any()
    assert not any(edge.any() for edge in pairs["zeros"].first_edge)


def test_picked_targets_keep_what_is_theirs():
    curves = example_bundles("curves")["probabilities"]
    some = take_targets(curves, [5, 4, 2])
    assert some.target.tolist() == [0, 0, 2, 2, 2]
    assert torch.equal(some.start, curves.start[[2, 8, 4, 6, 7]])
    pairs = take_targets(example_bundles("pairs")["scores"], [3, 0])
    assert (pairs.seeds, number_of_targets(pairs)) == ([3, 0], 2)


def test_a_difference_of_one_bit_is_seen():
    """Also where NaN stands beside it."""
    values = torch.tensor([1.0, torch.nan])
    assert is_identical(values, values.clone())
    assert not is_identical(values, with_first(values, 1 + 2**-23))
    assert not is_identical(values, values.double())
    assert not is_identical([values], [values, values])


def test_the_worst_explanation_never_moves_and_the_ideal_one_falls_at_once():
    ideal, mediocre, worst = graded_bundles("curves")["probabilities"]
    assert METRICS["ec"]()(ideal).tolist() == [1.0] * 4
    assert METRICS["ec"]()(mediocre).tolist() == [6.0] * 4
    assert not worst.flips.any()
    assert PertinenceRank()(worst).tolist() == [0.0] * 4
    same, _, opposite = graded_bundles("pairs")["pairs"]
    assert EdgeStability()(same).tolist() == [1.0] * 4
    assert EdgeStability()(opposite).tolist() == pytest.approx([0.0] * 4, abs=1e-12)


def test_meaningless_scores_leave_nothing_to_tell_for_scores_alone():
    assert meaningless_bundles("scores") == {}
    assert (
        outcome(
            saying(OnScores, Sparsity(), chance=0.5), "meaningless_explanations_reach_the_chance"
        )[0]
        == "skipped"
    )
    assert isinstance(example_bundles("scores")["scores"], Vectors)
    assert isinstance(meaningless_bundles("pairs")["masks"], Pairs)
