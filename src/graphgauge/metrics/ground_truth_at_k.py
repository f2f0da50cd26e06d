"""Agreement of the k highest scores with a ground truth.

    precision_at_k    |A ∩ M| / k, M the true things, A the k highest of E scores
                      meaningless scores: the share of the true
    recall_at_k       |A ∩ M| / |M|
                      meaningless scores: k / E
    f1_at_k           2 |A ∩ M| / (k + |M|), the harmonic mean of the two

Where scores are tied at the last place, the value is the mean over all ways to break the ties, so
that the order in which things are listed does not matter. Metrics of the whole ranking are in
`graphgauge.metrics.ground_truth`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from graphgauge.core import BadSetting
from graphgauge.metrics.base import Metric
from graphgauge.metrics.bundles import Truths
from graphgauge.metrics.ground_truth import (
    check_any_true,
    check_scores_and_truth,
    has_any_true,
    values_where_defined,
)


def precision_at_k(score: Tensor, is_true: Tensor, k: int) -> Tensor:
    """Share of the k highest scores that are true, averaged over the ways to break ties.

    (E,), (E,) bool -> ()

    Args:
        score: Finite scores of E things.
        is_true: Which of them truly matter.
        k: How many of the highest scores count, 1 to E.

    >>> is_true = torch.tensor([True, True, False, False])
    >>> precision_at_k(torch.tensor([0.9, 0.5, 0.5, 0.1]), is_true, k=2).item()
    0.75
    """
    return _expected_hits(score, is_true, k, "precision_at_k") / k


def recall_at_k(score: Tensor, is_true: Tensor, k: int) -> Tensor:
    """Share of the true things among the k highest scores, averaged over the ways to break ties.

    (E,), (E,) bool -> ()

    Args:
        score: Finite scores of E things.
        is_true: Which of them truly matter.
        k: How many of the highest scores count, 1 to E.

    >>> is_true = torch.tensor([True, True, False, False])
    >>> recall_at_k(torch.tensor([0.9, 0.5, 0.5, 0.1]), is_true, k=1).item()
    0.5
    """
    return _expected_hits(score, is_true, k, "recall_at_k") / is_true.sum()


def f1_at_k(score: Tensor, is_true: Tensor, k: int) -> Tensor:
    """Harmonic mean of precision and recall at k, averaged over the ways to break ties.

    (E,), (E,) bool -> ()

    Args:
        score: Finite scores of E things.
        is_true: Which of them truly matter.
        k: How many of the highest scores count, 1 to E.

    >>> is_true = torch.tensor([True, False, True, False])
    >>> f1_at_k(torch.tensor([0.9, 0.5, 0.4, 0.1]), is_true, k=2).item()
    0.5
    """
    return 2 * _expected_hits(score, is_true, k, "f1_at_k") / (k + is_true.sum())


def _expected_hits(score: Tensor, is_true: Tensor, k: int, metric: str) -> Tensor:
    """Expected number of true things among the k highest scores.  ()

    Of those tied at the last place, each is taken with the same probability.
    """
    check_scores_and_truth(score, is_true, metric)
    check_any_true(is_true, metric)
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= len(score):
        raise BadSetting(
            f"{metric} needs a whole number k from 1 to the number of scores, {len(score)}, but k "
            f"is {k!r}."
        )
    last = score.sort(descending=True).values[k - 1]
    above, tied = score > last, score == last
    chance_of_tied = (k - above.sum()).double() / tied.sum()
    return (above & is_true).sum() + chance_of_tied * (tied & is_true).sum()


@dataclass(frozen=True)
class _MetricAtK(Metric[Truths]):
    """What precision, recall and F1 at k have in common.

    ``k`` is the number of top scores; None means as many as there are true things. There is no
    value where none are true, and none where k is the number of scores or more: every ranking
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
                "k must be a whole number, 1 or more, or None for as many as are true, but is "
                f"{self.k!r}."
            )

    def _over_targets(
        self, compute: Callable[[Tensor, Tensor, int], Tensor], truths: Truths
    ) -> Tensor:
        """(T,)"""

        def k_of(is_true: Tensor) -> int:
            return int(is_true.sum()) if self.k is None else self.k

        return values_where_defined(
            lambda score, is_true: compute(score, is_true, k_of(is_true)),
            lambda is_true: has_any_true(is_true) and k_of(is_true) < len(is_true),
            truths,
        )


@dataclass(frozen=True)
class PrecisionAtK(_MetricAtK):
    """Share of the k highest scores that are true."""

    name = "precision_at_k"

    def __call__(self, bundle: Truths) -> Tensor:
        """(T,)"""
        return self._over_targets(precision_at_k, bundle)


@dataclass(frozen=True)
class RecallAtK(_MetricAtK):
    """Share of the true things among the k highest scores."""

    name = "recall_at_k"

    def __call__(self, bundle: Truths) -> Tensor:
        """(T,)"""
        return self._over_targets(recall_at_k, bundle)


@dataclass(frozen=True)
class F1AtK(_MetricAtK):
    """Harmonic mean of precision and recall at k."""

    name = "f1_at_k"

    def __call__(self, bundle: Truths) -> Tensor:
        """(T,)"""
        return self._over_targets(f1_at_k, bundle)
