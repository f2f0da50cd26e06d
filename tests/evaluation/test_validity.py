"""Short forms of `bench/validity.py`: chance scores as chance, good explanations win, known truths
are found.
"""

import itertools

import pandas as pd
import pytest
import torch
import validity
import validity_good
import validity_judging
import validity_models
import validity_whitebox
import whitebox

import graphgauge as gg

CHEAP = (gg.Saliency(), gg.InputXGradient(), gg.GuidedBackprop(), gg.Deconvolution())


@pytest.fixture(scope="module")
def two_hops():
    box = whitebox.feature_box("two hops", 0)
    return validity_models.Named("two hops", box.model, list(box.truth)[:20])


@pytest.fixture(scope="module")
def chance(two_hops):
    return validity.chance_values(two_hops, rankings=10, curves=19, scored=0)


@pytest.fixture(scope="module")
def labels():
    box = whitebox.edge_box("labels", 0)
    return box, [v for v in box.truth if 0 < int(box.truth[v].sum()) < len(box.truth[v])][:20]


@pytest.fixture(scope="module")
def good(labels):
    box, targets = labels
    return validity_good.good_values(box.model, targets, draws=3)


# --- chance ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["edge", "feature"])
def test_random_rankings_score_one_half_and_their_p_values_are_honest(chance, side):
    own = chance.loc["ranking"]
    assert len(own) == 200
    tied, is_low = (
        own[f"{side}_pertinence_tied"],
        (own[f"{side}_pertinence_p"] <= 0.05).astype(float),
    )
    assert abs(tied.mean() - 0.5) < 3 * validity_judging.error(tied) < 0.06
    assert is_low.mean() < 0.05 + 3 * validity_judging.error(is_low)
    assert 0.4 < (own[f"{side}_pertinence_p"] <= 0.5).mean() < 0.6


def test_the_papers_pertinence_of_random_rankings_is_below_one_half(good):
    paper = good.loc["random"]["edge_pertinence"]
    assert paper.mean() < 0.5 - 3 * validity_judging.error(paper)


def test_random_scores_of_nodes_are_chance_however_they_are_pooled_and_distributed():
    """The pooled scores of the neighbours come first, which is wrong for a network that reads the
    target alone.
    """
    box = whitebox.feature_box("local", 0)
    found = validity.chance_values(
        validity.Named("", box.model, list(box.truth)[:24]), rankings=6, curves=19, scored=6
    )
    for kind in validity.KINDS:
        tied, p = (found.loc[kind][f"feature_pertinence_{name}"] for name in ("tied", "p"))
        assert abs(tied.mean() - 0.5) < 3 * validity_judging.error(tied) < 0.1, kind
        assert (p <= 0.05).mean() < 0.05 + 3 * (0.05 * 0.95 / len(p)) ** 0.5, kind


def test_the_baseline_orders_candidates_and_not_nodes():
    box = whitebox.feature_box("local", 0)
    evaluator = gg.Evaluator(
        box.model,
        seed=3,
        timed=0,
        stability="none",
        sides="features",
        feature_trials=19,
        headline="twins",
    )
    means = evaluator.compare(
        [gg.RandomExplainer(), gg.InputXGradient()], list(box.truth)[:60]
    ).headline()
    assert abs(means["feature_pertinence_tied"]["random"] - 0.5) < 0.1
    assert means["feature_pertinence_tied"]["input_x_gradient"] > 0.7


def test_a_random_ranking_has_one_row_of_scores_for_all_other_nodes(two_hops):
    (x,) = validity_judging.random_rankings(two_hops.model, list(two_hops.targets[:1]), 1)
    view = {pooling: x.target_view(pooling).neighbours for pooling in ("max", "mean")}
    torch.testing.assert_close(view["max"], view["mean"])
    assert len(x.feature_score) > 3


@pytest.mark.parametrize(
    ("explainer", "raw"), [(gg.RandomExplainer(), 0.293), (validity.UntrainedMasks(), 0.965)]
)
def test_noise_has_no_corrected_stability_whatever_its_stability(two_hops, explainer, raw):
    values = validity.stability_values(two_hops, explainer)
    for side in ("edge", "feature"):
        assert sum(values[f"{side}_stability"]) / 20 == pytest.approx(raw, abs=0.01)
        assert abs(sum(values[f"{side}_stability_corrected"]) / 20) < 0.02


@pytest.mark.parametrize("law", validity.LAWS)
def test_the_papers_stopping_rule_errs_in_a_third_of_null_cases_and_betting_does_not(law):
    assert validity.null_series(law, 4000).mean() == pytest.approx(0.5, abs=0.005)
    paper, bets = validity.wrong_verdicts(law, 4000)
    assert 0.34 < paper < 0.41
    assert bets < 0.05


# --- good explanations ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "least"), [("edge_pertinence_tied", 0.94), ("edge_pertinence_rank", 0.96)]
)
def test_good_rankings_separate_from_random_ones(good, metric, least):
    assert validity_good.separation(good, metric) > least
    assert validity_good.separation_within(good, metric) > least


def test_separation_is_the_share_of_pairs_that_are_won(good):
    first, second = good.loc["noise 50%"]["edge_pertinence"], good.loc["random"]["edge_pertinence"]
    won = [(a > b) + (a == b) / 2 for a, b in itertools.product(first, second)]
    assert validity_good.separation(good, "edge_pertinence", "noise 50%") == pytest.approx(
        sum(won) / len(won), abs=1e-12
    )


def test_a_ranking_and_its_reverse_add_up_to_one(good):
    assert abs(validity_good.reversal(good, "edge_pertinence_rank").mean()) < 0.03
    assert abs(validity_good.reversal(good, "edge_pertinence_tied").mean()) < 0.12


@pytest.mark.parametrize("metric", ["edge_pertinence_tied", "edge_pertinence_rank"])
def test_noise_lowers_the_score(good, metric):
    curve = validity_good.doses(good, metric)
    assert curve.mean().diff().dropna().max() < 0.02
    assert (validity_good.falling(curve) < 0).mean() >= 0.95


def test_mixing_no_noise_keeps_the_ranking_and_mixing_only_noise_forgets_it(labels):
    box, targets = labels
    (x,) = gg.InputXGradient().explain(box.model, targets[:1])
    order = x.edge_score.argsort(descending=True, stable=True)
    assert torch.equal(
        validity_good.mixed(x, 0.0, 0).edge_score.argsort(descending=True, stable=True), order
    )
    one, other = (validity_good.mixed(x, 1.0, k).edge_score for k in range(2))
    assert sorted(one.tolist()) == sorted(other.tolist()) == list(range(1, len(one) + 1))
    assert not torch.equal(one, other)


# --- known truths ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["labels", "weights"])
def test_true_edges_are_those_whose_removal_takes_from_the_predicted_class(kind):
    box = whitebox.edge_box(kind, 1)
    source = box.model.source
    x, edge_index, weight = source.x, source.edge_index, source.edge_attrs["edge_weight"]
    checked = 0
    for target in list(box.truth)[:6]:
        logit = box.model.net(x, edge_index, weight)[target].detach()
        for edge, is_true in zip(
            box.model.computation_graphs([target])[0].edges.tolist(),
            box.truth[target].tolist(),
            strict=True,
        ):
            left = torch.arange(len(weight)) != edge
            without = box.model.net(x, edge_index[:, left], weight[left])[target].detach()
            assert (float((logit - without)[logit.argmax()]) > 1e-5) == is_true
            checked += 1
    assert checked > 50


@pytest.mark.parametrize("kind", whitebox.KINDS)
def test_true_features_are_those_whose_absence_takes_from_the_predicted_class(kind):
    box = whitebox.feature_box(kind, 1)
    x, edge_index = box.model.source.x, box.model.source.edge_index
    for target, column in itertools.product(list(box.truth)[:6], range(whitebox.FEATURES)):
        logit = box.model.net(x, edge_index)[target].detach()
        for block in range(2):
            rows = torch.arange(len(x)) == target if block == 0 else torch.arange(len(x)) != target
            edited = x.clone()
            edited[rows, column] = 0
            lost = float(
                (logit - box.model.net(edited, edge_index)[target].detach())[logit.argmax()]
            )
            assert (lost > 1e-5) == bool(box.truth[target][block * whitebox.FEATURES + column])


def test_metrics_order_explainers_as_the_effects_of_edits_do(labels):
    box, targets = labels
    values = validity_whitebox.box_values(box, targets[:12], CHEAP, seed=0).loc[""]
    means = (
        values[["AP", "effect", "pertinence_tied", "pertinence_rank"]].groupby("explainer").mean()
    )
    assert means.loc["oracle", "AP"] == means.loc["oracle", "effect"] == 1
    assert means["pertinence_tied"].idxmin() == means["effect"].idxmin() == "saliency"
    four = values.drop("oracle", level="explainer")
    for metric in ("pertinence_tied", "pertinence_rank"):
        over_means, within = validity_whitebox.agreement(four, "effect", metric)
        assert over_means > 0.75
        assert within > 0.5


def test_an_oracle_of_substitutions_beats_every_random_order():
    box = whitebox.feature_box("two hops", 0)
    values = validity_whitebox.box_values(box, list(box.truth)[:8], (gg.InputXGradient(),), seed=0)
    means = values.groupby(["pooling", "explainer"]).mean()
    for pooling in ("max", "sum"):
        assert means.loc[(pooling, "oracle"), "pertinence_rank"] > 0.97
        assert means.loc[(pooling, "oracle"), "ec"] < means.loc[(pooling, "input_x_gradient"), "ec"]


def test_rank_correlation_shares_the_ranks_of_ties():
    assert validity_judging.spearman([1, 2, 3, 4], [10, 20, 30, 40]) == pytest.approx(1)
    assert validity_judging.spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    ranked = pd.DataFrame({"a": [1.0, 1.0, 2.0, 5.0], "b": [0.3, 0.1, 0.1, 0.9]}).rank()
    assert validity_judging.spearman([1, 1, 2, 5], [0.3, 0.1, 0.1, 0.9]) == pytest.approx(
        ranked.corr().loc["a", "b"]
    )
    # NaN: nothing to rank
    assert validity_judging.spearman([1, 1], [1, 2]) != validity_judging.spearman([1, 1], [1, 2])
