"""The paper's Table 1 from our own results: a row for each explainer within a kind of task, seven
columns.

For the targets t of a configuration c (a data set and a model) and the n configurations of a kind,

    m_c = mean of the values over t
    mean = (1/n) Σ m_c
    sd = sqrt( Σ (m_c - mean)² / (n - 1) )

A target without a value is left out of m_c and counted: ``missing`` are the explanations of the
kind's targets (of all explainers together) for which this explainer has no value, whatever the
reason, so that one which was never run shows too. Targets that were not meant to be timed are not
missing. ``never_flipped`` are those whose EC is the cap only because nothing changed the
prediction.
"""

from dataclasses import dataclass

import pandas as pd

from graphgauge.benchmark.explainer_names import (
    BASELINE_EXPLAINERS,
    explainer_title,
    sort_as_in_paper,
)
from graphgauge.benchmark.paper.published_numbers import TABLE_COLUMNS
from graphgauge.benchmark.table_formats import BOLD_MARK, format_latex, format_markdown
from graphgauge.benchmark.task_kinds import kind_title
from graphgauge.benchmark.tidy_table import CONFIGURATION_COLUMNS, Study, as_study
from graphgauge.core import lookup
from graphgauge.evaluation import Results, higher_is_better
from graphgauge.metrics import MetricName

#: which numbers stand in the seven columns
_COLUMN_METRICS = {
    "paper": {metric: metric for metric in TABLE_COLUMNS},
    "calibrated": {
        **{metric: metric for metric in TABLE_COLUMNS},
        "feature_pertinence": "feature_pertinence_tied",
        "edge_pertinence": "edge_pertinence_tied",
        "feature_stability": "feature_stability_corrected",
        "edge_stability": "edge_stability_corrected",
    },
}
METRIC_DIGITS = {"feature_ec": 1, "edge_ec": 1}  #: 2 for the others, as in the paper
_NOT_TIMED = "not_timed"


@dataclass(frozen=True)
class Table1:
    """Table 1 of the paper, of other results.

    ``cells`` has one row per cell: kind, explainer, metric, mean, sd, configurations, n, missing,
    never_flipped.
    """

    cells: pd.DataFrame
    which: str

    def wide(self, counts: bool = True) -> pd.DataFrame:
        """The paper's layout, as texts; the best of each kind and column in bold."""
        cells = self.cells.assign(
            text=[_format_cell(row, counts) for row in self.cells.to_dict("records")]
        )
        cells["text"] = cells["text"].where(~self.is_best(), BOLD_MARK + cells["text"] + BOLD_MARK)
        texts = cells.pivot(index=["kind", "explainer"], columns="metric", values="text")
        rows = list(dict.fromkeys(zip(cells["kind"], cells["explainer"], strict=True)))
        shown_cells = texts.reindex(
            index=pd.MultiIndex.from_tuples(rows),
            columns=list(_COLUMN_METRICS[self.which].values()),
        )
        names = {
            "Task": [kind_title(kind) for kind, _ in rows],
            "Explainer": [explainer_title(name) for _, name in rows],
        }
        return pd.DataFrame(
            {
                **names,
                **{
                    heading: shown_cells[metric].tolist()
                    for heading, metric in self.headings().items()
                },
            }
        )

    def headings(self) -> dict[str, str]:
        """The headings of the columns, with their metrics."""
        marked = {
            paper: f"{TABLE_COLUMNS[paper]}{'' if paper == metric else ' *'}"
            for paper, metric in _COLUMN_METRICS[self.which].items()
        }
        return {marked[paper]: metric for paper, metric in _COLUMN_METRICS[self.which].items()}

    def is_best(self) -> pd.Series:
        """Whether the mean of a cell, rounded as it is shown, is the best of its kind and metric;
        baselines do not take part.
        """
        rounded = [
            round(mean, METRIC_DIGITS.get(metric, 2))
            for mean, metric in zip(self.cells["mean"], self.cells["metric"], strict=True)
        ]
        signs = self.cells["metric"].map(
            {metric: 1 if higher_is_better(metric) else -1 for metric in set(self.cells["metric"])}
        )
        good = signs * pd.Series(rounded, index=self.cells.index)
        good = good.where(~self.cells["explainer"].isin(BASELINE_EXPLAINERS))
        best = good.groupby([self.cells["kind"], self.cells["metric"]]).transform("max")
        return good == best

    def as_markdown(self) -> str:
        """The table in Markdown, with counts in each cell."""
        return format_markdown(self.wide())

    def as_latex(self) -> str:
        """The table in LaTeX, in the layout of the original: means and SDs."""
        wide = self.wide(counts=False)
        breaks = [k for k in range(1, len(wide)) if wide["Task"][k] != wide["Task"][k - 1]]
        return format_latex(wide, f"Results over data sets and models ({self.which}).", breaks)

    def as_csv(self) -> str:
        """Every number of every cell as CSV."""
        return self.cells.to_csv(index=False)


def table_1(results: Results | Study, which: str = "paper") -> Table1:
    """The paper's Table 1 from our results.

    Args:
        results: Results, or the table made of them.
        which: "paper", or "calibrated" for the calibrated twins of pertinence and stability in
            their columns.
    """
    study = as_study(results)
    metrics = list(lookup(_COLUMN_METRICS, which, "table").values())
    return Table1(_summarise_cells(study, metrics), which)


def _summarise_cells(study: Study, metrics: list[str]) -> pd.DataFrame:
    """One row for each kind, explainer and metric, in the paper's order."""
    groups = dict(
        iter(
            study.table[study.table["metric"].isin(metrics)].groupby(
                ["kind", "explainer", "metric"], sort=False
            )
        )
    )
    empty = study.table.iloc[:0]
    lines = []
    for kind in study.kinds:
        kind_rows = study.table[study.table["kind"] == kind]
        num_cases = len(kind_rows[[*CONFIGURATION_COLUMNS, "case"]].drop_duplicates())
        for explainer in sort_as_in_paper(list(dict.fromkeys(kind_rows["explainer"]))):
            lines += [
                _summarise_cell(
                    kind, explainer, metric, groups.get((kind, explainer, metric), empty), num_cases
                )
                for metric in metrics
            ]
    return pd.DataFrame(lines)


def _summarise_cell(
    kind: str, explainer: str, metric: str, part: pd.DataFrame, num_cases: int
) -> dict[str, object]:
    """Mean, sd and counts of one cell."""
    good = part[part["status"] == "ok"]
    means = good.groupby(CONFIGURATION_COLUMNS)["value"].mean()
    has_not_flipped = good["flipped"].eq(False)  # None is not False
    never = int(has_not_flipped.sum()) if MetricName.parse(metric).family == "ec" else None
    return {
        "kind": kind,
        "explainer": explainer,
        "metric": metric,
        "mean": float(means.mean()),
        "sd": float(means.std(ddof=1)),
        "configurations": len(means),
        "n": len(good),
        "missing": num_cases - len(good) - int((part["status"] == _NOT_TIMED).sum()),
        "never_flipped": never,
    }


def _format_cell(row: dict[str, object], counts: bool) -> str:
    """A cell for people: ``0.94±0.06 (594; 6 missing)``.

    >>> cell = {"metric": "edge_ec", "mean": 3, "sd": 1.25, "n": 9, "missing": 1}
    >>> _format_cell({**cell, "never_flipped": 2}, counts=True)
    '3.0±1.2 (9; 1 missing; 2 never flip)'
    """
    if not row["n"]:
        return "-"
    digits = METRIC_DIGITS.get(str(row["metric"]), 2)
    spread = f"±{row['sd']:.{digits}f}" if row["sd"] == row["sd"] else ""
    notes = [f"{row['n']}"]
    notes += [f"{row['missing']} missing"] if row["missing"] else []
    notes += (
        [f"{row['never_flipped']:.0f} never flip"]
        if float(str(row["never_flipped"] or 0)) > 0
        else []
    )
    return f"{row['mean']:.{digits}f}{spread}" + (f" ({'; '.join(notes)})" if counts else "")
