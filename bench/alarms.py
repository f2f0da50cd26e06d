"""Measure how often monitoring raises a false alarm, and how soon it finds a real change.

    python bench/alarms.py [--histories 200] [--runs 26] [--targets 50] [--baseline 100 200 300]
                           [--shift 1.0] [--measured 300]
    python bench/alarms.py --histories 0 --shift --broken scrambled swapped scale mean
                           --baseline 200 --targets 50

A history is one baseline and 26 runs of 50 targets, all drawn from one distribution; the decision
is the library's own (`graphgauge.monitor.drift_triggers`). It fails if anything is ever called
drift: six metrics, the ranking of features, the data, their relations, the model's errors on
labelled targets.

Stationary targets are made of correlated normal numbers turned into what the metrics look like: EC
are small whole numbers with a long tail and some at the cap, pertinence lies on a grid of 1/30 with
much at 0 and 1, stability is 1 for some ("stochastic") or for all ("deterministic"). Features are
counts, 0/1 and real; some explanations have fewer leading features than others. With ``--shift s``
(power) each metric in turn moves to the worse side by s SD of its per-target values from a random
run on; values that would leave the metric's range stay at its end, EC stay whole numbers. Found: a
trigger that names that metric, within 3 runs. With ``--measured n`` stationary histories are also
drawn, with replacement, from n targets that the library has measured: nodes of BA-Shapes, the
shipped GCN, InputXGradient and GNNExplainer, the six metrics as they come. With ``--broken``
(power) one of eight columns is scrambled over all nodes, two are swapped, one is doubled, or one
moves by an SD. Columns are a chain, each correlated by 0.8 with the next; column 0 is whole
numbers, column 7 is 0 or 1. The network predicts from all of them (R2 0.6 before). Neighbours are
alike (correlation 0.6). Each is counted bare, with gaps, and with labels too.
"""

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

import graphgauge as gg
from graphgauge.metrics import MetricName
from graphgauge.monitor import (
    ColumnNames,
    FloatArray,
    Plan,
    Sample,
    drift_triggers,
    sample_recent,
    score_targets,
)

METRICS = (
    "feature_ec",
    "edge_ec",
    "feature_pertinence",
    "edge_pertinence",
    "feature_stability",
    "edge_stability",
)
NO_LABELS = ColumnNames()
CAP, GRID, FEATURES = 100, 30, 12
WITHIN = 3  #: runs


def clopper_pearson_upper(count: int, number: int, confidence: float = 0.95) -> float:
    """The largest share under which so few of so many come with a chance of (1 - confidence) / 2:
    the two-sided interval's end.

    >>> round(clopper_pearson_upper(0, 200), 4), round(clopper_pearson_upper(4, 200), 4)
    (0.0183, 0.0504)
    """
    if count == number:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        below = math.fsum(
            math.comb(number, k) * middle**k * (1 - middle) ** (number - k)
            for k in range(count + 1)
        )
        low, high = (middle, high) if below > (1 - confidence) / 2 else (low, middle)
    return high


def correlated(number: int, width: int, dice: np.random.Generator) -> FloatArray:
    """Normal numbers, any two of a row with a correlation of 0.5.  (number, width)"""
    shared = dice.normal(size=(number, 1))
    return math.sqrt(0.5) * shared + math.sqrt(0.5) * dice.normal(size=(number, width))


def compactness(normal: FloatArray, middle: float, width: float) -> FloatArray:
    """Whole numbers from 1, with a long tail that ends at the cap."""
    return np.clip(np.ceil(middle * np.exp(width * normal)), 1, CAP)


def share(normal: FloatArray, middle: float, width: float) -> FloatArray:
    """Numbers in [0, 1] on a grid, with much at the ends."""
    return np.clip(np.round((middle + width * normal) * GRID) / GRID, 0, 1)


def stability(normal: FloatArray, deterministic: bool) -> FloatArray:
    """1 for most targets, less for some; for all where nothing is drawn at random."""
    return (
        np.ones_like(normal)
        if deterministic
        else np.minimum(1.0, 1.03 - 0.05 * np.exp(0.8 * normal))
    )


def targets_like(number: int, dice: np.random.Generator, deterministic: bool) -> Sample:
    """Targets as one look sees them, nothing having changed."""
    normal = correlated(number, len(METRICS), dice)
    columns = [compactness(normal[:, 0], 6, 0.9), compactness(normal[:, 1], 3, 1.3)]
    columns += [share(normal[:, 2], 0.8, 0.3), share(normal[:, 3], 0.5, 0.35)]
    columns += [stability(normal[:, 4], deterministic), stability(normal[:, 5], deterministic)]
    values = dict(zip(METRICS, columns, strict=True))
    # targets without edges
    values["edge_pertinence"] = np.where(
        dice.random(number) < 0.1, np.nan, values["edge_pertinence"]
    )
    hidden = correlated(number, FEATURES, dice)
    kinds = [hidden[:, :4], (hidden[:, 4:8] > 1).astype(float), np.floor(np.exp(hidden[:, 8:]))]
    top = tuple(
        tuple(np.argsort(-row)[: 2 + k % 3].tolist())
        for k, row in enumerate(hidden + np.linspace(1, 0, FEATURES))
    )
    data = np.concatenate(kinds, axis=1)
    known = np.where(dice.random(number) < 0.2, np.nan, 1.0)  # targets without a label
    errors = {
        "absolute error": np.abs(dice.normal(size=number)) * known,
        "wrong": (dice.random(number) < 0.2) * known,
    }
    gaps = np.abs(data - data[:, ::-1]) * dice.random((number, 1))
    labels = np.round(hidden[:, 0] + dice.normal(size=number))
    targets = tuple(dice.integers(0, 10**6, number).tolist())
    return Sample(targets, values, top=top, data=data, gaps=gaps, labels=labels, errors=errors)


NAMES = tuple(f"column {k}" for k in range(8))
BROKEN_LABELS = ColumnNames(NAMES, (*NAMES, "prediction"))
CHAIN, LIKENESS, WIDTH, FIT = 0.8, 0.6, 8, 0.6
BREAKS = ("none", "scrambled", "swapped", "scale", "mean")


def targets_with_columns(
    number: int, dice: np.random.Generator, broken: str = "none", known: str = "labels"
) -> Sample:
    """Targets of a regression whose columns depend on each other; ``known``: 'data', with 'gaps',
    or with 'labels' too.
    """
    x, near = (np.zeros((number, WIDTH)) for _ in range(2))
    for k in range(WIDTH):
        new = dice.normal(size=number)
        x[:, k] = new if k == 0 else CHAIN * x[:, k - 1] + math.sqrt(1 - CHAIN**2) * new
    near = LIKENESS * x + math.sqrt(1 - LIKENESS**2) * dice.normal(size=(number, WIDTH))
    weight = np.array([1.0, -1.0, 1.0, 2.0, -1.0, 1.0, 1.0, -1.0])
    signal = x @ weight
    # 2.89: SD of the signal
    label = signal + dice.normal(size=number) * math.sqrt((1 - FIT) / FIT) * 2.89
    for rows in (x, near):
        break_columns(rows, broken, dice)
        rows[:, 0], rows[:, -1] = np.round(2 * rows[:, 0]), rows[:, -1] > 0.5
    predicted = x @ weight
    values = {"edge_ec": compactness(dice.normal(size=(number, 1)), 6, 0.9)[:, 0]}
    found = Sample(
        tuple(dice.integers(0, 10**6, number).tolist()), values, data=np.c_[x, predicted]
    )
    if known == "data":
        return found
    found = replace(found, gaps=np.abs(x - near))
    return (
        found
        if known == "gaps"
        else replace(found, labels=label, errors={"absolute error": np.abs(predicted - label)})
    )


def break_columns(x: FloatArray, broken: str, dice: np.random.Generator) -> None:
    """What may happen to columns before they reach the network."""
    if broken == "scrambled":
        x[:, 3] = dice.permutation(x[:, 3])
    elif broken == "swapped":
        x[:, [2, 5]] = x[:, [5, 2]]
    elif broken == "scale":
        x[:, 3] *= 2
    elif broken == "mean":
        x[:, 3] += 1


def found_broken(
    options: argparse.Namespace, plan: Plan, size: int, broken: str, known: str
) -> int:
    """In how many histories columns that break at the second run are found within three runs."""
    count = 0
    for number in range(options.power):
        dice = np.random.default_rng([options.seed, size, BREAKS.index(broken), number])
        baseline = targets_with_columns(size, dice, "none", known)
        looks = [
            targets_with_columns(options.targets, dice, "none" if k < 1 else broken, known)
            for k in range(1 + WITHIN)
        ]
        count += (
            first_alarm(
                baseline, looks.__getitem__, range(1, 1 + WITHIN), plan, None, number, BROKEN_LABELS
            )
            >= 0
        )
    return count


def worse(sample: Sample, metric: str, by: float) -> Sample:
    """The same targets with one metric moved to its worse side by a distance, inside its range."""
    own = sample.values[metric]
    moved = (
        np.clip(np.round(own + by), 1, CAP)
        if MetricName.parse(metric).family == "ec"
        else np.clip(own - by, 0, 1)
    )
    return replace(sample, values={**sample.values, metric: moved})


def spread_of(metric: str, deterministic: bool) -> float:
    """SD of a metric over targets."""
    return float(
        np.nanstd(targets_like(100_000, np.random.default_rng(0), deterministic).values[metric])
    )


def first_alarm(
    baseline: Sample,
    looks: Callable[[int], Sample],
    runs: range,
    plan: Plan,
    metric: str | None,
    seed: int,
    labels: ColumnNames = NO_LABELS,
) -> int:
    """Return the first look (from 0) that raises drift, or -1 if none does.

    If ``metric`` is given, only drift of this metric counts.
    """
    seen: list[Sample] = []
    for k in range(runs.stop):
        seen.append(looks(k))
        if k in runs and any(
            metric in (None, own.subject)
            for own in drift_triggers(baseline, seen, plan, labels, seed)
        ):
            return k
    return -1


def false_alarms(options: argparse.Namespace, plan: Plan, size: int, deterministic: bool) -> int:
    """In how many stationary histories something is ever called drift."""
    count = 0
    for number in range(options.histories):
        dice = np.random.default_rng([options.seed, size, deterministic, number])
        baseline = targets_like(size, dice, deterministic)
        looks = [targets_like(options.targets, dice, deterministic) for _ in range(options.runs)]
        count += (
            first_alarm(baseline, looks.__getitem__, range(options.runs), plan, None, number) >= 0
        )
    return count


def found_in_time(
    options: argparse.Namespace, plan: Plan, size: int, metric: str, shift: float
) -> int:
    """In how many histories a shift of one metric that begins at a random run is found within three
    runs.
    """
    by, count = shift * spread_of(metric, False), 0
    for number in range(options.power):
        dice = np.random.default_rng([options.seed, size, 7, number])
        begin = int(dice.integers(0, options.runs - WITHIN + 1))
        baseline = targets_like(size, dice, False)
        looks = [targets_like(options.targets, dice, False) for _ in range(begin + WITHIN)]
        moved = [own if k < begin else worse(own, metric, by) for k, own in enumerate(looks)]
        count += (
            first_alarm(
                baseline, moved.__getitem__, range(begin, begin + WITHIN), plan, metric, number
            )
            >= 0
        )
    return count


def drawn_from(pool: Sample, number: int, dice: np.random.Generator) -> Sample:
    """So many of measured targets, with replacement; metrics only."""
    chosen = dice.integers(0, len(pool), number)
    return Sample(tuple(range(number)), {metric: pool.values[metric][chosen] for metric in METRICS})


def measured_pool(number: int, explainer: gg.BaseExplainer) -> Sample:
    """Nodes of BA-Shapes as a run measures them."""
    net = gg.datasets.trained("BA-Shapes", "node", "gcn")
    model = gg.NodeClassificationModel(net, gg.datasets.load("BA-Shapes", "node"))
    return score_targets(gg.Evaluator(model, timed=0), explainer, sample_recent(model, number))[0]


def false_alarms_measured(options: argparse.Namespace, plan: Plan, size: int, pool: Sample) -> int:
    """In how many histories drawn from measured targets a metric is ever called drifted."""
    count = 0
    for number in range(options.histories):
        dice = np.random.default_rng([options.seed, size, 99, number])
        baseline = drawn_from(pool, size, dice)
        looks = [
            replace(
                drawn_from(pool, options.targets, dice),
                targets=tuple(range(k * 1000, k * 1000 + options.targets)),
            )
            for k in range(options.runs)
        ]
        count += (
            first_alarm(baseline, looks.__getitem__, range(options.runs), plan, None, number) >= 0
        )
    return count


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in (
        ("histories", 200),
        ("runs", 26),
        ("targets", 50),
        ("power", 100),
        ("seed", 0),
        ("measured", 0),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--baseline", type=int, nargs="+", default=[100, 200, 300])
    parser.add_argument("--shift", type=float, nargs="*", default=[1.0])
    parser.add_argument("--broken", nargs="*", default=[], choices=BREAKS)
    options = parser.parse_args()
    plan, start = Plan(number=options.targets, looks=options.runs), time.perf_counter()
    print(
        f"budget {plan.budget:.1%} for {plan.looks} looks, {plan.level():.2g} for all tests of "
        "metrics at a look"
    )
    for deterministic in (False, True) if options.histories else ():
        for size in options.baseline:
            count = false_alarms(options, plan, size, deterministic)
            bound = clopper_pearson_upper(count, options.histories)
            kind = "deterministic" if deterministic else "stochastic"
            print(
                f"stationary, {kind:<13} baseline {size}: {count} of {options.histories} "
                f"histories raise drift ({count / options.histories:.2%}, upper 95 % bound "
                f"{bound:.2%})  [{time.perf_counter() - start:.0f} s]",
                flush=True,
            )
    for explainer in (gg.InputXGradient(), gg.GNNExplainer(epochs=30)) if options.measured else ():
        pool = measured_pool(options.measured, explainer)
        for size in options.baseline:
            count = false_alarms_measured(options, plan, size, pool)
            bound = clopper_pearson_upper(count, options.histories)
            print(
                f"stationary, measured {explainer.name}, baseline {size}: {count} of "
                f"{options.histories} histories raise drift ({count / options.histories:.2%}, "
                f"upper 95 % bound {bound:.2%})  [{time.perf_counter() - start:.0f} s]",
                flush=True,
            )
    for shift in options.shift if options.power else ():
        for size in options.baseline:
            for metric in METRICS:
                count = found_in_time(options, plan, size, metric, shift)
                print(
                    f"shift {shift:g} SD of {metric:<18} baseline {size}: found within {WITHIN} "
                    f"runs in {count / options.power:.0%}  [{time.perf_counter() - start:.0f} s]",
                    flush=True,
                )
    for broken in options.broken:
        for size in options.baseline:
            for known in ("data", "gaps", "labels"):
                count = found_broken(options, plan, size, broken, known)
                print(
                    f"{broken:<9} baseline {size}, runs of {options.targets}, known up to "
                    f"{known:<6}: found within {WITHIN} runs in {count / options.power:.0%}  "
                    f"[{time.perf_counter() - start:.0f} s]",
                    flush=True,
                )


if __name__ == "__main__":
    main()
