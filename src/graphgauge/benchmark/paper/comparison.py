"""Our Table 1 beside the paper's: differences, the order of the explainers, and the cells that
disagree, with the likely reason.

    difference     ours - paper, of means over (data set, model)
    order          Spearman's ρ between our means and the paper's, over the explainers of both
    repeatable     the ρ that the paper's means reach with themselves, drawn again within their
                   standard errors, SD / sqrt(n): the median and the 5 % quantile
    disagreement   |difference| above ALLOWED: 0.1 for numbers in [0, 1], 10 edits; times differ by
                   more than a factor of 3, where times below 0.01 s count as 0.01 s

Means closer than TIES count as tied in the order: 0.03 for pertinence, 3 edits of the cap of 100,
and what the paper's last digit can tell for stability and time, 0.005 and 0.01 s. Where methods lie
close together, no second measurement finds the same order.

The allowances are fixed numbers, not multiples of the SDs in the table: those are differences
between data sets, which both sides share (49.0 ± 53.8 would excuse anything). ``sds`` is
|difference| / sqrt(sd² + paper's sd²) all the same.

If results hold a variant that mimics what the paper ran (``lrp(variant=captum)``), the variant is
compared, not the default.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from graphgauge.benchmark.explainer_names import PAPER_EXPLAINERS, explainer_title, paper_method
from graphgauge.benchmark.paper.discrepancy_rules import likely_reason
from graphgauge.benchmark.paper.published_numbers import (
    TABLE_COLUMNS,
    PublishedCell,
    table_1_of_the_paper,
)
from graphgauge.benchmark.paper.table import METRIC_DIGITS, table_1
from graphgauge.benchmark.paper.variants import MIMICKING_VARIANTS
from graphgauge.benchmark.rank_correlation import spearman_correlation
from graphgauge.benchmark.task_kinds import TASK_KIND_TITLES
from graphgauge.benchmark.tidy_table import CONFIGURATION_COLUMNS, Study, as_study
from graphgauge.core import JsonObject, UndefinedScore
from graphgauge.evaluation import Results
from graphgauge.metrics import MetricName

TIE_WIDTHS = {"pertinence": 0.03, "stability": 0.005, "ec": 3.0, "time": 0.01}
_ALLOWED_DIFFERENCES = {"pertinence": 0.1, "stability": 0.1, "ec": 10.0}
_TIME_FACTOR, _SHORTEST_TIME = 3.0, 0.01  #: for times
_DETERMINISTIC_EXPLAINERS = (
    "deconvolution",
    "guided_backprop",
    "input_x_gradient",
    "integrated_gradients",
    "lrp",
    "saliency",
)
_PAPER_DRAWS = 2000  #: of the paper's means
_BEST_OF_THE_PAPER = ("input_x_gradient", "integrated_gradients")


@dataclass(frozen=True)
class PaperComparison:
    """Our results beside the paper's.

    ``cells`` has every cell that both have, ``orders`` one row per kind and metric,
    ``disagreements`` the cells that disagree, with a reason.
    """

    cells: pd.DataFrame
    orders: pd.DataFrame
    disagreements: pd.DataFrame

    def side_by_side(self, metric: str) -> pd.DataFrame:
        """Our mean and the paper's in one cell: a row for each explainer, a column for each kind of
        task.
        """
        digits = METRIC_DIGITS.get(metric, 2)
        cells = self.cells[self.cells["metric"] == metric]
        text = [
            f"{ours:.{digits}f} / {paper:.{digits}f}"
            for ours, paper in zip(cells["ours"], cells["paper"], strict=True)
        ]
        table = (
            cells.assign(text=text)
            .pivot(index="label", columns="kind", values="text")
            .loc[list(dict.fromkeys(cells["label"]))]
        )
        columns = {
            shown: table[kind].tolist() for kind, shown in TASK_KIND_TITLES.items() if kind in table
        }
        return pd.DataFrame(
            {"Explainer": [explainer_title(label) for label in table.index], **columns}
        )

    def claims(self) -> pd.DataFrame:
        """Whether what the paper found is found again, with the columns claim, found and holds."""
        orders = self.orders[self.orders["metric"].str.endswith("pertinence")]
        good, mean = (
            int((orders["spearman"] >= 0.8).sum()),
            float(_mean_pertinence_difference(self.cells)),
        )
        parts = [
            (
                "stability of the six deterministic methods is 1.00",
                *_check_deterministic_stability(self.cells),
            ),
            (
                "Input×Grad or IntGrad has the best feature pertinence in every kind of task",
                *_check_best_pertinence(self.cells),
            ),
            (
                "Spearman of the order by pertinence is 0.8 or more in 7 of 8 cells",
                f"{good} of {len(orders)}",
                8 * good >= 7 * len(orders),
            ),
            ("mean absolute difference of pertinence is 0.10 or less", f"{mean:.3f}", mean <= 0.10),
        ]
        return pd.DataFrame(parts, columns=["claim", "found", "holds"])


def compare_with_paper(
    results: Results | Study, draws: int = _PAPER_DRAWS, seed: int = 0
) -> PaperComparison:
    """Compare our results with the paper's Table 1.

    Args:
        results: Results of tasks of the paper, such as ``cora-node``.
        draws: Number of draws of the paper's means.
        seed: Seed of the draws.
    """
    study = as_study(results)
    cells = compare_cells(study)
    off = cells[~cells["agrees"]]
    reasons = [likely_reason(cell, study.settings) for cell in off.to_dict("records")]
    return PaperComparison(
        cells,
        _compare_orders(cells, draws, seed),
        off.assign(reason=reasons).reset_index(drop=True),
    )


def _match_paper_methods(labels: list[str]) -> dict[str, str]:
    """The paper's method that each label stands for: if several do, a variant that mimics the
    paper, else the default.

    >>> _match_paper_methods(["lrp", "lrp(variant=captum)", "saliency", "random"])
    {'lrp(variant=captum)': 'lrp', 'saliency': 'saliency'}
    """
    chosen: dict[str, str] = {}
    for method in PAPER_EXPLAINERS:
        candidates = [label for label in labels if paper_method(label) == method]
        mimic = MIMICKING_VARIANTS.get(method, "\0")
        chosen |= (
            {min(candidates, key=lambda label: (mimic not in label, label != method)): method}
            if candidates
            else {}
        )
    return chosen


def compare_cells(study: Study) -> pd.DataFrame:
    """Compare every cell that both tables have."""
    paper, table, capped = table_1_of_the_paper(), table_1(study).cells, _capped_means(study)
    methods = _match_paper_methods(study.explainers)
    lines = [
        {
            **_compare_cell(
                methods[row["explainer"]],
                row,
                paper[row["kind"], methods[row["explainer"]], row["metric"]],
            ),
            "ours_capped": capped[row["kind"], row["explainer"]]
            if row["metric"] == "edge_ec"
            else float("nan"),
        }
        for row in table.to_dict("records")
        if row["kind"] in TASK_KIND_TITLES and row["explainer"] in methods and row["n"]
    ]
    if not lines:
        raise UndefinedScore(
            "nothing can be compared with the paper: its tasks are called cora-node, "
            "movielens-link and so on, its explainers "
            f"{', '.join(PAPER_EXPLAINERS)}; these results have the tasks "
            f"{', '.join(study.tasks) or 'without a name'} and "
            f"the explainers {', '.join(study.explainers)}."
        )
    return pd.DataFrame(lines)


def _compare_cell(method: str, row: JsonObject, paper: PublishedCell) -> JsonObject:
    """Compare a row of our table with the paper's cell."""
    difference = row["mean"] - paper.mean
    spread = float(np.hypot(row["sd"], paper.sd))
    return {
        "kind": row["kind"],
        "metric": row["metric"],
        "explainer": method,
        "label": row["explainer"],
        "ours": row["mean"],
        "ours_sd": row["sd"],
        "configurations": row["configurations"],
        "paper": paper.mean,
        "paper_sd": paper.sd,
        "paper_configurations": paper.configurations,
        "difference": difference,
        "sds": abs(difference) / spread if spread > 0 else float("nan"),
        "agrees": _agrees_with_paper(row["metric"], row["mean"], paper.mean),
    }


def _capped_means(study: Study) -> dict[tuple[str, str], float]:
    """Mean edge EC of each kind and explainer if a target that never flips counted as the cap, not
    as its number of edges.
    """
    ec = study.good[study.good["metric"] == "edge_ec"]
    counted = ec.assign(value=ec["value"].where(ec["flipped"].ne(False), study.settings.cap))
    by = ["kind", "explainer"]
    means: dict[tuple[str, str], float] = (
        counted.groupby([*by, *CONFIGURATION_COLUMNS])["value"]
        .mean()
        .groupby(level=by)
        .mean()
        .to_dict()
    )
    return means


def _agrees_with_paper(metric: str, ours: float, paper: float) -> bool:
    """Whether two means are as close as allowed.

    >>> _agrees_with_paper("edge_pertinence", 0.8, 0.9), _agrees_with_paper("edge_ec", 31, 20)
    (True, False)
    >>> _agrees_with_paper("time", 0.001, 0.02)
    True
    """
    if metric == "time":
        ratio = max(ours, _SHORTEST_TIME) / max(paper, _SHORTEST_TIME)
        return 1 / _TIME_FACTOR <= ratio <= _TIME_FACTOR
    return bool(
        abs(ours - paper) <= _ALLOWED_DIFFERENCES[MetricName.parse(metric).without_side] + 1e-9
    )


def _compare_orders(cells: pd.DataFrame, draws: int, seed: int) -> pd.DataFrame:
    """Compare the order of the explainers for each kind and metric."""
    groups = [
        (kind, metric, cells[(cells["kind"] == kind) & (cells["metric"] == metric)])
        for kind in TASK_KIND_TITLES
        for metric in TABLE_COLUMNS
    ]
    return pd.DataFrame(
        [
            _compare_order(kind, metric, part, draws, seed)
            for kind, metric, part in groups
            if len(part)
        ]
    )


def _compare_order(kind: str, metric: str, part: pd.DataFrame, draws: int, seed: int) -> JsonObject:
    """Compare the order of the explainers for one kind and metric."""
    tie = TIE_WIDTHS[MetricName.parse(metric).without_side]
    median, low = _order_repeatability(part, metric, draws, seed)
    return {
        "kind": kind,
        "metric": metric,
        "explainers": len(part),
        "spearman": float(
            spearman_correlation(part["ours"].to_numpy(float), part["paper"].to_numpy(float), tie)
        ),
        "repeatable": median,
        "repeatable_low": low,
        "mean_difference": float(part["difference"].mean()),
        "mean_abs_difference": float(part["difference"].abs().mean()),
        "largest_difference": float(part["difference"].abs().max()),
        "disagreeing": int((~part["agrees"]).sum()),
    }


def _order_repeatability(
    part: pd.DataFrame, metric: str, draws: int, seed: int
) -> tuple[float, float]:
    """Median and 5 % quantile of ρ between the paper's means and the same means drawn again, inside
    the metric's range.

    Draws in which all are tied have no ρ and are left out; NaN where the paper's own order is one
    tie.
    """
    form, means = MetricName.parse(metric).without_side, part["paper"].to_numpy(float)
    errors = part["paper_sd"].to_numpy(float) / np.sqrt(
        part["paper_configurations"].to_numpy(float)
    )
    drawn = means + errors * np.random.default_rng(seed).standard_normal((draws, len(means)))
    correlations = spearman_correlation(
        drawn.clip(0.0, 1.0 if form in ("pertinence", "stability") else None),
        means,
        TIE_WIDTHS[form],
    )
    known = correlations[~np.isnan(correlations)]
    return (
        (float(np.median(known)), float(np.quantile(known, 0.05)))
        if len(known)
        else (float("nan"), float("nan"))
    )


def _mean_pertinence_difference(cells: pd.DataFrame) -> float:
    """Mean absolute difference over the cells of pertinence."""
    return float(cells[cells["metric"].str.endswith("pertinence")]["difference"].abs().mean())


def _check_deterministic_stability(cells: pd.DataFrame) -> tuple[str, bool]:
    """The lowest stability of the deterministic methods, and whether it is 1.00."""
    chosen = cells[
        cells["metric"].str.endswith("stability")
        & cells["explainer"].isin(_DETERMINISTIC_EXPLAINERS)
    ]["ours"]
    return (
        (f"lowest {chosen.min():.4f}", bool(chosen.min() >= 0.995))
        if len(chosen)
        else ("not measured", False)
    )


def _check_best_pertinence(cells: pd.DataFrame) -> tuple[str, bool]:
    """The number of kinds in which one of the two has the best feature pertinence, to two
    digits.
    """
    chosen = cells[cells["metric"] == "feature_pertinence"].assign(
        ours=lambda table: table["ours"].round(2)
    )
    best = chosen[chosen["ours"] == chosen.groupby("kind")["ours"].transform("max")]
    num_best, num_kinds = (
        best[best["explainer"].isin(_BEST_OF_THE_PAPER)]["kind"].nunique(),
        chosen["kind"].nunique(),
    )
    return f"{num_best} of {num_kinds}", num_best == num_kinds > 0
