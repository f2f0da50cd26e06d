"""How often 95 % intervals hold the true mean: the library's own, beside other formulas.

    python bench/coverage.py [--samples 4000] [--resamples 400] [--bootstraps 1000]
                             [--sizes 10 20 38 100 200] [--out coverage.md]

Means: ``mean_interval`` beside Student's t, the percentile bootstrap and BCa, on samples whose mean
is known. Differences: how often ``difference_interval`` and the others hold 0 for pairs of
explainers that are worth the same. The bootstraps run on ``--bootstraps`` of the samples with
``--resamples`` draws each.

    normal          standard normal
    skewed          exponential
    pertinence      0 to 1 with two peaks, as tied pertinence: 70 % Beta(8, 1), 30 % Beta(1, 6)
    arcsine         Beta(1/2, 1/2): most values near 0 or 1, as many of either
    ec              whole numbers with a long tail, as EC: geometric with mean 6.7, capped at 100
    ec, open        the same, and every tenth prediction never changes: 100
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from graphgauge.core import difference_interval, mean_interval

Floats = Any
NORMAL = NormalDist()
EC = (1 - 0.85**100) / 0.15


def pertinence(draw: np.random.Generator, size: tuple[int, int]) -> Floats:
    """Two peaks.  (R, n)"""
    return np.where(draw.random(size) < 0.7, draw.beta(8, 1, size), draw.beta(1, 6, size))


def compactness(draw: np.random.Generator, size: tuple[int, int]) -> Floats:
    """Whole numbers with a long tail.  (R, n)"""
    return np.minimum(draw.geometric(0.15, size), 100).astype(float)


def open_compactness(draw: np.random.Generator, size: tuple[int, int]) -> Floats:
    """The same, with some that never change the prediction.  (R, n)"""
    return np.where(draw.random(size) < 0.1, 100.0, compactness(draw, size))


SHAPES: dict[str, tuple[Callable[[np.random.Generator, tuple[int, int]], Floats], float]] = {
    "normal": (lambda draw, size: draw.normal(size=size), 0.0),
    "skewed": (lambda draw, size: draw.exponential(size=size), 1.0),
    "pertinence": (pertinence, 0.7 * 8 / 9 + 0.3 / 7),
    "arcsine": (lambda draw, size: draw.beta(0.5, 0.5, size), 0.5),
    "ec": (compactness, EC),
    "ec, open": (open_compactness, 10 + 0.9 * EC),
}


def draws_of_means(values: Floats, resamples: int) -> Floats:
    """Means of samples drawn with replacement.  (B,)"""
    return values[
        np.random.default_rng(0).integers(len(values), size=(resamples, len(values)))
    ].mean(1)


def percentile(values: Floats, resamples: int) -> Floats:
    """The middle 95 % of the draws."""
    return np.quantile(draws_of_means(values, resamples), (0.025, 0.975))


def bca(values: Floats, resamples: int) -> Floats:
    """Bias-corrected and accelerated (Efron)."""
    drawn, mean = draws_of_means(values, resamples), values.mean()
    below = (drawn < mean - 1e-12).mean() + (np.abs(drawn - mean) <= 1e-12).mean() / 2
    bias = NORMAL.inv_cdf(min(max(below, 1e-4), 1 - 1e-4))
    gaps = values - mean
    speed = (gaps**3).sum() / max(6 * (gaps**2).sum() ** 1.5, 1e-300)
    places = [bias + (bias + z) / (1 - speed * (bias + z)) for z in (-1.96, 1.96)]
    return np.quantile(drawn, [NORMAL.cdf(place) for place in places])


def coverage(interval: Callable[[Floats], Any], samples: Floats, truth: float) -> float:
    """In which share of the samples the interval holds the truth."""
    ends = np.array([interval(values) for values in samples])
    return float(((ends[:, 0] <= truth + 1e-12) & (truth <= ends[:, 1] + 1e-12)).mean())


def rows(options: argparse.Namespace, are_differences: bool) -> list[list[str]]:
    """One row for each shape and size."""
    found = []
    for name, (shape, truth) in SHAPES.items():
        for n in options.sizes:
            draw = np.random.default_rng(n)
            samples = shape(draw, (options.samples, n))
            if are_differences:
                samples, truth = samples - shape(draw, (options.samples, n)), 0.0
            few = samples[: options.bootstraps]
            cells = [
                coverage(mean_interval, samples, truth),
                coverage(difference_interval, samples, truth),
                coverage(lambda values: percentile(values, options.resamples), few, truth),
                coverage(lambda values: bca(values, options.resamples), few, truth),
            ]
            found.append([name, str(n), *(f"{100 * cell:.1f}" for cell in cells)])
            print(*found[-1], sep="\t", flush=True)
    return found


def table(heading: str, lines: list[list[str]]) -> str:
    """A Markdown table."""
    columns = [heading, "n", "Hall's transformation", "Student's t", "percentile bootstrap", "BCa"]
    return "\n".join(
        f"| {' | '.join(line)} |" for line in [columns, ["---"] * len(columns), *lines]
    )


def main() -> None:
    """Print both tables, and write them where asked to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=4000)
    parser.add_argument("--resamples", type=int, default=400)
    parser.add_argument("--bootstraps", type=int, default=1000)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 20, 38, 100, 200])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    parts = [
        table("means, % covered", rows(options, False)),
        table("differences of equals, % that hold 0", rows(options, True)),
    ]
    text = "\n\n".join(parts) + "\n"
    if options.out is not None:
        options.out.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
