"""Report: pictures and pages out of results."""

from graphgauge.report.analysis import write_analysis
from graphgauge.report.curves import plot_deletion_curve
from graphgauge.report.pareto import plot_fronts, plot_pareto

__all__ = ["plot_deletion_curve", "plot_fronts", "plot_pareto", "write_analysis"]
