"""The page that moves thresholds: which verdicts change, and whether another explainer is
recommended.
"""

from dataclasses import replace

import streamlit as st

from graphgauge.core import NOT_APPLICABLE, worst_outcome
from graphgauge.dashboard.config import DashboardConfig
from graphgauge.dashboard.loading import select_run
from graphgauge.dashboard.widgets import choose_option, show_notice, show_text_table
from graphgauge.guidelines import (
    LATENCIES,
    STAKES,
    Requirements,
    ThresholdSlider,
    WhatIfResult,
    list_threshold_sliders,
    simulate_thresholds,
)
from graphgauge.report import changes_frame, verdict_frame


def show_what_if(places: DashboardConfig) -> None:
    """The page."""
    st.title("What if")
    run = select_run(places)
    if run is None:
        return
    st.caption(
        "Move thresholds: the numbers of the run stay, the verdicts are made again. Nothing is "
        "saved."
    )
    wanted = _requirements_from_sidebar(run.requirements)
    found = run.aggregated_scores(wanted)
    task = choose_option("Task", list(found.kinds))
    answer, columns, limits = st.container(), st.columns(2), {}
    for k, own in enumerate(list_threshold_sliders(found, task, wanted)):
        with columns[k % 2]:
            limits[own.metric] = _slider_value(own)
    changed = simulate_thresholds(
        found, task, wanted, {name: value for name, value in limits.items() if value is not None}
    )
    with answer:
        _show_answer(changed)
    _show_verdicts(changed)


def _requirements_from_sidebar(stored: Requirements) -> Requirements:
    """The requirements of the run, changed by the sidebar."""
    stakes = str(st.sidebar.selectbox("Stakes", STAKES, STAKES.index(stored.stakes)))
    latencies = ("the paper's 5 s", *LATENCIES)
    latency = st.sidebar.selectbox(
        "Latency", latencies, latencies.index(stored.latency or latencies[0])
    )
    features = st.sidebar.number_input(
        "Features of the data (0: not known)", 0, value=stored.num_features or 0, step=1
    )
    return replace(
        stored,
        stakes=stakes,
        latency=latency if latency in LATENCIES else None,
        num_features=int(features) or None,
    )


def _slider_value(knob: ThresholdSlider) -> float | None:
    """Where a slider was moved to; None where it stands where it was, or the threshold is off."""
    label = f"{knob.title}{' in seconds' if knob.metric == 'time' else ''}, {knob.direction}"
    if knob.start is None and not st.checkbox(
        f"Ask for {knob.title.lower()}", key=f"ask {knob.metric}"
    ):
        return None
    start = knob.most if knob.start is None else knob.start
    value = float(
        st.slider(label, 0.0, knob.most, start, knob.step, key=f"{knob.metric} from {knob.start}")
    )
    return value if knob.start is None or value != start else None


def _show_answer(found: WhatIfResult) -> None:
    """Who is recommended, and how much changes."""
    own = [verdict for verdict in found.after if verdict.explainer == found.chosen_after]
    outcome = worst_outcome(own) if own else NOT_APPLICABLE
    head = f"{found.chosen_after or 'Nobody'} comes first"
    was = (
        f"As the run stands: {found.chosen_before or 'nobody'}."
        if found.chosen_before != found.chosen_after
        else ""
    )
    show_notice(outcome, head, was, f"{len(found.changed)} of {len(found.after)} verdicts change.")


def _show_verdicts(found: WhatIfResult) -> None:
    """The verdicts that change, then all."""
    if found.changed:
        show_text_table(changes_frame(found))
    with st.expander("Every verdict with these thresholds", expanded=not found.changed):
        show_text_table(verdict_frame(found.after))
