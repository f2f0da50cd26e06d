"""The page of a run: which explainer to use (in each of several tasks), every mean with its
verdict, and the Pareto fronts.
"""

from typing import Any

import streamlit as st

from graphgauge.dashboard.charts import front_chart
from graphgauge.dashboard.loading import chosen_run
from graphgauge.dashboard.places import Places
from graphgauge.dashboard.showing import chosen, coloured, notice, written
from graphgauge.report.frames import headline_frame, score_frame, task_frame

FACTS = {"tasks": "Tasks", "networks": "Networks", "explainers": "Explainers", "targets": "Targets"}


def show_runs(places: Places) -> None:
    """The page."""
    st.title("Runs")
    run = chosen_run(places)
    if run is None:
        return
    content = run.overview()
    answer = content["answer"]
    notice(answer["outcome"], f"{answer['headline']} ({answer['badge']})", answer["reason"])
    for column, (key, label) in zip(st.columns(len(FACTS)), FACTS.items(), strict=True):
        column.metric(label, content["facts"][key])
    if len(content["tasks"]) > 1:
        st.subheader("Tasks")
        written(task_frame(content["tasks"]))
    parts = {part.title: part for part in content["tasks"]}
    part = parts[chosen("Task", list(parts))]
    show_board(part, content["columns"])
    st.subheader("Pareto fronts")
    show_fronts(run.fronts(part.task))


def show_board(part: Any, columns: list[dict[str, Any]]) -> None:
    """The means of a task, then why each is judged so."""
    st.subheader("Means and verdicts")
    table, outcomes = headline_frame(part.lines)
    wide = {"Verdict": st.column_config.TextColumn(width=125)}
    st.dataframe(
        coloured(table, outcomes, {own["title"]: own["digits"] for own in columns}),
        column_config=wide,
    )
    st.caption(
        "Green: meets its threshold. Yellow: meets it with a doubt. Red: misses it. Grey: not judged."
    )
    with st.expander("Every verdict and its reason"):
        written(score_frame(part.lines))


def show_fronts(fronts: Any) -> None:
    """A chart for each pair of metrics, two in a row."""
    if not fronts:
        st.info("A front needs two explainers with both numbers.")
        return
    st.caption(
        "The bottom right corner is the best. Full marks are on the front, hollow ones are beaten; bars are 95 % intervals."
    )
    columns = st.columns(2)
    for k, (x, y, table) in enumerate(fronts):
        columns[k % 2].vega_lite_chart(table, front_chart(table["explainer"].tolist(), x, y))
