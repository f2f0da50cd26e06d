"""The page of one target: its numbers by every explainer, and with a project at hand sentences,
curves and the subgraph.
"""

from pathlib import Path
from typing import Any

import streamlit as st

from graphgauge.core import FAIL, PASS
from graphgauge.dashboard.config import DashboardConfig
from graphgauge.dashboard.loading import load_project, select_run
from graphgauge.dashboard.widgets import (
    choose_option,
    show_heading,
    show_notice,
    show_paragraphs,
    show_text_table,
)
from graphgauge.guidelines import verdicts
from graphgauge.lifecycle import build_target_examples
from graphgauge.plots import count_noun
from graphgauge.report import Example, rows_of_target, target_frame, verdict_frame


def show_explanations(places: DashboardConfig) -> None:
    """The page."""
    st.title("Explanations")
    run = select_run(places)
    if run is None:
        return
    results, found = run.results, run.aggregated_scores(run.requirements)
    groups = list(dict.fromkeys((row.task, row.model) for row in results.rows))
    task, model = choose_option(
        "Task and network",
        groups,
        format_func=lambda own: " · ".join(filter(None, own)) or "this task",
    )
    targets = list(
        dict.fromkeys(row.target for row in results.rows if (row.task, row.model) == (task, model))
    )
    target = st.selectbox("Target", targets, format_func=_target_text)
    own = rows_of_target(results, task, model, target)
    st.subheader("What the run measured")
    st.dataframe(target_frame(own, found.judged_metrics()))
    with st.expander("Verdicts on these explanations"):
        show_text_table(verdict_frame(verdicts(own, run.requirements, "explanation")))
    st.subheader("Seen closely")
    _show_target_examples(places, target, bool(results.kept()))


def _target_text(target: Any) -> str:
    """A target for people.

    >>> _target_text(7), _target_text((3, 5))
    ('7', '3 → 5')
    """
    return " → ".join(map(str, target)) if isinstance(target, tuple) else str(target)


def _show_target_examples(places: DashboardConfig, target: Any, has_examples: bool) -> None:
    """Explain the target again with the model of the project, when asked to; ``has_examples``: the
    run kept some for its report.
    """
    if places.project is None:
        kept = (
            "The run's report has its worst and best."
            if has_examples
            else "The run kept no explanations."
        )
        st.info(
            f"Start with --project to see this one closely: sentences, curves, subgraph. {kept}"
        )
        return
    project, model = load_project(places.project, Path(places.project).stat().st_mtime)
    labels = st.multiselect(
        "Explainers", list(project.explainers()), list(project.explainers())[:1]
    )
    st.caption(
        "Explained and measured now, by the model of the project file: a run of another model has "
        "other numbers."
    )
    if st.button("Explain this target", type="primary", disabled=not labels):
        with st.spinner("Explaining …"):
            st.session_state["shown"] = (
                target,
                build_target_examples(project, model, target, labels),
            )
    shown_target, examples = st.session_state.get("shown", (None, []))
    for example in examples if shown_target == target else ():
        show_example(example)


def show_example(example: Example) -> None:
    """One explanation: verdict, words and pictures."""
    show_heading(example.target, "by", example.explainer)
    head = (
        f"{count_noun(len(example.missed), 'threshold')} missed"
        if example.missed
        else "No threshold missed"
    )
    show_notice(FAIL if example.missed else PASS, head, *example.missed)
    show_paragraphs(example.text)
    columns = st.columns(2)
    for k, (word, svg) in enumerate(example.pictures.items()):
        with columns[k % 2]:
            show_heading(word)
            st.image(svg, width="stretch")
