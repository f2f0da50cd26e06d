"""What a notebook shows of an explanation and of results: a little HTML with inline SVG.

The HTML loads nothing and runs nothing: it has no script and no outside address, and every text is
escaped. The same input gives the same bytes. An explanation knows the ids of its edges but not
their ends, so its edges appear as bars; `x.draw(data)` draws them as a graph.
"""

import math
from collections.abc import Callable, Mapping
from html import escape
from typing import TYPE_CHECKING

from graphgauge.core import Xplanation
from graphgauge.evaluation import STATUSES, Results, score_status
from graphgauge.narrative import Names
from graphgauge.plots import (
    PLAIN_TEXT,
    bars_figure_height,
    draw_strips,
    explanation_title,
    plot_edge_bars,
    plot_feature_bars,
    svg_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_BARS = 10
_BOUNDED_METRICS = ("stability", "pertinence")  #: metrics that are drawn as strips


def explanation_html(x: Xplanation) -> str:
    """Show target, explainer and prediction, bars of both sides, and what was measured."""
    parts = [f"<p><b>{escape(explanation_title(x, Names()))}</b></p>"]
    parts += [_side_html(x, "feature", plot_feature_bars), _side_html(x, "edge", plot_edge_bars)]
    parts.append(_metrics_html(x.metrics))
    return f'<div class="graphgauge">{"".join(parts)}</div>'


def _side_html(x: Xplanation, side: str, plot: Callable[..., "Axes"]) -> str:
    """Show the bars of one side, or say why there are none."""
    from matplotlib.figure import Figure

    score = getattr(x, f"{side}_score")
    status = score_status(score, len(x.nodes) if side == "feature" else len(x.edges))
    if status:
        return f"<p>No {side} scores to show: {escape(STATUSES[status])}.</p>"
    figure = Figure(
        figsize=(7, bars_figure_height(min(_MAX_BARS, int((score != 0).sum())))),
        layout="constrained",
    )
    plot(x, top=_MAX_BARS, ax=figure.subplots()).set_title("")
    return svg_of(figure)


def _metrics_html(metrics: Mapping[str, object]) -> str:
    """Show measured numbers as a table; '' if there are none."""
    numbers = {
        name: value
        for name, value in metrics.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }
    rows = "".join(
        f"<tr><td>{escape(str(name))}</td><td>{escape(_format_metric(value))}</td></tr>"
        for name, value in numbers.items()
    )
    return f"<table><tr><th>metric</th><th>value</th></tr>{rows}</table>" if rows else ""


def _format_metric(value: float) -> str:
    """Format with three significant digits; NaN becomes a dash."""
    return "–" if math.isnan(value) else f"{value:.3g}"


def results_html(results: Results) -> str:
    """Show the headline numbers of each explainer, and the values of single targets as strips."""
    table = results.headline()
    num_targets = len({row.target for row in results.rows})
    head = (
        f"<p><b>{num_targets:,} target{'' if num_targets == 1 else 's'}</b>, means over targets</p>"
    )
    table_html = table.to_html(float_format=_format_metric, na_rep="–", border=0, escape=True)
    strips = _strips_html(results, list(table.columns))
    return f'<div class="graphgauge">{head}{table_html}{strips}</div>'


def _strips_html(results: Results, metrics: list[str]) -> str:
    """Draw stability and pertinence of every target; '' if there is nothing to draw."""
    from matplotlib.figure import Figure

    values = {
        metric: _values_by_explainer(results, metric)
        for metric in metrics
        if any(word in metric for word in _BOUNDED_METRICS)
    }
    panels = {metric: rows for metric, rows in values.items() if rows}
    if not panels:
        return ""
    figure = Figure(figsize=(8, 0.8 + 0.35 * max(map(len, panels.values()))), layout="constrained")
    for axes, (metric, rows) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True
    ):
        draw_strips(axes, rows)
        axes.set_title(metric.replace("_", " "), fontsize=9, **PLAIN_TEXT)
        if axes is not figure.axes[0] and list(rows) == list(next(iter(panels.values()))):
            axes.set_yticklabels([])
    return svg_of(figure)


def _values_by_explainer(results: Results, metric: str) -> dict[str, list[float]]:
    """Return the finite values of a metric by explainer."""
    by_explainer: dict[str, list[float]] = {}
    for row in results.rows:
        if row.metric == metric and row.cell.value is not None and math.isfinite(row.cell.value):
            by_explainer.setdefault(row.explainer, []).append(row.cell.value)
    return by_explainer
