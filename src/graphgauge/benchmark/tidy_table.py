"""The tidy table that every analysis reads, made once from `Results`.

    kind           node_classification ... (see task_kinds.py)
    configuration  a (task, model): the paper's "data set and model"
    case           a target, or one of several explanations of it, in a configuration

Averages are always computed in two steps: over the cases of a configuration, then over
configurations.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pandas as pd

from graphgauge.benchmark.task_kinds import kind_of_task, order_kinds
from graphgauge.core import Target, UndefinedScore, lookup
from graphgauge.evaluation import OK, Results, Settings

CONFIGURATION_COLUMNS = ["task", "model"]


@dataclass(frozen=True)
class Study:
    """A table with one row per (task, model, explainer, target, metric): the columns of
    `Results.to_pandas`, kind and case.
    """

    table: pd.DataFrame
    settings: Settings
    #: the table split by a column, by the name of the column: what `split` computed once
    cuts: dict[str, dict[str, pd.DataFrame]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @cached_property
    def good(self) -> pd.DataFrame:
        """The rows that have a value."""
        return self.table[self.table["status"] == OK]

    @cached_property
    def explainers(self) -> list[str]:
        """The labels of the explainers, in their order."""
        return list(self.table["explainer"].unique())

    @cached_property
    def metrics(self) -> list[str]:
        """The names of the metrics, in their order."""
        return list(self.table["metric"].unique())

    @cached_property
    def tasks(self) -> list[str]:
        """The names of the tasks, in their order."""
        return list(self.table["task"].unique())

    @cached_property
    def kinds(self) -> list[str]:
        """The kinds of task, in the paper's order."""
        return order_kinds(self.table["kind"].unique())

    def only(self, **values: Sequence[str] | str) -> "Study":
        """The rows with these values: ``only(kind="node_regression", explainer=["lrp",
        "saliency"])``.
        """
        study = self
        for column, names in values.items():
            accepted = [names] if isinstance(names, str) else list(names)
            parts = [
                lookup(study.split(column), name, f"{column} of these results") for name in accepted
            ]
            is_whole = len(set(accepted)) == len(study.split(column))
            study = (
                study
                if is_whole
                else Study(
                    parts[0] if len(parts) == 1 else pd.concat(parts).sort_index(), self.settings
                )
            )
        return study

    def split(self, column: str) -> dict[str, pd.DataFrame]:
        """The table split by a column; computed once."""
        if column not in self.cuts:
            self.cuts[column] = dict(iter(self.table.groupby(column, sort=False)))
        return self.cuts[column]

    @cached_property
    def by_metric(self) -> dict[str, pd.DataFrame]:
        """The rows that have a value, split by metric."""
        return dict(iter(self.good.groupby("metric", sort=False)))

    def values(self, metric: str) -> pd.DataFrame:
        """The rows of one metric that have a value."""
        lookup(dict.fromkeys(self.metrics), metric, "metric of these results")
        return self.by_metric.get(metric, self.good.iloc[:0])

    @cached_property
    def means(self) -> pd.Series:
        """Means over configurations of means over cases, for each (explainer, metric)."""
        keys = ["explainer", "metric"]
        first = self.good.groupby([*keys, *CONFIGURATION_COLUMNS], sort=False)["value"].mean()
        return first.groupby(keys, sort=False).mean()


def as_study(results: Results | Study) -> Study:
    """The study of some results; a study is returned as it is."""
    if isinstance(results, Study):
        return results
    if not len(results):
        raise UndefinedScore(
            "an analysis needs rows, but these results have none: did the run write any?"
        )
    table = results.with_seeds_as_networks().to_pandas()
    kinds = {task: kind_of_task(task) for task in dict.fromkeys(table["task"])}
    return Study(
        table.assign(kind=table["task"].map(kinds), case=_case_labels(table)), results.settings
    )


def _case_labels(table: pd.DataFrame) -> list[str]:
    """A label for each (target, occurrence)."""
    return [
        _case_label(target, occurrence)
        for target, occurrence in zip(table["target"], table["occurrence"], strict=True)
    ]


def _case_label(target: Target, occurrence: int) -> str:
    """The label of one explanation of a target.

    >>> _case_label(7, 0), _case_label((3, 4), 1)
    ('7', '(3, 4) again 1')
    """
    return str(target) if not occurrence else f"{target} again {occurrence}"
