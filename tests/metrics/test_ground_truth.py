"""Agreement with a ground truth, against the definitions, pair by pair and tie by tie."""

from itertools import combinations

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from support.metric_bundles import tensor

from graphgauge.core.errors import BadExplanation, BadSetting, UndefinedScore
from graphgauge.metrics import (
    Auroc,
    AveragePrecision,
    F1AtK,
    Jaccard,
    PrecisionAtK,
    RecallAtK,
    Truths,
    auroc,
    average_precision,
    f1_at_k,
    jaccard,
    precision_at_k,
    recall_at_k,
)

# four values: many ties
ENTRIES = st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=9)


def literal_auroc(score, truth):
    """Every pair of a true and another one; a tie counts half."""
    pairs = [
        (s, t)
        for s, m in zip(score, truth, strict=True)
        if m
        for t, n in zip(score, truth, strict=True)
        if not n
    ]
    return sum((s > t) + (s == t) / 2 for s, t in pairs) / len(pairs)


def literal_average_precision(score, truth):
    """For each true one: of those scored at least as high, how many are true?"""
    shares = []
    for own, is_true in zip(score, truth, strict=True):
        if is_true:
            reached = [other for s, other in zip(score, truth, strict=True) if s >= own]
            shares.append(sum(reached) / len(reached))
    return sum(shares) / len(shares)


def literal_jaccard(score, truth):
    """The mean overlap of the true things with every choice of as many things.

    A choice leaves no higher score out.
    """
    true = {i for i, is_true in enumerate(truth) if is_true}
    overlaps = []
    for chosen in combinations(range(len(score)), len(true)):
        left = set(range(len(score))) - set(chosen)
        if all(score[i] >= score[j] for i in chosen for j in left):
            overlaps.append(len(true & set(chosen)) / len(true | set(chosen)))
    return sum(overlaps) / len(overlaps)


@given(ENTRIES)
def test_auroc_equals_its_definition(entries):
    score, truth = zip(*entries, strict=True)
    assume(any(truth) and not all(truth))
    assert auroc(tensor(score), torch.tensor(truth)).item() == pytest.approx(
        literal_auroc(score, truth), abs=1e-12
    )


@given(ENTRIES)
def test_average_precision_and_jaccard_equal_their_definitions(entries):
    score, truth = zip(*entries, strict=True)
    assume(any(truth))
    own, is_true = tensor(score), torch.tensor(truth)
    assert average_precision(own, is_true).item() == pytest.approx(
        literal_average_precision(score, truth), abs=1e-12
    )
    assert jaccard(own, is_true).item() == pytest.approx(literal_jaccard(score, truth), abs=1e-9)


def test_scores_of_no_meaning_reach_one_half():
    generator, truth = torch.Generator().manual_seed(0), torch.arange(20) < 5
    draws = torch.stack([auroc(torch.rand(20, generator=generator), truth) for _ in range(2000)])
    assert abs(draws.mean() - 0.5) < 4 * draws.std() / 2000**0.5


def test_constant_scores_do_not_profit_from_the_order_of_the_list():
    truth = torch.arange(50_000) < 20_000
    assert auroc(torch.ones(50_000), truth).item() == 0.5
    assert average_precision(torch.ones(50_000), truth).item() == pytest.approx(0.4, abs=1e-12)
    assert jaccard(torch.ones(50_000), truth).item() == pytest.approx(
        jaccard(torch.ones(50_000), truth.flip(0)).item(), abs=1e-12
    )
    # 0.4 of 20,000 hit: 8 / (40 - 8)
    assert jaccard(torch.ones(50_000), truth).item() == pytest.approx(0.25, abs=1e-3)


def test_what_is_undefined_is_an_error_of_the_function_and_a_gap_of_the_class():
    score = torch.ones(2)
    for truth in (torch.tensor([True, True]), torch.tensor([False, False])):
        with pytest.raises(UndefinedScore, match="auroc compares true entries with others"):
            auroc(score, truth)
    for value in (average_precision, jaccard):
        with pytest.raises(UndefinedScore, match="none of the 2 is true"):
            value(score, torch.tensor([False, False]))
    bundle = Truths([score, score], [torch.tensor([True, True]), torch.tensor([False, False])])
    assert Auroc()(bundle).isnan().tolist() == [True, True]
    assert AveragePrecision()(bundle).isnan().tolist() == [False, True]
    assert Jaccard()(bundle).isnan().tolist() == [False, True]


def literal_at_k(score, truth, k):
    """Precision, recall and F1 of every choice of k things that leaves no higher score out; their
    means.
    """
    true, found = {i for i, is_true in enumerate(truth) if is_true}, []
    for chosen in combinations(range(len(score)), k):
        left = set(range(len(score))) - set(chosen)
        if all(score[i] >= score[j] for i in chosen for j in left):
            precision, recall = len(true & set(chosen)) / k, len(true & set(chosen)) / len(true)
            found.append(
                (
                    precision,
                    recall,
                    2 * precision * recall / (precision + recall) if precision else 0.0,
                )
            )
    return [sum(values) / len(values) for values in zip(*found, strict=True)]


@given(ENTRIES, st.integers(1, 9))
def test_precision_recall_and_f1_at_k_equal_their_definitions_averaged_over_all_ways_to_break_ties(
    entries, k
):
    score, truth = zip(*entries, strict=True)
    assume(any(truth) and k <= len(score))
    found = [
        value(tensor(score), torch.tensor(truth), k).item()
        for value in (precision_at_k, recall_at_k, f1_at_k)
    ]
    assert found == pytest.approx(literal_at_k(score, truth, k), abs=1e-12)


def test_at_k_constant_scores_reach_exactly_what_chance_reaches():
    truth = torch.arange(20) < 5
    values = [
        value(torch.ones(20), truth, 8).item() for value in (precision_at_k, recall_at_k, f1_at_k)
    ]
    assert values == pytest.approx([5 / 20, 8 / 20, 2 * 2 / 13], abs=1e-12)


def test_there_is_no_value_at_k_where_all_are_selected_and_k_is_the_number_true_by_default():
    score, truth = tensor([0.9, 0.8, 0.1]), torch.tensor([True, False, True])
    for metric in (PrecisionAtK, RecallAtK, F1AtK):
        assert metric()(Truths([score], [truth])).item() == 0.5  # of the top two one is true
        assert metric(k=3)(Truths([score], [truth])).isnan().all()
        assert metric(k=1)(Truths([score], [~truth.logical_or(~truth)])).isnan().all()
        with pytest.raises(BadSetting, match="k must be a whole number"):
            metric(k=0)
    for k in (0, 4, 1.5, True):
        with pytest.raises(BadSetting, match="from 1 to the number of scores, 3"):
            precision_at_k(score, truth, k)


def at_two(value):
    """A metric at k as a function of scores and truth."""
    return lambda score, truth: value(score, truth, 2)


@pytest.mark.parametrize(
    "value",
    [auroc, average_precision, jaccard, *map(at_two, (precision_at_k, recall_at_k, f1_at_k))],
    ids=["auroc", "average_precision", "jaccard", "precision_at_k", "recall_at_k", "f1_at_k"],
)
def test_bad_scores_and_truths_are_refused_in_one_clear_sentence_each(value):
    truth = torch.tensor([True, False, False])
    for bad in (torch.nan, torch.inf):
        with pytest.raises(UndefinedScore, match="1 of 3 scores are NaN or infinite"):
            value(tensor([bad, 0.2, 0.3]), truth)
    with pytest.raises(
        BadExplanation, match=r"needs 'is_true' as torch.bool, but it is torch.float32"
    ):
        value(tensor([0.1, 0.2, 0.3]), truth.float())
    with pytest.raises(BadExplanation, match=r"vectors of one length.*\(2,\) and \(3,\)"):
        value(tensor([0.1, 0.2]), truth)
    with pytest.raises(BadExplanation, match=r"vectors of one length.*\(3, 1\) and \(3, 1\)"):
        value(tensor([0.1, 0.2, 0.3])[:, None], truth[:, None])
    with pytest.raises(BadExplanation, match="needs 'is_true' as a tensor, but got list"):
        value(tensor([0.1, 0.2, 0.3]), [True, False, False])
