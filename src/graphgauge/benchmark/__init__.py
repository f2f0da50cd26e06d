"""Benchmark: what a run of many tasks says, as tables."""

from graphgauge.benchmark.agreement import agreement
from graphgauge.benchmark.bootstrap import Difference, Ranking, paired_bootstrap, ranking
from graphgauge.benchmark.comparison import Comparison, compare_with_paper, with_variants
from graphgauge.benchmark.effort import Effort, effort
from graphgauge.benchmark.fronts import fronts, robustly_non_dominated
from graphgauge.benchmark.kinds import KINDS, kind_of
from graphgauge.benchmark.paper import table_1_of_the_paper
from graphgauge.benchmark.study import Study, study_of
from graphgauge.benchmark.summary import read_summary, summary_csv, summary_table
from graphgauge.benchmark.table import Table1, table_1

__all__ = [
    "KINDS",
    "Comparison",
    "Difference",
    "Effort",
    "Ranking",
    "Study",
    "Table1",
    "agreement",
    "compare_with_paper",
    "effort",
    "fronts",
    "kind_of",
    "paired_bootstrap",
    "ranking",
    "read_summary",
    "robustly_non_dominated",
    "study_of",
    "summary_csv",
    "summary_table",
    "table_1",
    "table_1_of_the_paper",
    "with_variants",
]
