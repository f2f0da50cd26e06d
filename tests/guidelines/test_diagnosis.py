"""Diagnosis: every check speaks up once and is silent once, and names the numbers it speaks of."""

import random
from dataclasses import replace
from math import comb
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.chosen_results import GOOD, good, made_row, run
from support.quick_evaluation import QUICK, node_model

import graphgauge as gg
from graphgauge.evaluation import Results, Settings
from graphgauge.execution import ADVICE_WITHOUT_MASKS
from graphgauge.guidelines import Requirements, diagnose, paper_table, shipped_benchmark, verdicts
from graphgauge.guidelines.findings import binomial_tail, find_rule, load_rules

FIXED = Settings(early_stop="none", trials=(100, 100))
SPREAD = [k / 100 for k in range(1, 101)]


def found(name, numbers, wanted=None, settings=FIXED, **options):
    results = numbers if isinstance(numbers, Results) else run(numbers, settings=settings)
    return [
        each
        for each in diagnose(results, wanted, **{"accuracy": 0.9, **options})
        if each.name == name
    ]


def only(name, numbers, wanted=None, **options):
    (each,) = found(name, numbers, wanted, **options)
    return each


def test_pertinence_below_half_with_the_tied_variant():
    values = [0.2] * 31 + [0.9] * 69
    own = only(
        "pertinence_below_half", {"lrp": good(edge_pertinence=values, edge_pertinence_tied=0.66)}
    )
    assert own.text == (
        "Edge pertinence of lrp is below 0.5 on 31 of 100 (31 %) targets, mean 0.683; with ties "
        "as half the mean is 0.66"
    )
    assert own.advice.startswith("use the tied variant")
    assert own.source == "paper"
    assert (
        found("pertinence_below_half", {"lrp": good(edge_pertinence=[0.2] * 24 + [0.9] * 76)}) == []
    )
    own = only(
        "pertinence_below_half", {"lrp": good(edge_pertinence=0.4, edge_pertinence_tied=0.45)}
    )
    assert own.advice.startswith("also the tied variant is below 0.5")


def test_pertinence_below_half_counts_ties_where_there_are_curves():
    story = SimpleNamespace(cases=(SimpleNamespace(tied=0.8),))
    results = run({"lrp": good(edge_pertinence=[0.2] * 40 + [0.9] * 60)}, settings=FIXED)
    results = replace(results, stories={("lrp", k, 0, "edge"): lambda: story for k in range(100)})
    own = only("pertinence_below_half", results)
    assert "80 % of their curve points are ties" in own.text
    assert own.numbers["ties"] == pytest.approx(0.8)


def test_low_stability():
    own = only("low_stability", {"gnn_explainer": good(edge_stability=0.7)})
    assert own.text == "Edge stability of gnn_explainer is 0.7 over 100 targets, below 0.8"
    assert found("low_stability", {"gnn_explainer": good(edge_stability=0.8)}) == []


def test_high_compactness():
    own = only("high_compactness", {"lrp": good(edge_ec=50.5)})
    assert (
        own.text
        == "Edge effective compactness of lrp is 50.5 over 100 targets, above 50 (half the cap)"
    )
    own = only("high_compactness", {"lrp": good(feature_ec=12)}, Requirements(num_features=100))
    assert "is 12 over 100 targets, above 10 (10% of 100 features" in own.text
    assert (
        found(
            "high_compactness",
            {"lrp": good(edge_ec=50.0, feature_ec=10)},
            Requirements(num_features=100),
        )
        == []
    )


def test_slow():
    own = only("slow", {"lrp": good(time=6.5)})
    assert own.text.startswith("lrp takes 6.5 s for an explanation, and 5 s is the limit")
    assert (
        only("slow", {"lrp": good(time=0.4)}, Requirements(latency="interactive")).numbers["limit"]
        == 0.3
    )
    assert found("slow", {"lrp": good(time=4.9)}) == []


def test_unstable_across_samples():
    own = only("unstable_across_samples", {"lrp": good(edge_pertinence=[0.0, 1.0] * 50)})
    assert "from 100 targets" in own.text
    assert own.numbers["half"] == pytest.approx(0.098, abs=0.01)
    assert "200 targets" in own.advice
    assert (
        found(
            "unstable_across_samples",
            run({"lrp": good(edge_pertinence=[0.0, 1.0] * 100)}, settings=FIXED),
        )
        == []
    )
    assert found("unstable_across_samples", {"lrp": GOOD}) == []


def test_unlike_the_benchmark():
    table = paper_table()
    numbers = {
        "lrp": good(edge_pertinence=0.6, feature_pertinence=0.87, feature_ec=35.9, edge_ec=43.1)
    }
    own = only("unlike_benchmark", numbers, summary=table)
    assert own.text == "Edge pertinence of lrp is 0.6, and 0.75 ± 0.05 in the given benchmark"
    assert (
        found(
            "unlike_benchmark",
            {"lrp": good(edge_pertinence=0.7, feature_ec=35.9, edge_ec=43.1)},
            summary=table,
        )
        == []
    )
    assert found("unlike_benchmark", {"mine": GOOD}) == []
    # no SD, no saying
    assert found("unlike_benchmark", numbers, summary=table.assign(sd=float("nan"))) == []


def test_a_small_difference_is_none_however_small_the_sd():
    table = paper_table().assign(sd=1e-6)
    rows = table[(table["task"] == "node_classification") & (table["explainer"] == "lrp")]
    numbers = dict(zip(rows["metric"], rows["mean"], strict=True))
    for metric, near in (("edge_pertinence", 0.09), ("edge_stability", -0.09), ("edge_ec", 9.0)):
        assert (
            found(
                "unlike_benchmark",
                {"lrp": good(**{**numbers, metric: numbers[metric] + near})},
                summary=table,
            )
            == []
        )
    off = good(**{**numbers, "edge_ec": numbers["edge_ec"] + 11})
    assert (
        only("unlike_benchmark", {"lrp": off}, summary=table).numbers["there"] == numbers["edge_ec"]
    )


def test_without_another_benchmark_ours_is_compared_with():
    table = shipped_benchmark()
    rows = table[
        (table["task"] == "node_classification") & (table["explainer"] == "input_x_gradient")
    ]
    numbers = dict(zip(rows["metric"], rows["mean"], strict=True))
    assert found("unlike_benchmark", {"input_x_gradient": numbers}) == []
    own = only("unlike_benchmark", {"input_x_gradient": {**numbers, "feature_pertinence": 0.5}})
    assert own.text.endswith(" in the benchmark that comes with graphgauge")


def test_a_deterministic_explainer_that_is_unstable_is_unlike_the_benchmark():
    table = paper_table()
    rows = table[(table["task"] == "node_classification") & (table["explainer"] == "lrp")]
    numbers = dict(zip(rows["metric"], rows["mean"], strict=True))
    own = only("unlike_benchmark", {"lrp": {**numbers, "edge_stability": 0.5}}, summary=table)
    assert own.text == "Edge stability of lrp is 0.5, and 1 ± 0 in the given benchmark"


@pytest.mark.parametrize(
    ("status", "what"),
    [("nan_attribution", "A score is"), ("nan_prediction", "A prediction of an edited graph is")],
)
def test_invalid_scores(status, what):
    own = only("invalid_scores", {"lrp": good(edge_pertinence=[status] * 7 + [0.9] * 93)})
    assert own.text.lower() == f"{what} nan or infinite for lrp on 7 of 100 (7 %) targets".lower()
    assert found("invalid_scores", {"lrp": GOOD}) == []


@pytest.mark.parametrize(
    ("name", "status"),
    [("empty_graphs", "empty"), ("no_reference", "no_reference"), ("no_mask", "no_mask")],
)
def test_targets_that_cannot_be_judged(name, status):
    numbers = good(edge_ec=[status] * 6 + [8.0] * 94)
    own = only(name, {"lrp": numbers, "saliency": numbers})  # once, not once for each explainer
    assert "6 of 100 (6 %) targets" in own.text
    assert found(name, {"lrp": GOOD}) == []


def test_constant_scores():
    own = only(
        "constant_scores", {"lrp": good(edge_stability_corrected=["constant"] * 9 + [1.0] * 91)}
    )
    assert (
        own.text
        == "Edge scores of lrp are constant, or there is but one, on 9 of 100 (9 %) targets"
    )
    assert found("constant_scores", {"lrp": good(edge_stability_corrected=1.0)}) == []


def test_never_flipped():
    own = only("never_flipped", {"lrp": good(edge_ec=[100.0] * 43 + [8.0] * 57)})
    assert own.text == (
        "The prediction never changes on 43 of 100 (43 %) targets of lrp (edge side), so its mean "
        "EC of 47.56 mixes two things"
    )
    assert found("never_flipped", {"lrp": good(edge_ec=[100.0] * 24 + [8.0] * 76)}) == []


def test_explainers_that_are_the_same():
    numbers = good(edge_pertinence=SPREAD, edge_ec=[1.0, 2.0] * 50, feature_ec=[3.0, 4.0] * 50)
    own = only(
        "same_explainers",
        {"saliency": numbers, "guided_backprop": numbers, "lrp": good(edge_ec=9, feature_ec=9)},
    )
    assert own.text == (
        "saliency and guided_backprop have the same numbers (feature and edge side) on all "
        "100 targets"
    )
    assert "plain gradient" in own.advice
    other = {**numbers, "edge_pertinence": [*SPREAD[:-1], 0.5], "feature_pertinence": 0.8}
    assert found("same_explainers", {"saliency": numbers, "guided_backprop": other}) == []
    # equal, but nothing that could differ
    assert found("same_explainers", {"saliency": GOOD, "lrp": GOOD}) == []
    assert "wraps the other" in only("same_explainers", {"mine": numbers, "yours": numbers}).advice


def test_a_deterministic_explainer_that_changes():
    own = only("changing_deterministic", {"lrp": good(edge_stability=[0.98] * 2 + [1.0] * 98)})
    assert own.text == (
        "Edge stability of lrp, which is deterministic, is below 1 on 2 of 100 (2 %) targets "
        "(least 0.98)"
    )
    assert (
        found("changing_deterministic", {"lrp": GOOD, "gnn_explainer": good(edge_stability=0.9)})
        == []
    )


def test_a_mask_that_learns_nothing():
    own = only(
        "untrained_mask",
        {"graphmask": good(feature_stability=0.965, feature_stability_corrected=0.002)},
    )
    assert (
        own.text == "Feature stability of graphmask is 0.965, but 0.002 once corrected for chance"
    )
    assert (
        found(
            "untrained_mask",
            {"graphmask": good(feature_stability=0.965, feature_stability_corrected=0.5)},
        )
        == []
    )


def test_few_trials():
    (own,) = found(
        "few_trials", {"lrp": GOOD}, settings=Settings(trials=(10, 20), early_stop="none")
    )
    assert own.text == "At least 10 random curves are drawn, and the paper's rule begins at 30"
    few = Settings(twin_trials=9, early_stop="none")
    (own,) = found("few_trials", {"lrp": good(edge_pertinence_p=0.1)}, settings=few)
    assert own.text == "p-values of the edge side come from 9 random curves, so none is below 0.1"
    assert found("few_trials", {"lrp": GOOD}, settings=few) == []  # no p-values
    (own,) = found("few_trials", {"lrp": GOOD}, settings=Settings())
    assert "37 %" in own.text
    assert "not 5 %" in own.text
    assert found("few_trials", {"lrp": GOOD}) == []
    assert found("few_trials", {"lrp": GOOD}, settings=Settings(tau=None)) == []


def test_no_better_than_the_random_explainer_of_the_run():
    half = good(edge_pertinence_tied=[0.4, 0.6] * 50, feature_pertinence_tied=0.9)
    own = only(
        "no_better_than_random",
        {"lrp": half, "random": good(edge_pertinence_tied=0.5, feature_pertinence_tied=0.5)},
    )
    assert own.text.startswith(
        "Edge pertinence (ties half) of lrp beats that of 'random' on 50 of 100 (50 %) targets "
        "(sign test p = 0.54"
    )
    assert own.numbers["p"] == pytest.approx(binomial_tail(50, 100, 0.5))
    clear = good(edge_pertinence=[0.9] * 60 + [0.3] * 40)
    assert (
        found(
            "no_better_than_random",
            {"lrp": clear, "random": good(edge_pertinence=0.5, feature_pertinence=0.5)},
        )
        == []
    )


def test_ec_and_change_are_looked_at_beside_random():
    chance = good(
        edge_pertinence_tied=0.5,
        feature_pertinence_tied=0.5,
        edge_ec=[5.0, 7.0] * 50,
        edge_pertinence_abs=[0.4, 0.6] * 50,
    )
    same = [0.4, 0.6] * 50
    mine = good(
        edge_pertinence_tied=same,
        feature_pertinence_tied=0.9,
        edge_ec=[4.0, 6.0] * 50,
        edge_pertinence_abs=same,
    )
    # one edit fewer on each target
    assert found("no_better_than_random", {"lrp": mine, "random": chance}) == []
    mine["edge_ec"] = [5.0, 7.0] * 50
    own = only("no_better_than_random", {"lrp": mine, "random": chance})
    assert "; Edge effective compactness 6 against 6" in own.text
    assert "; Edge pertinence (by |change|) 0.5 against 0.5" in own.text


def test_measures_that_contradict_each_other():
    chance = good(edge_pertinence_tied=0.5, edge_ec=[3.0] * 100, feature_pertinence=0.5)
    numbers = {"ig": good(edge_pertinence_tied=0.75, edge_ec=[4.0, 6.0] * 50), "random": chance}
    own = only("contradiction", numbers)
    assert own.text.startswith(
        "The edge side of ig is worse than random: Edge effective compactness 5 against 3, "
        "difference 2 [1.8, 2.2] over 100 targets"
    )
    assert (
        "although other measures are better: Edge pertinence (ties half) 0.75 against 0.5"
        in own.text
    )
    numbers["ig"]["edge_pertinence_tied"] = 0.5
    assert "although" not in only("worse_than_random", numbers).text
    assert (
        found(
            "contradiction", {"ig": good(edge_pertinence_tied=0.75, edge_ec=2.0), "random": chance}
        )
        == []
    )


def test_a_run_without_a_random_explainer():
    assert "EC has nothing to be compared with" in only("no_baseline", {"lrp": GOOD}).text
    assert found("no_baseline", {"lrp": GOOD, "random": GOOD}) == []


@pytest.mark.parametrize("seed", range(6))
def test_a_finding_of_no_better_than_random_forbids_a_pass_and_its_absence_does_not(seed):
    draw = random.Random(seed)

    def scores(centre):
        return [min(1.0, max(0.0, draw.gauss(centre, 0.2))) for _ in range(40)]

    numbers = {
        name: good(
            edge_pertinence_tied=scores(centre),
            edge_ec=8.0,
            feature_pertinence_tied=0.9 if name == "lrp" else 0.5,
        )
        for name, centre in (("lrp", 0.7), ("random", draw.choice([0.5, 0.7])))
    }
    results = run(numbers, 40, Settings(headline="twins"))
    is_found = bool(found("no_better_than_random", results))
    outcome = next(
        own.outcome
        for own in verdicts(results)
        if own.explainer == "lrp" and own.metric == "edge_pertinence_tied"
    )
    assert is_found == (outcome in ("undecided", "fail"))


def test_no_better_than_random_curves():
    own = only(
        "no_better_than_random",
        {"lrp": good(edge_pertinence_p=[0.01] * 6 + [0.5] * 94, feature_pertinence_p=0.01)},
    )
    assert "on 6 of 100 (6 %) targets, and 5 % would be by chance (p = 0.384)" in own.text
    assert (
        found("no_better_than_random", {"lrp": good(edge_pertinence_p=[0.01] * 12 + [0.5] * 88)})
        == []
    )
    assert found("no_better_than_random", {"lrp": GOOD}) == []  # nothing to tell from


def test_fewer_than_19_random_orders_of_features_have_no_p_value_of_005():
    results = run(
        {"lrp": good(feature_pertinence_p=0.1)},
        settings=Settings(early_stop="none", feature_trials=9),
    )
    assert only("few_trials", results).text.endswith(
        "the feature side come from 9 random curves, so none is below 0.1"
    )
    assert found("no_better_than_random", results) == []  # all have the least p there can be
    enough = replace(results, settings=Settings(early_stop="none", feature_trials=19))
    assert found("few_trials", enough) == []


def test_the_sign_test_is_the_sum_of_its_definition():
    outcomes = [sum(int(bit) for bit in f"{k:08b}") for k in range(256)]
    for wins in range(9):
        assert binomial_tail(wins, 8, 0.5) == pytest.approx(
            sum(heads >= wins for heads in outcomes) / 256
        )


@pytest.mark.parametrize(("wins", "n"), [(1000, 2000), (1090, 2000), (600, 1001)])
def test_the_sign_test_holds_for_runs_whose_coefficients_are_no_floats(wins, n):
    exact = sum(comb(n, k) for k in range(wins, n + 1)) / 2**n
    assert binomial_tail(wins, n, 0.5) == pytest.approx(exact, rel=1e-9)
    assert binomial_tail(n, n, 1.0) == 1.0


def test_explainers_compared_on_different_targets():
    own = only(
        "unequal_targets",
        {"lrp": GOOD, "saliency": good(edge_ec=["nan_attribution"] * 4 + [8.0] * 96)},
    )
    assert own.text == (
        "Explainers are compared on different targets (edge side): 96 are shared by all, but "
        "lrp 100"
    )
    assert found("unequal_targets", {"lrp": GOOD, "saliency": GOOD}) == []


def test_an_accuracy_nobody_gave():
    assert only("unknown_accuracy", {"lrp": GOOD}, accuracy=None).numbers == {}
    assert found("unknown_accuracy", {"lrp": GOOD}) == []


def test_findings_do_not_depend_on_the_order_of_targets_and_name_their_numbers():
    numbers = good(
        edge_pertinence=SPREAD,
        edge_ec=[100.0, 9.0] * 50,
        edge_stability=0.5,
        time=8,
        edge_pertinence_p=0.5,
    )
    results = run({"lrp": numbers, "random": GOOD})
    rows = list(results.rows)
    random.Random(1).shuffle(rows)
    key = lambda each: (each.name, each.text)  # noqa: E731
    first, second = (
        sorted(diagnose(each), key=key) for each in (results, replace(results, rows=tuple(rows)))
    )
    assert [each.text for each in first] == [each.text for each in second]
    assert len(first) >= 8
    for each in first:
        assert all(
            f"{number:.3g}" in each.text or f"{number:.4g}" in each.text
            for number in each.numbers.values()
        )
        assert str(each).endswith(".")


def test_a_run_without_rows_has_nothing_to_diagnose():
    assert [each.name for each in diagnose(Results((), FIXED), accuracy=1.0)] == []


def test_a_real_run_is_diagnosed_with_its_curves(tmp_path):
    targets = list(range(12))
    explainers = [gg.Saliency(), gg.RandomExplainer()]
    results = gg.Evaluator(node_model(), **{**QUICK, "timed": 1}).compare(explainers, targets)
    names = {each.name for each in diagnose(results)}
    assert {"few_trials", "unknown_accuracy"} <= names
    results.save(tmp_path)
    loaded = Results.load(tmp_path)
    assert {each.name for each in diagnose(loaded)} == names
    low = [each for each in diagnose(results) if each.name == "pertinence_below_half"]
    assert all("ties" in each.numbers for each in low)


def test_a_row_of_a_made_run_is_as_evaluation_makes_it():
    assert made_row("lrp", 0, "edge_ec", 100.0, "", "").cell.flipped is False


def test_rules_and_findings_have_each_other():
    """Every rule is used, and the advice on masks is the one that explainers give."""
    folder = Path(gg.guidelines.__file__).parent
    sources = [path.read_text() for path in folder.glob("*_checks.py")]
    for rule in load_rules()["finding"]:
        used = "status" in rule or any(f'"{rule["name"]}"' in source for source in sources)
        assert used, rule
    assert find_rule("no_mask")["advice"] == ADVICE_WITHOUT_MASKS
