"""Report: pictures and pages out of results."""

from graphgauge.report.analysis import write_analysis
from graphgauge.report.bars import plot_edge_bars, plot_feature_bars
from graphgauge.report.curves import plot_deletion_curve
from graphgauge.report.html import svg_of
from graphgauge.report.page import Report, report
from graphgauge.report.pareto import plot_fronts, plot_pareto
from graphgauge.report.strips import plot_stability_strips
from graphgauge.report.subgraph import draw_explanation

__all__ = [
    "Report",
    "draw_explanation",
    "plot_deletion_curve",
    "plot_edge_bars",
    "plot_feature_bars",
    "plot_fronts",
    "plot_pareto",
    "plot_stability_strips",
    "report",
    "svg_of",
    "write_analysis",
]
