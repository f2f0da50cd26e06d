"""95 % intervals of means and of paired differences: the one home of every interval of a mean that
graphgauge shows.

Which formula is used was decided by measured coverage (``bench/coverage.py``, docs/validity.md):
the percentile bootstrap covers in 65 to 93 % of cases with 10 to 20 values.

`difference_interval` is Student's t interval for paired differences, whose distribution is
symmetric under the null hypothesis:

    mean ± q SE

with SE = s / sqrt(n), s the standard deviation with the divisor n - 1, and q the 97.5 % quantile
with n - 1 degrees of freedom.

`mean_interval` is the same interval after Hall's transformation. It is for single means, because
scores cluster at 0 and 1 and effective compactness has a long tail:

    T + γ T²/3 + γ² T³/27 + γ/6 = ± q

with T = (mean - μ) / SE, γ = g / sqrt(n), and g the skewness of the values, limited to ± 1.

Several groups (the networks or tasks of a benchmark) give the interval of the mean of their means:
variances and third cumulants add up, and the degrees of freedom are Welch and Satterthwaite's,
rounded down. A group of one value has no known variance.
"""

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

_LEVEL = 0.95
NORMAL_QUANTILE = 1.959963984540054  #: what a standard normal number exceeds with a chance of 2.5 %
_MOST_SKEWNESS = 1.0  #: of a group; more would be read out of too few values
Interval = tuple[float, float]


class _Estimate(NamedTuple):
    """A mean of group means, its standard error, its skewness and the degrees of freedom of the
    error.
    """

    mean: float
    error: float
    skewness: float
    degrees: int


def mean_interval(
    *groups: "ArrayLike",
    bounds: tuple[float, float] = (-math.inf, math.inf),
    scale: Literal["linear", "log"] = "linear",
) -> Interval | None:
    """95 % interval of a mean, or of the mean of several groups' means; None where a group has
    fewer than two values.

    Args:
        groups: The values; their order does not matter.
        bounds: The least and the most that the mean can be.
        scale: "log" for times, whose interval must not reach 0: Student's t for the logarithm of
            the mean.

    >>> mean_interval([1.0, 1.0, 1.0])
    (1.0, 1.0)
    """
    found = _estimate(groups)
    if found is None or not found.error:
        return None if found is None else (found.mean, found.mean)
    most = student_quantile((1 - _LEVEL) / 2, found.degrees)
    if scale == "log" and found.mean > 0:
        factor = math.exp(min(most * found.error / found.mean, 700.0))
        return found.mean / factor, found.mean * factor
    low, high = (
        found.mean - found.error * _untransformed(q, found.skewness) for q in (most, -most)
    )
    return max(low, bounds[0]), min(high, bounds[1])


def difference_interval(*groups: "ArrayLike") -> Interval | None:
    """95 % interval of a mean of paired differences; None where a group has fewer than two.

    >>> [round(end, 4) for end in difference_interval([0.0, 2.0])]
    [-11.7062, 13.7062]
    """
    found = _estimate(groups)
    if found is None or not found.error:
        return None if found is None else (found.mean, found.mean)
    half = student_quantile((1 - _LEVEL) / 2, found.degrees) * found.error
    return found.mean - half, found.mean + half


def share_interval(count: float, n: int) -> Interval:
    """Wilson's 95 % interval of a share, ``count`` of ``n``.

    >>> [round(end, 3) for end in share_interval(31, 100)]
    [0.228, 0.406]
    """
    p, part = count / n, NORMAL_QUANTILE**2 / n
    half = NORMAL_QUANTILE * math.sqrt(p * (1 - p) / n + part / (4 * n))
    return (p + part / 2 - half) / (1 + part), (p + part / 2 + half) / (1 + part)


def _estimate(groups: "tuple[ArrayLike, ...]") -> _Estimate | None:
    """The mean of the group means with its error; None where a group is too small or holds what is
    no number.
    """
    import numpy as np

    arrays = [np.sort(np.asarray(own, dtype=np.float64)) for own in groups]
    if not arrays or min(map(len, arrays)) < 2 or not all(np.isfinite(own).all() for own in arrays):
        return None
    parts = [_of_group(own) for own in arrays]
    count = len(parts)
    mean = float(np.mean([own.mean for own in parts]))
    variances = [(own.error / count) ** 2 for own in parts]
    total = sum(variances)
    if not total:
        return _Estimate(mean, 0.0, 0.0, 1)
    third = sum(own.skewness * part**1.5 for own, part in zip(parts, variances, strict=True))
    degrees = total**2 / sum(
        part**2 / own.degrees for own, part in zip(parts, variances, strict=True)
    )
    return _Estimate(mean, math.sqrt(total), third / total**1.5, max(1, math.floor(degrees + 1e-9)))


def _of_group(values: "np.ndarray[Any, Any]") -> _Estimate:
    """One group, whose values are in order.  (n,)"""
    n, mean = len(values), float(values.mean())
    if values[0] == values[-1]:
        return _Estimate(float(values[0]), 0.0, 0.0, n - 1)
    skewness = float(((values - mean) ** 3).mean() / values.std() ** 3)
    bounded = min(max(skewness, -_MOST_SKEWNESS), _MOST_SKEWNESS)
    return _Estimate(mean, float(values.std(ddof=1)) / math.sqrt(n), bounded / math.sqrt(n), n - 1)


def _untransformed(value: float, skewness: float) -> float:
    """T whose Hall transform T + γ T²/3 + γ² T³/27 + γ/6 is ``value``.

    >>> round(_untransformed(2.0 + 0.3 * 4 / 3 + 0.09 * 8 / 27 + 0.3 / 6, 0.3), 12)
    2.0
    """
    if abs(skewness) < 1e-9:
        return value
    cube = 1 + skewness * (value - skewness / 6)
    return 3 / skewness * (math.copysign(abs(cube) ** (1 / 3), cube) - 1)


def _student_tail(t: float, degrees: int) -> float:
    """P(T > t) of Student's distribution for t >= 0, by the finite sum over powers of the cosine of
    atan(t / sqrt(degrees)).

    >>> round(_student_tail(1.0, 1), 12), round(_student_tail(2.228139, 10), 7)
    (0.25, 0.025)
    """
    angle = math.atan2(t, math.sqrt(degrees))
    square, is_odd = math.cos(angle) ** 2, degrees % 2
    term = math.sin(angle) * (math.cos(angle) if is_odd else 1.0)
    total = 0.0
    for k in range(is_odd, degrees - 1, 2):
        total += term
        term *= square * (k + 1) / (k + 2)
    inside = (angle + total) * 2 / math.pi if is_odd else total
    return (1 - inside) / 2


@lru_cache(maxsize=4096)
def student_quantile(chance: float, degrees: int) -> float:
    """The value that Student's t exceeds with a chance below 1/2.

    >>> round(student_quantile(0.025, 49), 3), round(student_quantile(0.001, 5), 3)
    (2.01, 5.893)
    """
    low, high = 0.0, 1.0
    while _student_tail(high, degrees) > chance:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _student_tail(middle, degrees) > chance else (low, middle)
    return high
