"""The benchmark: experiment files, the runner that measures them in shards, and tables of what a
run says.

Names are imported when they are first used: the runner and the store need no torch, and start at
once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphgauge.benchmark.bootstrap import Difference, Ranking, paired_bootstrap, ranking
    from graphgauge.benchmark.comparison import Comparison, compare_with_paper
    from graphgauge.benchmark.correlation import agreement
    from graphgauge.benchmark.counting import Effort, effort
    from graphgauge.benchmark.experiment import Experiment
    from graphgauge.benchmark.files import read_experiment, shipped
    from graphgauge.benchmark.kinds import KINDS, kind_of
    from graphgauge.benchmark.paper import table_1_of_the_paper
    from graphgauge.benchmark.pareto import fronts, robustly_non_dominated
    from graphgauge.benchmark.planning import Place, Plan, plan_of
    from graphgauge.benchmark.runs import Run
    from graphgauge.benchmark.session import Call, carry_out
    from graphgauge.benchmark.study import Study, study_of
    from graphgauge.benchmark.summary import read_summary, summary_csv, summary_table
    from graphgauge.benchmark.table import Table1, table_1
    from graphgauge.benchmark.variants import with_variants

#: every public name and the file it lives in
PUBLIC = {
    "agreement": "correlation",
    "Difference": "bootstrap",
    "Ranking": "bootstrap",
    "paired_bootstrap": "bootstrap",
    "ranking": "bootstrap",
    "Comparison": "comparison",
    "compare_with_paper": "comparison",
    "Effort": "counting",
    "effort": "counting",
    "Experiment": "experiment",
    "read_experiment": "files",
    "shipped": "files",
    "fronts": "pareto",
    "robustly_non_dominated": "pareto",
    "KINDS": "kinds",
    "kind_of": "kinds",
    "table_1_of_the_paper": "paper",
    "Place": "planning",
    "Plan": "planning",
    "plan_of": "planning",
    "Run": "runs",
    "Call": "session",
    "carry_out": "session",
    "Study": "study",
    "study_of": "study",
    "read_summary": "summary",
    "summary_csv": "summary",
    "summary_table": "summary",
    "Table1": "table",
    "table_1": "table",
    "with_variants": "variants",
}

__all__ = [
    "KINDS",
    "Call",
    "Comparison",
    "Difference",
    "Effort",
    "Experiment",
    "Place",
    "Plan",
    "Ranking",
    "Run",
    "Study",
    "Table1",
    "agreement",
    "carry_out",
    "compare_with_paper",
    "effort",
    "fronts",
    "kind_of",
    "paired_bootstrap",
    "plan_of",
    "ranking",
    "read_experiment",
    "read_summary",
    "robustly_non_dominated",
    "shipped",
    "study_of",
    "summary_csv",
    "summary_table",
    "table_1",
    "table_1_of_the_paper",
    "with_variants",
]


def __getattr__(name: str) -> Any:
    if name in PUBLIC:
        return getattr(import_module(f"graphgauge.benchmark.{PUBLIC[name]}"), name)
    raise AttributeError(f"module 'graphgauge.benchmark' has no attribute {name!r}")
