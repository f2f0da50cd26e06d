"""Report: pictures out of results."""

from graphgauge.report.curves import plot_deletion_curve

__all__ = ["plot_deletion_curve"]
