"""Agreement with a ground truth, where one exists: is_true says which of E scored things (edges,
features) truly matter.

    auroc     P(s_i > s_j) + P(s_i = s_j) / 2,  i drawn from the true, j from the others          scores of no meaning: 1/2
    average   mean over the true i of  (number of true with s >= s_i) / (number of all with s >= s_i)
    precision                                                          scores of no meaning: a little over the share of the true
    jaccard   |A ∩ M| / |A ∪ M|,  M the true, A the |M| highest scores
    precision_at_k   |A ∩ M| / k,  A the k highest scores              scores of no meaning: the share of the true
    recall_at_k      |A ∩ M| / |M|                                     scores of no meaning: k / E
    f1_at_k          2 |A ∩ M| / (k + |M|), the harmonic mean of the two

Equal scores never depend on the order in which things are listed: in auroc a tie counts half, in
average precision tied things share one threshold (as in scikit-learn), in jaccard and at k the
value is the mean over all ways to break the ties at the last place.

Scores and truth are vectors of one length; the truth is boolean, and the scores are finite.
Anything else is refused.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from graphgauge.core import BadExplanation, BadSetting, UndefinedScore
from graphgauge.metrics.base import Metric, Truths, stack_values


def auroc(score: Tensor, is_true: Tensor) -> Tensor:
    """Chance that a true one outranks another, ties half.  (E,), (E,) bool -> ()

    >>> auroc(torch.tensor([0.9, 0.1, 0.4]), torch.tensor([True, False, False])).item()
    1.0
    """
    _check_scores_and_truth(score, is_true, "auroc")
    size, rest = is_true.sum(), (~is_true).sum()
    if not _has_both_kinds(is_true):
        raise UndefinedScore(
            f"auroc compares true entries with others, but {int(size)} of {len(is_true)} are true. Leave this target out, "
            "or use a metric that needs no ground truth, such as 'pertinence_tied'."
        )
    return (mean_ranks(score)[is_true].sum() - size * (size + 1) / 2) / (size * rest)


def mean_ranks(values: Tensor) -> Tensor:
    """Rank from 1 upwards; equal values share the mean of their ranks.  (E,) -> (E,)"""
    _, group, size = values.unique(return_inverse=True, return_counts=True)
    return (size.cumsum(0) - (size.double() - 1) / 2)[group]


def average_precision(score: Tensor, is_true: Tensor) -> Tensor:
    """The area under the curve of precision over recall, step by step.  (E,), (E,) bool -> ()

    >>> average_precision(torch.tensor([0.9, 0.1, 0.4]), torch.tensor([True, True, False])).item()
    0.8333333333333333
    """
    _check_scores_and_truth(score, is_true, "average_precision")
    _check_any_true(is_true, "average_precision")
    _, group, size = score.unique(return_inverse=True, return_counts=True)
    true_size = torch.zeros(len(size), dtype=torch.float64, device=score.device).index_add(
        0, group, is_true.double()
    )
    precision = _count_at_or_above(true_size) / _count_at_or_above(size.double())
    return precision[group][is_true].mean()


def _count_at_or_above(size: Tensor) -> Tensor:
    """How many lie in a group or in one above it, groups ascending.  (G,) -> (G,)"""
    return size.flip(0).cumsum(0).flip(0)


def jaccard(score: Tensor, is_true: Tensor) -> Tensor:
    """Overlap of the truth with as many top scores.  (E,), (E,) bool -> ()

    With M true ones, h0 of them strictly above the score at place M, and r places left for m tied
    things of which t are true, the hits are h0 + H with H hypergeometric, P(H = x) = C(t, x) C(m -
    t, r - x) / C(m, r), and the overlap is h / (2M - h).

    >>> jaccard(torch.tensor([0.9, 0.8, 0.1]), torch.tensor([True, False, True])).item()
    0.3333333333333333
    """
    _check_scores_and_truth(score, is_true, "jaccard")
    _check_any_true(is_true, "jaccard")
    number = int(is_true.sum())
    last = score.sort(descending=True).values[number - 1]
    above, tied = score > last, score == last
    places, hits = number - int(above.sum()), int((above & is_true).sum())
    chance = _hypergeometric_probabilities(int(tied.sum()), int((tied & is_true).sum()), places)
    found = hits + torch.arange(places + 1, dtype=torch.float64)
    return (chance * found / (2 * number - found)).sum().to(score.device)


def precision_at_k(score: Tensor, is_true: Tensor, k: int) -> Tensor:
    """Share of the k highest scores that are true, on average over the ways to break ties.  (E,), (E,) bool -> ()

    >>> precision_at_k(torch.tensor([0.9, 0.5, 0.5, 0.1]), torch.tensor([True, True, False, False]), k=2).item()
    0.75
    """
    return _expected_hits(score, is_true, k, "precision_at_k") / k


def recall_at_k(score: Tensor, is_true: Tensor, k: int) -> Tensor:
    """Share of the true ones among the k highest scores, on average over the ways to break ties.  (E,), (E,) bool -> ()

    >>> recall_at_k(torch.tensor([0.9, 0.5, 0.5, 0.1]), torch.tensor([True, True, False, False]), k=1).item()
    0.5
    """
    return _expected_hits(score, is_true, k, "recall_at_k") / is_true.sum()


def f1_at_k(score: Tensor, is_true: Tensor, k: int) -> Tensor:
    """Harmonic mean of precision and recall at k, on average over the ways to break ties.  (E,), (E,) bool -> ()

    >>> f1_at_k(torch.tensor([0.9, 0.5, 0.4, 0.1]), torch.tensor([True, False, True, False]), k=2).item()
    0.5
    """
    return 2 * _expected_hits(score, is_true, k, "f1_at_k") / (k + is_true.sum())


def _expected_hits(score: Tensor, is_true: Tensor, k: int, metric: str) -> Tensor:
    """Number of true ones among the k highest scores; of those tied at the last place, each is
    taken with equal chance.  ()
    """
    _check_scores_and_truth(score, is_true, metric)
    _check_any_true(is_true, metric)
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= len(score):
        raise BadSetting(
            f"{metric} needs a whole number k from 1 to the number of scores, {len(score)}, but k is {k!r}."
        )
    last = score.sort(descending=True).values[k - 1]
    above, tied = score > last, score == last
    chance = (k - above.sum()).double() / tied.sum()  # of a tied one to be taken
    return (above & is_true).sum() + chance * (tied & is_true).sum()


def _check_scores_and_truth(score: Tensor, is_true: Tensor, metric: str) -> None:
    """Refuse scores with NaN or infinity, a truth that is not boolean, and vectors of different
    lengths.
    """
    for name, given in (("score", score), ("is_true", is_true)):
        if not isinstance(given, Tensor):
            raise BadExplanation(
                f"{metric} needs '{name}' as a tensor, but got {type(given).__name__}: use torch.tensor(...)."
            )
    if is_true.dtype != torch.bool:
        raise BadExplanation(
            f"{metric} needs 'is_true' as torch.bool, but it is {is_true.dtype}: use is_true > 0.5 or .bool()."
        )
    if score.dim() != 1 or score.shape != is_true.shape:
        raise BadExplanation(
            f"{metric} needs 'score' and 'is_true' as vectors of one length, one entry for each edge or feature, but their shapes "
            f"are {tuple(score.shape)} and {tuple(is_true.shape)}."
        )
    if not bool(score.isfinite().all()):
        raise UndefinedScore(
            f"{metric} ranks finite numbers, but {int((~score.isfinite()).sum())} of {len(score)} scores are NaN or infinite: "
            "leave this target out, with the reason."
        )


def _hypergeometric_probabilities(size: int, true: int, drawn: int) -> Tensor:
    """Chance of x = 0..drawn true ones among those drawn without replacement.  (drawn + 1,)"""
    x = torch.arange(drawn + 1, dtype=torch.float64)
    found = _log_choose(true, x) + _log_choose(size - true, drawn - x)
    return (found - _log_choose(size, torch.tensor(float(drawn), dtype=torch.float64))).exp()


def _log_choose(size: int, some: Tensor) -> Tensor:
    """Logarithm of the number of ways to choose some of ``size``; -inf where there is none."""
    total = torch.tensor(float(size), dtype=torch.float64)
    ways = (total + 1).lgamma() - (some + 1).lgamma() - (total - some + 1).clamp(min=1).lgamma()
    return torch.where(some <= size, ways, -torch.inf)


def _has_both_kinds(is_true: Tensor) -> bool:
    """Are there true entries and others?"""
    return bool(is_true.any() and not is_true.all())


def _check_any_true(is_true: Tensor, name: str) -> None:
    """Refuse a truth without a true entry."""
    if not bool(is_true.any()):
        raise UndefinedScore(
            f"{name} looks for true entries, but none of the {len(is_true)} is true. Leave this target out."
        )


def _values_where_defined(
    value: Callable[[Tensor, Tensor], Tensor],
    is_defined: Callable[[Tensor], object],
    truths: Truths,
) -> Tensor:
    """The value of each target, NaN where it has none.  (T,)"""
    both = zip(truths.score, truths.is_true, strict=True)
    return stack_values(
        [
            value(score, truth).cpu() if is_defined(truth) else torch.tensor(torch.nan)
            for score, truth in both
        ]
    )


@dataclass(frozen=True)
class Auroc(Metric[Truths]):
    """Chance that a true entry has a higher score than another; no value where all or none are
    true.
    """

    name = "auroc"
    bounds = (0.0, 1.0)
    higher_is_better = True
    chance = 0.5
    needs = "truth"

    def __call__(self, bundle: Truths) -> Tensor:
        """(T,)"""
        return _values_where_defined(auroc, _has_both_kinds, bundle)


@dataclass(frozen=True)
class AveragePrecision(Metric[Truths]):
    """Mean share of true entries among those scored at least as high as each true one; no value
    where none are true.
    """

    name = "average_precision"
    bounds = (0.0, 1.0)
    higher_is_better = True
    chance = None
    needs = "truth"

    def __call__(self, bundle: Truths) -> Tensor:
        """(T,)"""
        return _values_where_defined(average_precision, Tensor.any, bundle)


@dataclass(frozen=True)
class Jaccard(Metric[Truths]):
    """Overlap of the true entries with as many top scores; no value where none are true."""

    name = "jaccard"
    bounds = (0.0, 1.0)
    higher_is_better = True
    chance = None
    needs = "truth"

    def __call__(self, bundle: Truths) -> Tensor:
        """(T,)"""
        return _values_where_defined(jaccard, Tensor.any, bundle)


@dataclass(frozen=True)
class _MetricAtK(Metric[Truths]):
    """The parts that precision, recall and F1 at k have in common.

    ``k`` is the number of top scores; None: as many as there are true entries. There is no value
    where none are true, and none where k is not smaller than the number of scores: every ranking
    selects all of them.
    """

    bounds = (0.0, 1.0)
    higher_is_better = True
    chance = None
    needs = "truth"
    k: int | None = None

    def __post_init__(self) -> None:
        if self.k is not None and (
            isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 1
        ):
            raise BadSetting(
                f"k must be a whole number, 1 or more, or None for as many as are true, but is {self.k!r}."
            )

    def _over_targets(
        self, value: Callable[[Tensor, Tensor, int], Tensor], truths: Truths
    ) -> Tensor:
        """(T,)"""
        return _values_where_defined(
            lambda score, truth: value(score, truth, self._size(truth)),
            lambda truth: truth.any() and self._size(truth) < len(truth),
            truths,
        )

    def _size(self, is_true: Tensor) -> int:
        """Number of top scores for one target."""
        return int(is_true.sum()) if self.k is None else self.k


@dataclass(frozen=True)
class PrecisionAtK(_MetricAtK):
    """Share of the k highest scores that are true; no value where none are true, or where k takes
    all.
    """

    name = "precision_at_k"

    def __call__(self, bundle: Truths) -> Tensor:
        """(T,)"""
        return self._over_targets(precision_at_k, bundle)


@dataclass(frozen=True)
class RecallAtK(_MetricAtK):
    """Share of the true entries among the k highest scores; no value where none are true, or where
    k takes all.
    """

    name = "recall_at_k"

    def __call__(self, bundle: Truths) -> Tensor:
        """(T,)"""
        return self._over_targets(recall_at_k, bundle)


@dataclass(frozen=True)
class F1AtK(_MetricAtK):
    """Harmonic mean of precision and recall at k; no value where none are true, or where k takes
    all.
    """

    name = "f1_at_k"

    def __call__(self, bundle: Truths) -> Tensor:
        """(T,)"""
        return self._over_targets(f1_at_k, bundle)
