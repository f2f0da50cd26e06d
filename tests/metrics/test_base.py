"""The bundles refuse what does not fit; every metric is listed, stays in its bounds and ignores the
order of targets.
"""

import inspect
from dataclasses import replace

import pytest
import torch
from support.metric_bundles import one_target, tensor

from graphgauge.core.errors import BadExplanation, BadSetting, UndefinedScore
from graphgauge.metrics import (
    METRICS,
    Curves,
    EdgeStability,
    FeatureStability,
    Metric,
    Pairs,
    Pertinence,
    PertinenceTied,
    Truths,
    Vectors,
    mean_over_cases,
    min_over_cases,
)
from graphgauge.metrics.base import BUNDLE_KINDS

NUMBER, CASES, STEPS = 6, 9, 12
TARGET = torch.tensor([0, 0, 1, 2, 2, 2, 3, 5, 5])  # target 4 has no case


def metric_bundles():
    """Random probabilities; target 4 has no case, others one to three; some curves end before the
    last step.
    """
    generator = torch.Generator().manual_seed(0)
    candidates = torch.tensor([12, 12, 3, 1, 1, 1, 200, 7, 7])
    prob = torch.rand(2, CASES, 3, generator=generator, dtype=torch.float64).softmax(2)
    behind = torch.arange(1, STEPS + 1) > candidates[:, None]
    return Curves(
        target=TARGET,
        num_targets=NUMBER,
        start=torch.rand(CASES, generator=generator, dtype=torch.float64),
        curve=torch.rand(CASES, STEPS, generator=generator, dtype=torch.float64).masked_fill(
            behind, torch.nan
        ),
        flips=torch.rand(CASES, STEPS, generator=generator) < 0.2,
        random=torch.rand(CASES, 100, STEPS, generator=generator, dtype=torch.float64).masked_fill(
            behind[:, None], torch.nan
        ),
        candidates=candidates,
        cap=STEPS,
        kept=torch.rand(CASES, generator=generator, dtype=torch.float64),
        kept_prob=prob[0],
        start_prob=prob[1],
        removed_levels=torch.rand(CASES, 9, generator=generator, dtype=torch.float64),
        kept_levels=torch.rand(CASES, 9, generator=generator, dtype=torch.float64),
        insertion=torch.rand(CASES, STEPS, generator=generator, dtype=torch.float64).masked_fill(
            behind, torch.nan
        ),
    )


def turned_curves(curves):
    """The same with targets and cases listed from the last to the first."""
    names = [
        *("start", "curve", "flips", "random", "candidates", "kept", "kept_prob", "start_prob"),
        *("removed_levels", "kept_levels", "insertion"),
    ]
    return replace(
        curves,
        target=NUMBER - 1 - curves.target.flip(0),
        **{name: getattr(curves, name).flip(0) for name in names},
    )


def made_pairs():
    """Targets of different sizes and numbers of pairs; the last has no edges."""
    generator = torch.Generator().manual_seed(1)
    shapes = [(5, 4, 3), (2, 1, 3), (7, 6, 2), (1, 3, 3)]
    features = [
        torch.randn(2, *shape, generator=generator, dtype=torch.float64) for shape in shapes
    ]
    edges = [
        torch.rand(2, rows, size, generator=generator, dtype=torch.float64)
        for rows, size in ((5, 8), (2, 1), (7, 30), (1, 0))
    ]
    is_target = [torch.arange(nodes) < 1 for _, nodes, _ in shapes]
    return Pairs(
        *zip(*features, strict=True), is_target, *zip(*edges, strict=True), seeds=[3, 1, 4, 1]
    )


def turned_pairs(pairs):
    """The same with targets listed from the last to the first."""
    return Pairs(**{name: list(getattr(pairs, name))[::-1] for name in Pairs.__dataclass_fields__})


def made_truths():
    """Vectors of different lengths with ties; one without a true entry, one empty."""
    generator = torch.Generator().manual_seed(2)
    score = [
        torch.randint(-4, 5, (size,), generator=generator).double() for size in (12, 5, 1, 30, 0)
    ]
    truth = [torch.rand(len(row), generator=generator) < 0.4 for row in score]
    return Truths(score, [*truth[:2], torch.tensor([False]), *truth[3:]])


def turned_truths(truths):
    """The same with targets listed from the last to the first."""
    return Truths(truths.score[::-1], truths.is_true[::-1])


MADE = {
    "curves": (metric_bundles, turned_curves),
    "pairs": (made_pairs, turned_pairs),
    "truth": (made_truths, turned_truths),
    "scores": (made_truths, turned_truths),
}


#: the targets of `metric_bundles` that have a value where the top ten edits must not be all, and
#: where there must be two candidates
TOP_TEN, TWO = [True, False, False, True, False, False], [True, True, False, True, False, True]
VALUES = dict.fromkeys(
    ("fidelity_plus", "fidelity_minus", "characterization", "unfaithfulness"), TOP_TEN
) | dict.fromkeys(("fidelity_plus_auc", "fidelity_minus_auc"), TWO)


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_every_metric_stays_in_bounds_and_ignores_the_order_of_targets(metric):
    make, turn = MADE[metric.needs]
    bundle = make()
    found = metric()(bundle)
    assert found.dtype == torch.float64
    assert found.dim() == 1
    has_value = ~found.isnan()
    assert has_value.any()
    low, high = metric.bounds
    assert ((low <= found) & (found <= high))[has_value].all()
    assert torch.allclose(metric()(turn(bundle)), found.flip(0), rtol=0, atol=1e-12, equal_nan=True)
    if metric.needs == "curves":
        assert has_value.tolist() == VALUES.get(metric.name, [True, True, True, True, False, True])
        assert metric.name == "ec" or found[has_value].abs().max() <= 1  # these are probabilities


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_every_metric_accepts_no_targets(metric):
    empty = {
        "curves": lambda: Curves(
            torch.zeros(0, dtype=torch.int64),
            0,
            tensor([]),
            torch.zeros(0, 3),
            torch.zeros(0, 3, dtype=torch.bool),
            torch.zeros(0, 100, 3),
            torch.zeros(0, dtype=torch.int64),
            kept=tensor([]),
            kept_prob=torch.zeros(0, 2),
            start_prob=torch.zeros(0, 2),
            insertion=torch.zeros(0, 3),
            removed_levels=torch.zeros(0, 9),
            kept_levels=torch.zeros(0, 9),
        ),
        "pairs": Pairs,
        "truth": lambda: Truths([], []),
        "scores": lambda: Vectors([]),
    }
    assert metric()(empty[metric.needs]()).shape == (0,)


def concrete(metric):
    """The subclasses that can be called, defined in the room."""
    for found in metric.__subclasses__():
        yield from concrete(found)
        if not inspect.isabstract(found) and found.__module__.startswith("graphgauge.metrics"):
            yield found


def test_every_metric_is_listed_under_its_name_and_says_what_it_means():
    assert set(METRICS.values()) == set(concrete(Metric))
    for name, metric in METRICS.items():
        assert name == metric.name
        assert metric.needs in BUNDLE_KINDS
        assert metric.bounds[0] < metric.bounds[1]
        assert isinstance(metric.higher_is_better, bool)
        assert metric.chance is None or metric.bounds[0] <= metric.chance <= metric.bounds[1]
        assert metric() == metric()


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, metric in METRICS.items()
        if metric.needs == "curves" and metric.chance is not None
    ],
)
def test_random_orders_reach_the_chance_that_a_metric_on_curves_declares(name):
    """One decisive edit of ten, all orders random; the first plays the explanation."""
    place = torch.randint(10, (3000, 31), generator=torch.Generator().manual_seed(0))
    drawn = (torch.arange(1, 11) <= place[..., None]).double()
    curves = Curves(
        torch.arange(3000),
        3000,
        torch.ones(3000),
        drawn[:, 0],
        drawn[:, 0] == 0,
        drawn[:, 1:],
        torch.full((3000,), 10),
    )
    assert abs(METRICS[name]()(curves).mean() - METRICS[name].chance) < 0.02


GOOD = metric_bundles()
WRONG_SHAPES = {
    "start": GOOD.start[:-1],
    "curve": GOOD.curve[:-1],
    "flips": GOOD.flips[:, :-1],
    "random": GOOD.random[..., :-1],
    "candidates": GOOD.candidates[:, None],
    "kept": GOOD.kept[:-1],
    "start_prob": GOOD.start_prob[:, :-1],
}


@pytest.mark.parametrize(("name", "value"), WRONG_SHAPES.items(), ids=WRONG_SHAPES)
def test_curves_that_do_not_fit_are_refused_by_name(name, value):
    with pytest.raises(BadExplanation, match=r"must have the shape .* here, but has"):
        replace(GOOD, **{name: value})


def with_value(values, place, value):
    """A copy with one entry replaced."""
    values = values.clone()
    values[place] = value
    return values


GAPS = {
    "start": (2,),
    "curve": (2, 2),
    "random": (2, 50, 0),
    "kept": (2,),
    "kept_prob": (2, 1),
    "start_prob": (2, 0),
}


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize(("name", "place"), GAPS.items(), ids=GAPS)
def test_nan_and_infinity_inside_the_length_never_become_a_score(name, place, value):
    with pytest.raises(
        UndefinedScore, match=rf"case 2 \(target 1\) has NaN or infinity in '{name}'"
    ):
        replace(GOOD, **{name: with_value(getattr(GOOD, name), place, value)})


def test_what_stands_behind_the_length_does_not_count():
    """Case 2 has three candidates: its fourth step may be anything."""
    for value in (torch.nan, torch.inf, -5.0):
        other = replace(
            GOOD,
            curve=with_value(GOOD.curve, (2, 3), value),
            random=with_value(GOOD.random, (2, 7, 3), value),
            flips=with_value(GOOD.flips, (2, 3), True),
        )
        for metric in METRICS.values():
            if metric.needs == "curves":
                assert torch.equal(metric()(other).nan_to_num(-1), metric()(GOOD).nan_to_num(-1))


def test_impossible_cases_are_refused():
    with pytest.raises(BadExplanation, match="cases must name targets 0 to 5, but they name"):
        replace(GOOD, target=GOOD.target + 1)
    with pytest.raises(UndefinedScore, match=r"case 3 \(target 2\) has no edit to make"):
        replace(GOOD, candidates=with_value(GOOD.candidates, 3, 0))
    too_short = r"must reach min\(cap, candidates\) = 100 edits, but they have 12 steps"
    with pytest.raises(BadExplanation, match=too_short):
        replace(GOOD, cap=100)
    with pytest.raises(BadExplanation, match=r"'target' must be torch.int64"):
        replace(GOOD, target=GOOD.target.double())
    for setting in (
        {"cap": 0},
        {"top": 0},
        {"tolerance": -1.0},
        {"tolerance": torch.nan},
        {"num_targets": -1},
    ):
        with pytest.raises(BadSetting, match="curves need a cap and a top of 1 or more"):
            replace(GOOD, **setting)


def test_too_few_random_curves_are_refused():
    few = one_target((0.9, [0.5], [True], [[0.8]]))
    with pytest.raises(UndefinedScore, match="100 of 1 measured were asked for"):
        Pertinence()(few)
    with pytest.raises(UndefinedScore, match="0 of 1 measured"):
        PertinenceTied(trials=0)(few)
    with pytest.raises(UndefinedScore, match="0 of 0 measured"):
        PertinenceTied()(replace(few, random=few.random[:, :0]))


def test_pairs_that_do_not_fit_are_refused():
    scores = torch.ones(2, 3)
    with pytest.raises(BadExplanation, match="must list the same targets"):
        Pairs(first_edge=[scores], second_edge=[scores, scores])
    with pytest.raises(BadExplanation, match="must list the same targets"):
        Pairs(first_edge=[scores], second_edge=[scores], seeds=[1, 2])
    with pytest.raises(BadExplanation, match=r"'second_edge' must have the shape \(2, 3\)"):
        Pairs(first_edge=[scores], second_edge=[scores[:1]])
    with pytest.raises(BadExplanation, match=r"'is_target' must be torch.bool"):
        Pairs([scores[None]], [scores[None]], [torch.ones(2)])
    with pytest.raises(UndefinedScore, match="a target has none"):
        Pairs(first_edge=[scores[:0]], second_edge=[scores[:0]])
    with pytest.raises(UndefinedScore, match="NaN or infinity"):
        Pairs(first_edge=[scores], second_edge=[scores * torch.nan])


def test_a_side_that_an_explainer_does_not_score_is_named():
    edges_only = Pairs(first_edge=[torch.ones(1, 2)], second_edge=[torch.ones(1, 2)])
    assert EdgeStability()(edges_only).tolist() == [1.0]
    with pytest.raises(UndefinedScore, match="hold no feature scores"):
        FeatureStability()(edges_only)


def test_vectors_and_truths_that_do_not_fit_are_refused():
    with pytest.raises(BadExplanation, match=r"'score' must have the shape \(any\)"):
        Vectors([torch.ones(1, 2)])
    with pytest.raises(UndefinedScore, match="target 1 hold NaN"):
        Vectors([torch.ones(1), torch.full((2,), torch.nan)])
    with pytest.raises(BadExplanation, match="scores of 1 targets, but truths of 0"):
        Truths([torch.ones(2)], [])
    with pytest.raises(BadExplanation, match=r"'is_true' must be torch.bool"):
        Truths([torch.ones(2)], [torch.ones(2)])


def test_cases_are_reduced_to_targets_one_by_one():
    value, target = tensor([3.0, 1.0, 5.0, 2.0]), torch.tensor([2, 0, 2, 2])
    assert mean_over_cases(value, target, 3)[[0, 2]].tolist() == pytest.approx(
        [1.0, 10 / 3], abs=1e-12
    )
    assert min_over_cases(value, target, 3)[[0, 2]].tolist() == [1.0, 2.0]
    assert mean_over_cases(value, target, 3)[1].isnan()
    assert min_over_cases(value, target, 3)[1].isnan()
