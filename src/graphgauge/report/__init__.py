"""Report: pictures out of results."""

from graphgauge.report.bars import plot_edge_bars, plot_feature_bars
from graphgauge.report.curves import plot_deletion_curve
from graphgauge.report.html import svg_of
from graphgauge.report.strips import plot_stability_strips
from graphgauge.report.subgraph import draw_explanation

__all__ = ["draw_explanation", "plot_deletion_curve", "plot_edge_bars", "plot_feature_bars", "plot_stability_strips", "svg_of"]
