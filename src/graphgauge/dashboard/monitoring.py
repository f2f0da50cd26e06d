"""The page of a monitoring store: what is due, every metric over time with its limits, triggers,
and the latest explanations.
"""

from datetime import datetime, timezone

import pandas as pd
import streamlit as st

from graphgauge.core.verdicts import FAIL, NOT_APPLICABLE, PASS, WARN
from graphgauge.dashboard.charts import HISTORY
from graphgauge.dashboard.explanations import show_example
from graphgauge.dashboard.loading import history_in, stamp_of
from graphgauge.dashboard.places import Places
from graphgauge.dashboard.showing import named, notice, written
from graphgauge.monitor import History, Status, status_of
from graphgauge.report.frames import due_frame, history_frames, last_run_frame, raised_frame
from graphgauge.report.labels import counted
from graphgauge.report.showcase import Example

OUTCOMES = {0: PASS, 1: FAIL, 3: WARN}  #: of a status


def show_monitoring(places: Places) -> None:
    """The page."""
    st.title("Monitoring")
    if places.monitor is None:
        notice(
            NOT_APPLICABLE,
            "No monitoring store was named",
            "Start with --monitor STORE, such as monitor.sqlite.",
        )
        return
    history = history_in(places.monitor, stamp_of(places.monitor))
    show_status(status_of(history, datetime.now(timezone.utc)))
    show_histories(history)
    show_tables(history)
    show_latest(history)


def show_status(status: Status) -> None:
    """What is due, with what to do."""
    since = f" since the baseline of {status.baseline_at.date()}" if status.baseline_at else ""
    notice(
        OUTCOMES[status.code],
        status.told.capitalize(),
        f"{counted(status.runs, 'run')}{since}.",
        *status.gaps,
        *status.notes,
    )
    if status.due:
        written(due_frame(status))


def show_histories(history: History) -> None:
    """A chart for each metric, two in a row."""
    st.subheader("Metrics over time")
    st.caption(
        "Dots: means of runs, large and orange where one raised a trigger. Thin lines: the middle half of the targets. "
        "Band: control limits around the baseline. Dashed: threshold."
    )
    columns = st.columns(2)
    for k, (title, table) in enumerate(history_frames(history)):
        with columns[k % 2]:
            named(title)
            st.vega_lite_chart(table, HISTORY)


def show_tables(history: History) -> None:
    """The last run beside the baseline, and all triggers."""
    st.subheader("The last run beside the baseline")
    show_table(last_run_frame(history), "No run was held against the baseline yet.")
    st.subheader("Triggers")
    show_table(raised_frame(history), "No trigger was raised.")


def show_latest(history: History) -> None:
    """The worst and the best explanations of the last run, as it kept them."""
    st.subheader("Latest explanations")
    examples = [Example(**record) for record in history.examples]
    if not examples:
        st.info(
            "The last run kept no pictures: `graphgauge monitor run` does, unless it is told --no-pictures."
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


def show_table(table: pd.DataFrame, empty: str) -> None:
    """A table, or words where there is none."""
    if len(table):
        written(table)
    else:
        st.info(empty)
