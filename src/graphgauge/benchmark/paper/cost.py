"""What a run cost: trials beside the paper's "35-40", explanations beside its "~2M".

The trials of pertinence are random curves per (target, reference); those of stability are pairs of
explanations (M explanations where it is binomial). Where an explainer is deterministic, two equal
explanations settle its stability, and where stability is binomial, M is given: neither is a series
of trials that a rule stops, so both are left out of the mean.

Explanations are counted from the rows:

    scored       one for each (task, model, explainer, target)
    stability    2 where deterministic, M where binomial, else 2 x pairs
    time         3 for each target explained alone; warm-ups are not counted

The same explanations serve the stability of features and edges. Pairs are made in stages and some
are not needed: only those that count are counted, so this number is a lower bound. Nothing else
runs an explainer.

``by the paper's rule, at most`` is what the paper's text allows for the same targets: 30 pairs
where nothing varies, else 100 pairs. For its own 16,000 explanations that is 1.52 million, not 2.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from graphgauge.benchmark.paper.published_numbers import PAPER_EXPLANATIONS, PAPER_MEAN_TRIALS
from graphgauge.benchmark.tidy_table import CONFIGURATION_COLUMNS, Study, as_study
from graphgauge.evaluation import REPEATS, Results

_STOP_DETERMINISTIC, _STOP_BINOMIAL = "deterministic", "binomial"
_REPEATED_METRICS = ("feature_stability", "edge_stability")
_TRIAL_METRICS = ("feature_pertinence", "edge_pertinence", *_REPEATED_METRICS)
_LEAST_PAIRS, _MOST_PAIRS = 30, 100  #: the paper's


@dataclass(frozen=True)
class Effort:
    """``trials``: mean per metric; ``stops``: share of each reason; ``explanations``: how many were
    made, and for what.
    """

    trials: pd.DataFrame
    stops: pd.DataFrame
    explanations: pd.DataFrame


def effort(results: Results | Study) -> Effort:
    """Count trials, reasons to stop and explanations of a run."""
    study = as_study(results)
    series = _trial_series(study)
    return Effort(_mean_trials(series), _stop_reason_shares(series), _count_explanations(study))


def _trial_series(study: Study) -> pd.DataFrame:
    """One row for each series of trials: metric, trials, stop."""
    chosen = study.good[study.good["metric"].isin(_TRIAL_METRICS) & study.good["trials"].notna()]
    lines = [
        (metric, count, reason)
        for metric, trials, stop in zip(
            chosen["metric"], chosen["trials"], chosen["stop"], strict=True
        )
        for count, reason in zip(trials, stop, strict=True)
    ]
    return pd.DataFrame(lines, columns=["metric", "trials", "stop"])


def _mean_trials(series: pd.DataFrame) -> pd.DataFrame:
    """Mean number of trials per metric, for pertinence and for all together, beside the paper's."""
    real = series[~series["stop"].isin([_STOP_DETERMINISTIC, _STOP_BINOMIAL])]
    groups: list[tuple[str, pd.DataFrame]] = [
        (name, real[real["metric"] == name]) for name in _TRIAL_METRICS
    ]
    groups += [
        ("pertinence, both sides", real[real["metric"].str.endswith("pertinence")]),
        ("all", real),
    ]
    paper = "-".join(map(str, PAPER_MEAN_TRIALS))
    lines = [
        (name, len(part), float(part["trials"].mean()), paper) for name, part in groups if len(part)
    ]
    return pd.DataFrame(lines, columns=["metric", "series", "mean_trials", "paper"])


def _stop_reason_shares(series: pd.DataFrame) -> pd.DataFrame:
    """The share of each metric's series that stopped for each reason."""
    lines = [
        (metric, reason, int(count), count / len(part))
        for metric, part in series.groupby("metric", sort=False)
        for reason, count in part["stop"].value_counts().items()
    ]
    return pd.DataFrame(lines, columns=["metric", "stop", "series", "share"])


def _count_explanations(study: Study) -> pd.DataFrame:
    """How many explanations were made, and for what."""
    key = [*CONFIGURATION_COLUMNS, "explainer", "case"]
    scored = len(study.table[key].drop_duplicates())
    repeated = study.good[study.good["metric"].isin(_REPEATED_METRICS)]
    repeated = repeated.assign(
        calls=[
            _count_calls(*pair) for pair in zip(repeated["trials"], repeated["stop"], strict=True)
        ]
    )
    each = repeated.groupby(key, sort=False)["calls"].max()
    timed = REPEATS * int((study.good["metric"] == "time").sum())
    lines = [
        ("scored", scored, "one per task, model, explainer and target"),
        (
            "stability",
            int(each.sum()),
            "2 where deterministic, M where binomial, else 2 per pair that counts",
        ),
        ("time", timed, f"{REPEATS} per target explained alone"),
        ("all", scored + int(each.sum()) + timed, "the sum"),
        (
            "by the paper's rule, at most",
            _paper_upper_bound(repeated.groupby(key, sort=False)["stop"].first()),
            "60 where nothing varies, else 200",
        ),
        ("the paper's claim", PAPER_EXPLANATIONS, "about"),
    ]
    return pd.DataFrame(lines, columns=["explanations", "number", "how"])


def _count_calls(trials: Sequence[int] | None, stop: Sequence[str]) -> int:
    """Number of explanations behind one stability.

    >>> _count_calls((1,), ("deterministic",)), _count_calls((15,), ("binomial",))
    (2, 15)
    >>> _count_calls((30,), ("precise",))
    60
    """
    if trials is None or not len(trials):
        return 0
    return int(trials[0]) if stop[0] == _STOP_BINOMIAL else 2 * int(trials[0])


def _paper_upper_bound(stops: Iterable[Sequence[str] | None]) -> int:
    """The largest number of explanations that the paper's rule allows for the same targets."""
    return sum(
        2 * (_LEAST_PAIRS if stop is not None and _STOP_DETERMINISTIC in stop else _MOST_PAIRS)
        for stop in stops
    )
