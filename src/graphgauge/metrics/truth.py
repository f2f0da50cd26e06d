"""Agreement with a ground truth, where one exists: is_true says which of E scored things (edges, features) truly matter.

    auroc     P(s_i > s_j) + P(s_i = s_j) / 2,  i drawn from the true, j from the others          scores of no meaning: 1/2
    average   mean over the true i of  (number of true with s >= s_i) / (number of all with s >= s_i)
    precision                                                          scores of no meaning: a little over the share of the true
    jaccard   |A ∩ M| / |A ∪ M|,  M the true, A the |M| highest scores

Equal scores never depend on the order in which things are listed: in auroc a tie counts half, in average precision tied things
share one threshold (as in scikit-learn), in jaccard the value is the mean over all ways to break the ties at the |M|-th place.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from graphgauge.core.errors import UndefinedScore
from graphgauge.metrics.base import Metric, Truths, listed


def auroc(score: Tensor, is_true: Tensor) -> Tensor:
    """Chance that a true one outranks another, ties half.  (E,), (E,) bool -> ()

    >>> auroc(torch.tensor([0.9, 0.1, 0.4]), torch.tensor([True, False, False])).item()
    1.0
    """
    size, rest = is_true.sum(), (~is_true).sum()
    if not has_both(is_true):
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
    check_some(is_true, "average precision")
    _, group, size = score.unique(return_inverse=True, return_counts=True)
    true_size = torch.zeros(len(size), dtype=torch.float64, device=score.device).index_add(0, group, is_true.double())
    precision = reach(true_size) / reach(size.double())
    return precision[group][is_true].mean()


def reach(size: Tensor) -> Tensor:
    """How many lie in a group or in one above it, groups ascending.  (G,) -> (G,)"""
    return size.flip(0).cumsum(0).flip(0)


def jaccard(score: Tensor, is_true: Tensor) -> Tensor:
    """Overlap of the truth with as many top scores.  (E,), (E,) bool -> ()

    With M true ones, h0 of them strictly above the score at place M, and r places left for m tied things of which t are true, the
    hits are h0 + H with H hypergeometric, P(H = x) = C(t, x) C(m - t, r - x) / C(m, r), and the overlap is h / (2M - h).

    >>> jaccard(torch.tensor([0.9, 0.8, 0.1]), torch.tensor([True, False, True])).item()
    0.3333333333333333
    """
    check_some(is_true, "jaccard")
    number = int(is_true.sum())
    last = score.sort(descending=True).values[number - 1]
    above, tied = score > last, score == last
    places, hits = number - int(above.sum()), int((above & is_true).sum())
    chance = hypergeometric(int(tied.sum()), int((tied & is_true).sum()), places)
    found = hits + torch.arange(places + 1, dtype=torch.float64)
    return (chance * found / (2 * number - found)).sum().to(score.device)


def hypergeometric(size: int, true: int, drawn: int) -> Tensor:
    """Chance of x = 0..drawn true ones among those drawn without replacement.  (drawn + 1,)"""
    x = torch.arange(drawn + 1, dtype=torch.float64)
    found = log_choose(true, x) + log_choose(size - true, drawn - x)
    return (found - log_choose(size, torch.tensor(float(drawn), dtype=torch.float64))).exp()


def log_choose(size: int, some: Tensor) -> Tensor:
    """Logarithm of the number of ways to choose some of ``size``; -inf where there is none."""
    total = torch.tensor(float(size), dtype=torch.float64)
    ways = (total + 1).lgamma() - (some + 1).lgamma() - (total - some + 1).clamp(min=1).lgamma()
    return torch.where(some <= size, ways, -torch.inf)


def has_both(is_true: Tensor) -> bool:
    """Are there true entries and others?"""
    return bool(is_true.any() and not is_true.all())


def check_some(is_true: Tensor, name: str) -> None:
    """Refuse a truth without a true entry."""
    if not bool(is_true.any()):
        raise UndefinedScore(f"{name} looks for true entries, but none of the {len(is_true)} is true. Leave this target out.")


def where_defined(value: Callable[[Tensor, Tensor], Tensor], is_defined: Callable[[Tensor], object], truths: Truths) -> Tensor:
    """The value of each target, NaN where it has none.  (T,)"""
    both = zip(truths.score, truths.is_true, strict=True)
    return listed([value(score, truth).cpu() if is_defined(truth) else torch.tensor(torch.nan) for score, truth in both])


@dataclass(frozen=True)
class Auroc(Metric[Truths]):
    """Chance that a true entry has a higher score than another; no value where all or none are true."""

    name = "auroc"
    bounds = (0.0, 1.0)
    higher_is_better = True
    chance = 0.5
    needs = "truth"

    def __call__(self, bundle: Truths) -> Tensor:
        """(T,)"""
        return where_defined(auroc, has_both, bundle)


@dataclass(frozen=True)
class AveragePrecision(Metric[Truths]):
    """Mean share of true entries among those scored at least as high as each true one; no value where none are true."""

    name = "average_precision"
    bounds = (0.0, 1.0)
    higher_is_better = True
    chance = None
    needs = "truth"

    def __call__(self, bundle: Truths) -> Tensor:
        """(T,)"""
        return where_defined(average_precision, Tensor.any, bundle)


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
        return where_defined(jaccard, Tensor.any, bundle)
