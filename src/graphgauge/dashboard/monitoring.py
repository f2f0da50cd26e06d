"""The page of a monitoring store: what is due, every metric over time with its limits, triggers,
and the latest explanations.
"""

from datetime import datetime, timezone

import pandas as pd
import streamlit as st

from graphgauge.core import FAIL, NOT_APPLICABLE, PASS, WARN
from graphgauge.dashboard.charts import HISTORY_CHART
from graphgauge.dashboard.config import DashboardConfig
from graphgauge.dashboard.explanations import show_example
from graphgauge.dashboard.loading import file_stamp, load_history
from graphgauge.dashboard.widgets import show_heading, show_notice, show_text_table
from graphgauge.monitor import History, Status, compute_status
from graphgauge.plots import count_noun
from graphgauge.report import (
    Example,
    history_frames,
    last_run_frame,
    pending_actions_frame,
    triggers_frame,
)

_STATUS_OUTCOMES = {0: PASS, 1: FAIL, 3: WARN}  #: of a status


def show_monitoring(places: DashboardConfig) -> None:
    """The page."""
    st.title("Monitoring")
    if places.monitor is None:
        show_notice(
            NOT_APPLICABLE,
            "No monitoring store was named",
            "Start with --monitor STORE, such as monitor.sqlite.",
        )
        return
    history = load_history(places.monitor, file_stamp(places.monitor))
    _show_status(compute_status(history, datetime.now(timezone.utc)))
    _show_histories(history)
    _show_tables(history)
    _show_latest(history)


def _show_status(status: Status) -> None:
    """What is due, with what to do."""
    since = f" since the baseline of {status.baseline_at.date()}" if status.baseline_at else ""
    show_notice(
        _STATUS_OUTCOMES[status.code],
        status.told.capitalize(),
        f"{count_noun(status.runs, 'run')}{since}.",
        *status.gaps,
        *status.notes,
    )
    if status.due:
        show_text_table(pending_actions_frame(status))


def _show_histories(history: History) -> None:
    """A chart for each metric, two in a row."""
    st.subheader("Metrics over time")
    st.caption(
        "Dots: means of runs, large and orange where one raised a trigger. Thin lines: the middle "
        "half of the targets. Band: control limits around the baseline. Dashed: threshold."
    )
    columns = st.columns(2)
    for k, (title, table) in enumerate(history_frames(history)):
        with columns[k % 2]:
            show_heading(title)
            st.vega_lite_chart(table, HISTORY_CHART)


def _show_tables(history: History) -> None:
    """The last run beside the baseline, and all triggers."""
    st.subheader("The last run beside the baseline")
    _show_table_or_note(last_run_frame(history), "No run was held against the baseline yet.")
    st.subheader("Triggers")
    _show_table_or_note(triggers_frame(history), "No trigger was raised.")


def _show_latest(history: History) -> None:
    """The worst and the best explanations of the last run, as it kept them."""
    st.subheader("Latest explanations")
    examples = [Example(**record) for record in history.examples]
    if not examples:
        st.info(
            "The last run kept no pictures: `graphgauge monitor run` does, unless it is told "
            "--no-pictures."
        )
        return
    labels = [
        f"{k + 1}. {'lowest' if own.end == 'worst' else 'highest'} pertinence"
        for k, own in enumerate(examples)
    ]
    show_example(
        dict(zip(labels, examples, strict=True))[
            str(st.radio("Explanation", labels, horizontal=True))
        ]
    )


def _show_table_or_note(table: pd.DataFrame, empty: str) -> None:
    """A table, or words where there is none."""
    if len(table):
        show_text_table(table)
    else:
        st.info(empty)
