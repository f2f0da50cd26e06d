"""The benchmark: experiment files, the runner that measures them in pieces, and its engines.

Names are imported when they are first used: the runner and the store need no torch, and start at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphgauge.benchmark.experiment import Experiment
    from graphgauge.benchmark.files import read_experiment, shipped
    from graphgauge.benchmark.planning import Place, Plan, plan_of
    from graphgauge.benchmark.runs import Run
    from graphgauge.benchmark.session import Call, carry_out

#: every public name and the file it lives in
PUBLIC = {
    "Experiment": "experiment",
    "read_experiment": "files",
    "shipped": "files",
    "Place": "planning",
    "Plan": "planning",
    "plan_of": "planning",
    "Run": "runs",
    "Call": "session",
    "carry_out": "session",
}

__all__ = ["Call", "Experiment", "Place", "Plan", "Run", "carry_out", "plan_of", "read_experiment", "shipped"]


def __getattr__(name: str) -> Any:
    if name in PUBLIC:
        return getattr(import_module(f"graphgauge.benchmark.{PUBLIC[name]}"), name)
    raise AttributeError(f"module 'graphgauge.benchmark' has no attribute {name!r}")
