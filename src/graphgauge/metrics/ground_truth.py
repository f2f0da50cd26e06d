"""Agreement with a ground truth, where one exists: which of E scored things truly matter.

    auroc             P(s_i > s_j) + P(s_i = s_j) / 2, i drawn from the true things, j from others
                      meaningless scores: 1/2
    average_precision mean over the true i of (true things with s >= s_i) / (all with s >= s_i)
                      meaningless scores: a little over the share of the true
    jaccard           |A ∩ M| / |A ∪ M|, M the true things, A the |M| highest scores
The order in which things are listed never decides between equal scores: in auroc a tie counts half,
in average precision tied things share one threshold (as in scikit-learn), and in jaccard the value
is the mean over all ways to break the ties at the last place. Metrics that count the k highest
scores are in `graphgauge.metrics.ground_truth_at_k`.

Scores and truth are vectors of one length; the truth is boolean, and the scores are finite.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from graphgauge.core import BadExplanation, UndefinedScore, mean_ranks
from graphgauge.metrics.base import Metric, stack_values
from graphgauge.metrics.bundles import Truths


def auroc(score: Tensor, is_true: Tensor) -> Tensor:
    """Chance that a true thing outranks another one; ties count half.  (E,), (E,) bool -> ()

    Args:
        score: Finite scores of E things.
        is_true: Which of them truly matter.

    Raises:
        UndefinedScore: All things are true, or none, or a score is not finite.

    >>> auroc(torch.tensor([0.9, 0.1, 0.4]), torch.tensor([True, False, False])).item()
    1.0
    """
    check_scores_and_truth(score, is_true, "auroc")
    num_true, num_others = is_true.sum(), (~is_true).sum()
    if not _has_both_kinds(is_true):
        raise UndefinedScore(
            f"auroc compares true entries with others, but {int(num_true)} of {len(is_true)} are "
            "true. Leave this target out, or use a metric that needs no ground truth, such as "
            "'pertinence_tied'."
        )
    ranks = torch.from_numpy(mean_ranks(score.detach().double().cpu().numpy())).to(score.device)
    return (ranks[is_true].sum() - num_true * (num_true + 1) / 2) / (num_true * num_others)


def average_precision(score: Tensor, is_true: Tensor) -> Tensor:
    """Area under precision over recall, step by step.  (E,), (E,) bool -> ()

    Args:
        score: Finite scores of E things.
        is_true: Which of them truly matter.

    >>> average_precision(torch.tensor([0.9, 0.1, 0.4]), torch.tensor([True, True, False])).item()
    0.8333333333333333
    """
    check_scores_and_truth(score, is_true, "average_precision")
    check_any_true(is_true, "average_precision")
    _, group, size = score.unique(return_inverse=True, return_counts=True)
    num_true = torch.zeros(len(size), dtype=torch.float64, device=score.device)
    num_true = num_true.index_add(0, group, is_true.double())
    precision = _count_at_or_above(num_true) / _count_at_or_above(size.double())
    return precision[group][is_true].mean()


def _count_at_or_above(size: Tensor) -> Tensor:
    """How many lie in each group or in one above it, groups ascending.  (G,) -> (G,)"""
    return size.flip(0).cumsum(0).flip(0)


def jaccard(score: Tensor, is_true: Tensor) -> Tensor:
    """Overlap of the true things with as many top scores.  (E,), (E,) bool -> ()

    With M true things, h0 of them strictly above the score at place M, and r places left for m tied
    things of which t are true, the hits are h0 + H with H hypergeometric, P(H = x) = C(t, x) C(m -
    t, r - x) / C(m, r), and the overlap is h / (2M - h).

    Args:
        score: Finite scores of E things.
        is_true: Which of them truly matter.

    >>> jaccard(torch.tensor([0.9, 0.8, 0.1]), torch.tensor([True, False, True])).item()
    0.3333333333333333
    """
    check_scores_and_truth(score, is_true, "jaccard")
    check_any_true(is_true, "jaccard")
    num_true = int(is_true.sum())
    last = score.sort(descending=True).values[num_true - 1]
    above, tied = score > last, score == last
    num_left, num_sure = num_true - int(above.sum()), int((above & is_true).sum())
    chance = _hypergeometric_probabilities(int(tied.sum()), int((tied & is_true).sum()), num_left)
    hits = num_sure + torch.arange(num_left + 1, dtype=torch.float64)
    return (chance * hits / (2 * num_true - hits)).sum().to(score.device)


def _hypergeometric_probabilities(size: int, num_true: int, num_drawn: int) -> Tensor:
    """Probability of 0..num_drawn true things among those drawn without replacement."""
    x = torch.arange(num_drawn + 1, dtype=torch.float64)
    log_ways = _log_choose(num_true, x) + _log_choose(size - num_true, num_drawn - x)
    return (log_ways - _log_choose(size, torch.tensor(float(num_drawn), dtype=torch.float64))).exp()


def _log_choose(size: int, count: Tensor) -> Tensor:
    """Logarithm of the number of ways to choose ``count`` of ``size``; -inf where there is none."""
    total = torch.tensor(float(size), dtype=torch.float64)
    left = (total - count + 1).clamp(min=1)
    ways = (total + 1).lgamma() - (count + 1).lgamma() - left.lgamma()
    return torch.where(count <= size, ways, -torch.inf)


def check_scores_and_truth(score: Tensor, is_true: Tensor, metric: str) -> None:
    """Raise BadExplanation or UndefinedScore for scores and truths that cannot be compared.

    Args:
        score: What should be finite scores.  (E,)
        is_true: What should say which of them truly matter.  (E,) bool
        metric: Name of the metric, for the message.
    """
    for name, value in (("score", score), ("is_true", is_true)):
        if not isinstance(value, Tensor):
            raise BadExplanation(
                f"{metric} needs '{name}' as a tensor, but got {type(value).__name__}: use "
                "torch.tensor(...)."
            )
    if is_true.dtype != torch.bool:
        raise BadExplanation(
            f"{metric} needs 'is_true' as torch.bool, but it is {is_true.dtype}: use is_true > 0.5 "
            "or .bool()."
        )
    if score.dim() != 1 or score.shape != is_true.shape:
        raise BadExplanation(
            f"{metric} needs 'score' and 'is_true' as vectors of one length, one entry for each "
            f"edge or feature, but their shapes are {tuple(score.shape)} and "
            f"{tuple(is_true.shape)}."
        )
    if not bool(score.isfinite().all()):
        raise UndefinedScore(
            f"{metric} ranks finite numbers, but {int((~score.isfinite()).sum())} of {len(score)} "
            "scores are NaN or infinite: leave this target out and record the reason."
        )


def _has_both_kinds(is_true: Tensor) -> bool:
    return bool(is_true.any() and not is_true.all())


def has_any_true(is_true: Tensor) -> bool:
    """Whether anything truly matters.  (E,) bool"""
    return bool(is_true.any())


def check_any_true(is_true: Tensor, metric: str) -> None:
    """Raise UndefinedScore where nothing is true.

    Args:
        is_true: Which things truly matter.  (E,) bool
        metric: Name of the metric, for the message.
    """
    if not has_any_true(is_true):
        raise UndefinedScore(
            f"{metric} looks for true entries, but none of the {len(is_true)} is true. Leave this "
            "target out."
        )


# --- metrics --------------------------------------------------------------------------------------


def values_where_defined(
    compute: Callable[[Tensor, Tensor], Tensor],
    is_defined: Callable[[Tensor], bool],
    truths: Truths,
) -> Tensor:
    """The value of each target, NaN where it has none.  (T,)

    Args:
        compute: Gives the value for scores and truth of one target.
        is_defined: Whether there is a value, for the truth of one target.
        truths: Scores and truth of T targets.
    """
    without = torch.tensor(torch.nan)
    return stack_values(
        [
            compute(score, is_true).cpu() if is_defined(is_true) else without
            for score, is_true in zip(truths.score, truths.is_true, strict=True)
        ]
    )


@dataclass(frozen=True)
class Auroc(Metric[Truths]):
    """Chance that a true thing has a higher score than another one.

    No value where all or none are true.
    """

    name = "auroc"
    bounds = (0.0, 1.0)
    higher_is_better = True
    chance = 0.5
    needs = "truth"

    def __call__(self, bundle: Truths) -> Tensor:
        """(T,)"""
        return values_where_defined(auroc, _has_both_kinds, bundle)


@dataclass(frozen=True)
class AveragePrecision(Metric[Truths]):
    """Mean share of true things among those scored at least as high as each true one.

    No value where none are true.
    """

    name = "average_precision"
    bounds = (0.0, 1.0)
    higher_is_better = True
    chance = None
    needs = "truth"

    def __call__(self, bundle: Truths) -> Tensor:
        """(T,)"""
        return values_where_defined(average_precision, has_any_true, bundle)


@dataclass(frozen=True)
class Jaccard(Metric[Truths]):
    """Overlap of the true things with as many top scores; no value where none are true."""

    name = "jaccard"
    bounds = (0.0, 1.0)
    higher_is_better = True
    chance = None
    needs = "truth"

    def __call__(self, bundle: Truths) -> Tensor:
        """(T,)"""
        return values_where_defined(jaccard, has_any_true, bundle)
