"""Charts of metrics over time show the numbers of the runs, in order."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from support.monitoring_histories import FACTS, PLAN, drop, made_monitor, weeks

from graphgauge.monitor import Monitor
from graphgauge.plots import build_charts, colours
from graphgauge.plots.monitoring_charts import draw_chart


@pytest.fixture(scope="module")
def monitor(tmp_path_factory):
    path = tmp_path_factory.mktemp("m") / "m.sqlite"
    return made_monitor(path, 6, change=drop("edge_ec", 40, 5))


def test_charts_lie_in_their_box_and_points_follow_the_numbers(monitor):
    history = monitor.history()
    found = {own.metric: own for own in build_charts(history)}
    assert list(found) == history.baseline.sample.metrics
    for own in found.values():
        figure, axes = plt.subplots()
        draw_chart(own, axes)
        figure.draw_without_rendering()
        means = [float(run.sample.known(own.metric).mean()) for run in history.runs]
        times = [run.at.timestamp() for run in history.runs]
        baselines, line = axes.get_lines()[0], axes.get_lines()[1 + (own.threshold is not None)]
        assert np.asarray(line.get_xydata()) == pytest.approx(np.stack([times, means], 1))
        expected = float(history.baseline.sample.known(own.metric).mean())
        assert list(baselines.get_ydata()) == pytest.approx([expected] * 6)
        dots = [line for line in axes.get_lines() if line.get_marker() == "o"]
        assert [float(dot.get_ydata()[0]) for dot in dots] == pytest.approx(means)
        places = [axes.transData.transform(dot.get_xydata()[0]) for dot in dots]
        assert all(axes.bbox.contains(*place) for place in places)
        is_raised = [bool(point.triggers) for point in own.points]
        assert [dot.get_markerfacecolor() == colours.VERMILION for dot in dots] == is_raised
        plt.close(figure)
    is_raised = [bool(point.triggers) for point in found["edge_ec"].points]
    assert is_raised == [False] * 4 + [True] * 2
    assert found["edge_stability"].threshold.value == 0.8
    assert found["edge_ec"].threshold is None
    assert found["edge_ec"].description.startswith("edge_ec: 6 runs, first mean")


def test_time_runs_evenly_from_left_to_right(monitor):
    (chart, *_) = build_charts(monitor.history())
    figure, axes = plt.subplots()
    draw_chart(chart, axes)
    figure.draw_without_rendering()
    dots = [line for line in axes.get_lines() if line.get_marker() == "o"]
    places = [axes.transData.transform(dot.get_xydata()[0])[0] for dot in dots]
    assert np.diff(places) == pytest.approx(np.full(5, (places[-1] - places[0]) / 5))
    draw_chart(replace(chart, points=chart.points[:1]), axes := figure.add_subplot())
    figure.draw_without_rendering()
    (dot,) = [line for line in axes.get_lines() if line.get_marker() == "o"]
    place = axes.transData.transform(dot.get_xydata()[0])[0]
    assert place == pytest.approx(sum(axes.bbox.intervalx) / 2)
    plt.close(figure)


def test_an_old_baseline_keeps_its_limits_in_the_picture(tmp_path):
    monitor = made_monitor(tmp_path / "m.sqlite", 3, plan=PLAN)
    before = [point.band for point in build_charts(monitor.history())[0].points]
    again = Monitor(tmp_path / "m.sqlite")
    again.add_baseline(monitor.history().runs[0].sample, FACTS, weeks(3))
    after = [point.band for point in build_charts(monitor.history())[0].points]
    assert after == before
