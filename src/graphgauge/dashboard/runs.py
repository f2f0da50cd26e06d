"""The page of a run: which explainer to use (in each of several tasks), every mean with its
verdict, and the Pareto fronts.
"""

from typing import Any

import streamlit as st

from graphgauge.core import JsonObject
from graphgauge.dashboard.charts import front_chart
from graphgauge.dashboard.config import DashboardConfig
from graphgauge.dashboard.loading import select_run
from graphgauge.dashboard.widgets import (
    choose_option,
    colour_by_outcome,
    show_notice,
    show_text_table,
)
from graphgauge.report import headline_frame, score_frame, task_frame

_FACT_LABELS = {
    "tasks": "Tasks",
    "networks": "Networks",
    "explainers": "Explainers",
    "targets": "Targets",
}


def show_runs(places: DashboardConfig) -> None:
    """The page."""
    st.title("Runs")
    run = select_run(places)
    if run is None:
        return
    content = run.overview()
    answer = content["answer"]
    show_notice(answer["outcome"], f"{answer['headline']} ({answer['badge']})", answer["reason"])
    for column, (key, label) in zip(
        st.columns(len(_FACT_LABELS)), _FACT_LABELS.items(), strict=True
    ):
        column.metric(label, content["facts"][key])
    if len(content["tasks"]) > 1:
        st.subheader("Tasks")
        show_text_table(task_frame(content["tasks"]))
    parts = {part.title: part for part in content["tasks"]}
    part = parts[choose_option("Task", list(parts))]
    _show_scores(part, content["columns"])
    st.subheader("Pareto fronts")
    _show_fronts(run.fronts(part.task))


def _show_scores(part: Any, columns: list[JsonObject]) -> None:
    """The means of a task, then why each is judged so."""
    st.subheader("Means and verdicts")
    table, outcomes = headline_frame(part.lines)
    wide = {"Verdict": st.column_config.TextColumn(width=125)}
    st.dataframe(
        colour_by_outcome(table, outcomes, {own["title"]: own["digits"] for own in columns}),
        column_config=wide,
    )
    st.caption(
        "Green: meets its threshold. Yellow: meets it with a doubt. Red: misses it. Grey: not "
        "judged."
    )
    with st.expander("Every verdict and its reason"):
        show_text_table(score_frame(part.lines))


def _show_fronts(fronts: Any) -> None:
    """A chart for each pair of metrics, two in a row."""
    if not fronts:
        st.info("A front needs two explainers with both numbers.")
        return
    st.caption(
        "The bottom right corner is the best. Full marks are on the front, hollow ones are "
        "beaten; bars are 95 % intervals."
    )
    columns = st.columns(2)
    for k, (x, y, table) in enumerate(fronts):
        columns[k % 2].vega_lite_chart(table, front_chart(table["explainer"].tolist(), x, y))
