"""The format of a published run: ``summary.csv`` with the columns task, explainer, metric, mean,
sd, n.

``task`` is a kind of task (node_classification ...) in the first rows, then each task by itself.
Means and SDs are those of `Results.summary`: the mean over (task, model) of means over targets, and
the SD over (task, model), or over targets where there is only one (task, model). n is the number of
targets with a value. A number that does not exist is an empty field.
"""

import os
from pathlib import Path

import pandas as pd

from graphgauge.benchmark.pareto_fronts import analysis_scopes
from graphgauge.benchmark.tidy_table import CONFIGURATION_COLUMNS, Study, as_study
from graphgauge.core import BadFile
from graphgauge.evaluation import Results

_SUMMARY_COLUMNS = ["task", "explainer", "metric", "mean", "sd", "n"]


def summary_table(results: Results | Study) -> pd.DataFrame:
    """Mean, sd and n of every metric of every explainer, for each kind of task and each task."""
    # a dictionary, so that a task that is a kind of its own comes once
    parts = {name: part for _, name, part in analysis_scopes(as_study(results))}
    return pd.concat(
        [_summarise_study(part).assign(task=name) for name, part in parts.items()],
        ignore_index=True,
    )[_SUMMARY_COLUMNS]


def _summarise_study(study: Study) -> pd.DataFrame:
    """Mean, sd and n of every metric of every explainer; the mean is NaN where nothing has
    a value.
    """
    keys = ["explainer", "metric"]
    means = (
        study.good.groupby([*keys, *CONFIGURATION_COLUMNS], sort=False)["value"]
        .mean()
        .groupby(keys, sort=False)
    )
    over_targets = study.good.groupby(keys, sort=False)["value"].std(ddof=1)
    sd = means.std(ddof=1).where(means.size() > 1, over_targets)
    table = pd.DataFrame(
        {"mean": means.mean(), "sd": sd, "n": study.good.groupby(keys, sort=False).size()}
    )
    every = pd.MultiIndex.from_frame(study.table[keys].drop_duplicates())
    return table.reindex(every).fillna({"n": 0}).astype({"n": int}).reset_index()


def summary_csv(results: Results | Study) -> str:
    """The table as text, numbers to the last bit."""
    return summary_table(results).to_csv(index=False, lineterminator="\n")


def read_summary(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read what `summary_csv` wrote."""
    try:
        table = pd.read_csv(
            Path(path),
            dtype={"task": str, "explainer": str, "metric": str},
            keep_default_na=False,
            na_values={"mean": [""], "sd": [""]},
        )
        return _check_summary_columns(table).astype({"mean": float, "sd": float, "n": int})
    except (OSError, ValueError) as error:
        raise BadFile(f"{os.fspath(path)} holds no summary of a run: {error}") from error


def _check_summary_columns(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table, or raise ValueError if it has other columns."""
    if list(table.columns) != _SUMMARY_COLUMNS:
        raise ValueError(
            f"its columns are {', '.join(map(str, table.columns))}, but must be "
            f"{', '.join(_SUMMARY_COLUMNS)}."
        )
    return table
