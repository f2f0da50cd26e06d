"""Values known by hand, for every metric: one table, to be read from top to bottom."""

import math

import pytest
import torch
from support.metric_bundles import one_target, tensor

from graphgauge.metrics import (
    Auroc,
    AveragePrecision,
    Characterization,
    DeletionAuc,
    EdgeStability,
    EdgeStabilityCorrected,
    EffectiveCompactness,
    FeatureStability,
    FeatureStabilityCorrected,
    FidelityMinus,
    FidelityMinusAuc,
    FidelityPlus,
    FidelityPlusAuc,
    InsertionAuc,
    Jaccard,
    Pairs,
    Pertinence,
    PertinenceAbs,
    PertinenceP,
    PertinenceRank,
    PertinenceTied,
    Sparsity,
    Truths,
    Unfaithfulness,
    Vectors,
    jackknife_over_pairs,
)

NO, YES = False, True
# no early stop: all random curves count
ONE, TWO = (Pertinence(least=1, most=1), Pertinence(least=2, most=2))
HALF_ROOT = 1 - math.sqrt(2) / 2  # likeness of two orthogonal vectors


def flipping(*cases, **settings):
    """Cases of which only the flips matter."""
    return one_target(
        *[(1.0, [0.5] * len(flips), flips, [[0.5] * len(flips)]) for flips in cases], **settings
    )


def against(curve, *random, flips=None, start=1.0):
    """One case: the explanation's curve and random ones; it never flips unless told."""
    return one_target((start, curve, flips or [NO] * len(curve), list(random)))


def edges(first, second):
    """Pairs of edge scores of one target."""
    return Pairs(first_edge=[tensor(first)], second_edge=[tensor(second)])


def features(first, second, is_target):
    """One pair of feature scores of one target."""
    return Pairs([tensor([first])], [tensor([second])], [torch.tensor(is_target)])


def truths(score, is_true):
    """Scores and truth of one target."""
    return Truths([tensor(score)], [torch.tensor(is_true) == 1])


FALLS, STAYS, LATE = [0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 0.0]
ONE_OF_TWO = {"candidates": [2], "cap": 1, "top": 1}  #: the curve's one edit is the top one of two
KEPT = {"kept": [0.5], **ONE_OF_TWO}

CASES = {
    # effective compactness: the first edit that flips, or the bound
    "one decisive edit, made first": (EffectiveCompactness(), flipping([YES, YES, YES, YES]), 1),
    "one decisive edit, made last": (EffectiveCompactness(), flipping([NO, NO, NO, YES]), 4),
    "never flips: the number of candidates": (EffectiveCompactness(), flipping([NO, NO, NO]), 3),
    "never flips: the cap, where that is less": (
        EffectiveCompactness(),
        flipping([NO, NO, NO], cap=2),
        2,
    ),
    "flips at the cap": (EffectiveCompactness(), flipping([NO, YES, YES], cap=2), 2),
    "flips behind the cap only": (EffectiveCompactness(), flipping([NO, NO, YES], cap=2), 2),
    "flips and comes back": (EffectiveCompactness(), flipping([NO, YES, NO]), 2),
    "one candidate": (EffectiveCompactness(), flipping([NO]), 1),
    "two references: the easier one": (
        EffectiveCompactness(),
        flipping([NO, NO, YES], [NO, YES, YES]),
        2,
    ),
    # pertinence, the paper's: strictly below, up to the EC
    "always below": (ONE, against([0.1, 0.2], [0.5, 0.6]), 1.0),
    "always above": (ONE, against([0.5, 0.6], [0.1, 0.2]), 0.0),
    "constant curves: every tie is lost": (ONE, against(STAYS, STAYS), 0.0),
    "one candidate is always a tie": (ONE, against([0.3], [0.3]), 0.0),
    "the last of all edits is always a tie": (ONE, against(FALLS, LATE), 0.75),
    "below by no more than the tolerance is a tie": (
        ONE,
        against([0.5 - 5e-7, 0.1], [0.5, 0.2]),
        0.5,
    ),
    "below one random curve and above the other": (TWO, against([0.5], [0.9], [0.1]), 0.5),
    "steps behind the EC do not count": (
        ONE,
        against([0.1, 0.9], [0.2, 0.3], flips=[YES, NO]),
        1.0,
    ),
    "two references are cut at the least EC and averaged": (
        ONE,
        one_target(
            (1.0, [0.1, 0.9], [YES, NO], [[0.2, 0.3]]), (1.0, [0.4, 0.0], [NO, YES], [[0.3, 0.3]])
        ),
        0.5,
    ),
    # pertinence with half for ties, over all steps
    "tied, constant curves": (PertinenceTied(), against(STAYS, STAYS), 0.5),
    "tied, one candidate": (PertinenceTied(), against([0.3], [0.3]), 0.5),
    "tied, one decisive edit first against last": (PertinenceTied(), against(FALLS, LATE), 0.875),
    "tied, the other way round": (PertinenceTied(), against(LATE, FALLS), 0.125),
    "tied, steps behind the EC do count": (
        PertinenceTied(),
        against([0.1, 0.9], [0.2, 0.3], flips=[YES, NO]),
        0.5,
    ),
    "tied, two references are averaged": (
        PertinenceTied(),
        one_target((1.0, [0.1], [NO], [[0.2]]), (1.0, [0.2], [NO], [[0.2]])),
        0.75,
    ),
    "tied, the first random curve only": (
        PertinenceTied(trials=1),
        against([0.1], [0.2], [0.0], [0.0]),
        1.0,
    ),
    # rank and p-value among the random curves, by mean height
    "rank, the lowest of all": (PertinenceRank(), against([0.0, 0.1], [0.2, 0.3], [0.4, 0.0]), 1.0),
    "rank, the highest of all": (
        PertinenceRank(),
        against([0.9, 0.9], [0.2, 0.3], [0.4, 0.0]),
        0.0,
    ),
    "rank, all tied": (PertinenceRank(), against(STAYS, STAYS, STAYS), 0.5),
    "rank, equal means of other curves tie": (
        PertinenceRank(),
        against([0.0, 1.0], [1.0, 0.0], [1.0, 1.0]),
        0.75,
    ),
    "p, the lowest of twenty": (PertinenceP(), against(FALLS, *[STAYS] * 19), 0.05),
    "p, the highest": (PertinenceP(), against(STAYS, *[FALLS] * 19), 1.0),
    "p, all tied: no evidence": (PertinenceP(), against(STAYS, *[STAYS] * 19), 1.0),
    "p, two references: each random order counts once, by its mean over both": (
        PertinenceP(),
        one_target((1.0, [0.1], [NO], [[0.2]] * 4), (1.0, [0.1], [NO], [[0.0]] + [[0.2]] * 3)),
        0.4,
    ),
    "p, at most 1": (PertinenceP(), one_target(*[(1.0, [0.1], [NO], [[0.1]])] * 2), 1.0),
    # pertinence by |change|
    "abs, a rise counts": (PertinenceAbs(), against([1.5, 2.0], [1.0, 0.9]), 1.0),
    "the same rise under the paper's raw comparison": (ONE, against([1.5, 2.0], [1.0, 0.9]), 0.0),
    "abs, as far down as another is up": (PertinenceAbs(), against([0.5], [1.5]), 0.5),
    "abs, nothing moves": (PertinenceAbs(), against([1.0], [0.4]), 0.0),
    # stability of edges: 1 - |â - b̂| / 2
    "equal": (EdgeStability(), edges([[1.0, 2.0]], [[1.0, 2.0]]), 1.0),
    "equal up to scale": (EdgeStability(), edges([[1.0, 2.0]], [[3.0, 6.0]]), 1.0),
    "opposite": (EdgeStability(), edges([[1.0, 2.0]], [[-1.0, -2.0]]), 0.0),
    "orthogonal": (EdgeStability(), edges([[1.0, 0.0]], [[0.0, 7.0]]), HALF_ROOT),
    "zeros and zeros": (EdgeStability(), edges([[0.0, 0.0]], [[0.0, 0.0]]), 1.0),
    "zeros and something": (EdgeStability(), edges([[0.0, 0.0]], [[0.0, 3.0]]), 0.5),
    "two pairs are averaged": (EdgeStability(), edges([[1.0], [1.0]], [[2.0], [-2.0]]), 0.5),
    "no edge": (EdgeStability(), edges([[]], [[]]), math.nan),
    # stability of features: the target's block and the others', half each
    "target's block equal, the others' opposite": (
        FeatureStability(),
        features([[1.0, 2.0], [1.0, 1.0]], [[2.0, 4.0], [-3.0, -3.0]], [YES, NO]),
        0.5,
    ),
    "a large block weighs no more than a small one": (
        FeatureStability(),
        features([[1.0], [1.0], [1.0], [1.0]], [[-1.0], [1.0], [1.0], [1.0]], [YES, NO, NO, NO]),
        0.5,
    ),
    "lonely target: its own block alone": (
        FeatureStability(),
        features([[1.0, 0.0]], [[0.0, 1.0]], [YES]),
        HALF_ROOT,
    ),
    "graph: the nodes' block alone": (
        FeatureStability(),
        features([[1.0], [0.0]], [[0.0], [1.0]], [NO, NO]),
        HALF_ROOT,
    ),
    # stability corrected for chance
    "corrected, equal": (
        EdgeStabilityCorrected(),
        edges([[1.0, 2.0, 3.0]], [[1.0, 2.0, 3.0]]),
        1.0,
    ),
    "corrected, alike as any order is": (
        EdgeStabilityCorrected(),
        edges([[1.0, 1.0]], [[1.0, -1.0]]),
        0.0,
    ),
    "corrected, opposite in any order": (
        EdgeStabilityCorrected(),
        edges([[1.0, 1.0]], [[-1.0, -1.0]]),
        0.0,
    ),
    "corrected, one edge": (EdgeStabilityCorrected(), edges([[1.0]], [[2.0]]), math.nan),
    "corrected, zeros and zeros": (
        EdgeStabilityCorrected(),
        edges([[0.0, 0.0]], [[0.0, 0.0]]),
        math.nan,
    ),
    "corrected, all scores equal": (
        EdgeStabilityCorrected(),
        edges([[0.1] * 3], [[0.7] * 3]),
        math.nan,
    ),
    "corrected, features equal": (
        FeatureStabilityCorrected(),
        features([[1.0, 2.0], [3.0, 5.0]], [[1.0, 2.0], [3.0, 5.0]], [YES, NO]),
        1.0,
    ),
    "corrected, features alike as any order is": (
        FeatureStabilityCorrected(),
        features([[1.0, 1.0], [1.0, 1.0]], [[1.0, -1.0], [1.0, -1.0]], [YES, NO]),
        0.0,
    ),
    "corrected, only the others can be permuted": (
        FeatureStabilityCorrected(),
        features([[1.0], [1.0], [2.0]], [[1.0], [1.0], [2.0]], [YES, NO, NO]),
        1.0,
    ),
    "corrected, one feature": (
        FeatureStabilityCorrected(),
        features([[1.0], [1.0]], [[1.0], [-1.0]], [YES, NO]),
        math.nan,
    ),
    # fidelity and its relatives
    "plus, the top two": (FidelityPlus(top=2), against([0.7, 0.25, 0.1], [0.0] * 3), 0.75),
    "plus, fewer edits than asked for": (
        FidelityPlus(top=10),
        against([0.7, 0.25], [0.0] * 2),
        math.nan,
    ),
    "plus, as many edits as asked for": (
        FidelityPlus(top=2),
        against([0.7, 0.25], [0.0] * 2),
        math.nan,
    ),
    "plus, a gain is below zero": (
        FidelityPlus(top=1),
        against([0.75, 0.75], [0.0] * 2, start=0.5),
        -0.25,
    ),
    "plus, a half of what there is": (
        FidelityPlus(top=0.5),
        one_target((1.0, [0.75, 0.5], [NO] * 2, [[0.0] * 2]), removed=[0.75], top=0.5),
        0.25,
    ),
    "minus": (FidelityMinus(), one_target((0.75, [0.5], [NO], [[0.5]]), **KEPT), 0.25),
    "necessary and sufficient": (
        Characterization(),
        one_target((1.0, [0.0], [YES], [[0.0]]), kept=[1.0], **ONE_OF_TWO),
        1.0,
    ),
    "half of both": (Characterization(), one_target((1.0, [0.5], [NO], [[0.5]]), **KEPT), 0.5),
    "necessary, not sufficient": (
        Characterization(),
        one_target((1.0, [0.0], [YES], [[0.0]]), kept=[0.0], **ONE_OF_TWO),
        0.0,
    ),
    "sufficient, not necessary": (
        Characterization(),
        one_target((1.0, [1.0], [NO], [[0.0]]), kept=[1.0], **ONE_OF_TWO),
        0.0,
    ),
    "one third and one": (
        Characterization(),
        one_target((1.0, [2 / 3], [NO], [[0.0]]), kept=[1.0], **ONE_OF_TWO),
        0.5,
    ),
    "same prediction": (
        Unfaithfulness(),
        one_target(
            (0.8, [0.8], [NO], [[0.8]]),
            start_prob=[[0.8, 0.2]],
            kept_prob=[[0.8, 0.2]],
            **ONE_OF_TWO,
        ),
        0.0,
    ),
    "certain at first, a coin after": (
        Unfaithfulness(),
        one_target(
            (1.0, [0.5], [NO], [[0.5]]),
            start_prob=[[1.0, 0.0]],
            kept_prob=[[0.5, 0.5]],
            **ONE_OF_TWO,
        ),
        0.5,
    ),
    "a coin at first, certain after: infinitely far": (
        Unfaithfulness(),
        one_target(
            (0.5, [1.0], [NO], [[0.5]]),
            start_prob=[[0.5, 0.5]],
            kept_prob=[[1.0, 0.0]],
            **ONE_OF_TWO,
        ),
        1.0,
    ),
    "minus, all are the top ones": (
        FidelityMinus(),
        one_target((0.75, [0.5], [NO], [[0.5]]), kept=[0.75]),
        math.nan,
    ),
    "mean height while edits are taken back": (
        InsertionAuc(),
        one_target((1.0, [0.0] * 2, [NO] * 2, [[0.0] * 2]), insertion=[[0.25, 1.0]]),
        0.625,
    ),
    "area under plus, a straight line from 0.1 to 0.9": (
        FidelityPlusAuc(),
        one_target(
            (1.0, [0.0] * 2, [NO] * 2, [[0.0] * 2]),
            removed_levels=[[1 - k / 10 for k in range(1, 10)]],
        ),
        0.5,
    ),
    "area under minus, a step in the middle": (
        FidelityMinusAuc(),
        one_target((1.0, [0.0] * 2, [NO] * 2, [[0.0] * 2]), kept_levels=[[0.0] * 4 + [1.0] * 5]),
        (3 + 1 / 2) / 8,
    ),
    "area under plus, one candidate": (
        FidelityPlusAuc(),
        one_target((1.0, [0.0], [NO], [[0.0]]), removed_levels=[[0.0] * 9]),
        math.nan,
    ),
    "mean height": (DeletionAuc(), against([0.75, 0.5, 0.25], [0.0] * 3), 0.5),
    "mean height within the cap": (
        DeletionAuc(),
        one_target((1.0, [0.75, 0.5, 0.0], [NO] * 3, [[0.0] * 3]), cap=2),
        0.625,
    ),
    "one score of four": (Sparsity(), Vectors([tensor([0.0, -2.0, 0.0, 0.02])]), 0.75),
    "all scores alike": (Sparsity(), Vectors([tensor([-1.0, 1.0])]), 0.0),
    "no score but zero": (Sparsity(), Vectors([tensor([0.0, 0.0])]), 1.0),
    "no score": (Sparsity(), Vectors([tensor([])]), math.nan),
    # agreement with a truth
    "auroc, in order": (Auroc(), truths([3, 2, 1, 0], [1, 1, 0, 0]), 1.0),
    "auroc, upside down": (Auroc(), truths([0, 1, 2, 3], [1, 1, 0, 0]), 0.0),
    "auroc, constant": (Auroc(), truths([1, 1, 1, 1], [1, 1, 0, 0]), 0.5),
    "auroc, all true": (Auroc(), truths([1, 2], [1, 1]), math.nan),
    "average precision, in order": (AveragePrecision(), truths([3, 2, 1, 0], [1, 1, 0, 0]), 1.0),
    "average precision, upside down": (
        AveragePrecision(),
        truths([0, 1, 2, 3], [1, 0, 0, 0]),
        0.25,
    ),
    "average precision, constant": (AveragePrecision(), truths([1, 1, 1, 1], [1, 0, 0, 0]), 0.25),
    "jaccard, one of two found": (Jaccard(), truths([3, 0, 2, 1], [1, 1, 0, 0]), 1 / 3),
    "jaccard, upside down": (Jaccard(), truths([0, 1, 2, 3], [1, 1, 0, 0]), 0.0),
    "jaccard, a tie at the last place": (
        Jaccard(),
        truths([3, 1, 1, 0], [1, 1, 0, 0]),
        (1 + 1 / 3) / 2,
    ),
    "jaccard, none true": (Jaccard(), truths([3, 1], [0, 0]), math.nan),
}


@pytest.mark.parametrize(("metric", "bundle", "wanted"), CASES.values(), ids=CASES)
def test_the_value_is_the_one_known_by_hand(metric, bundle, wanted):
    assert metric(bundle).tolist() == pytest.approx([wanted], abs=1e-12, nan_ok=True)


BINOMIAL = {
    "all alike": ([[1.0, 1.0, 1.0]] * 3, 1.0, 0.0),
    "one of three is different": (
        [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        1 / 3,
        2 / 3,
    ),
    "none alike": ([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], 0.0, 0.0),
}


@pytest.mark.parametrize(("likeness", "mean", "error"), BINOMIAL.values(), ids=BINOMIAL)
def test_the_binomial_form_of_three_explanations(likeness, mean, error):
    assert tuple(jackknife_over_pairs(tensor(likeness))) == pytest.approx((mean, error), abs=1e-12)


def test_the_paper_stops_early_at_its_own_trial():
    """Thirty wins settle it; the seventy losses that follow are not looked at."""
    random = [[0.9]] * 30 + [[0.1]] * 70
    assert Pertinence()(against([0.5], *random)).tolist() == [1.0]
    assert Pertinence(least=100)(against([0.5], *random)).tolist() == pytest.approx(
        [0.3], abs=1e-12
    )


def test_each_reference_stops_on_its_own():
    """The first is constant after 30; the second, wins and losses in turn, goes to 100."""
    turns = [[0.9], [0.1]] * 50
    case = (1.0, [0.5], [NO])
    curves = one_target((*case, [[0.9]] * 30 + [[0.1]] * 70), (*case, turns))
    won, stop = Pertinence().compare_and_stop(curves)
    assert stop.trials.tolist() == [30, 100]
    assert won.shape == (2, 100)
    assert Pertinence()(curves).tolist() == pytest.approx([0.75], abs=1e-12)
