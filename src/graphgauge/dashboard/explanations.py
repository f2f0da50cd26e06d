"""The page of one target: its numbers by every explainer, and with a project at hand sentences,
curves and the subgraph.
"""

from pathlib import Path
from typing import Any

import streamlit as st

from graphgauge.core.verdicts import FAIL, PASS
from graphgauge.dashboard.loading import chosen_run, opened_project
from graphgauge.dashboard.places import Places
from graphgauge.dashboard.showing import chosen, named, notice, paragraphs, written
from graphgauge.guidelines import verdicts
from graphgauge.lifecycle.close_up import close_ups
from graphgauge.report.frames import rows_of_target, target_frame, verdict_frame
from graphgauge.report.labels import counted
from graphgauge.report.showcase import Example


def show_explanations(places: Places) -> None:
    """The page."""
    st.title("Explanations")
    run = chosen_run(places)
    if run is None:
        return
    results, found = run.results, run.measured(run.wanted)
    groups = list(dict.fromkeys((row.task, row.model) for row in results.rows))
    task, model = chosen(
        "Task and network",
        groups,
        format_func=lambda own: " · ".join(filter(None, own)) or "this task",
    )
    targets = list(
        dict.fromkeys(row.target for row in results.rows if (row.task, row.model) == (task, model))
    )
    target = st.selectbox("Target", targets, format_func=target_text)
    own = rows_of_target(results, task, model, target)
    st.subheader("What the run measured")
    st.dataframe(target_frame(own, found.judged()))
    with st.expander("Verdicts on these explanations"):
        written(verdict_frame(verdicts(own, run.wanted, "explanation")))
    st.subheader("Seen closely")
    show_close_ups(places, target, bool(results.kept()))


def target_text(target: Any) -> str:
    """A target for people.

    >>> target_text(7), target_text((3, 5))
    ('7', '3 → 5')
    """
    return " → ".join(map(str, target)) if isinstance(target, tuple) else str(target)


def show_close_ups(places: Places, target: Any, has_examples: bool) -> None:
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
    project, model = opened_project(places.project, Path(places.project).stat().st_mtime)
    labels = st.multiselect(
        "Explainers", list(project.explainers()), list(project.explainers())[:1]
    )
    st.caption(
        "Explained and measured now, by the model of the project file: a run of another model has other numbers."
    )
    if st.button("Explain this target", type="primary", disabled=not labels):
        with st.spinner("Explaining …"):
            st.session_state["shown"] = (target, close_ups(project, model, target, labels))
    shown_target, examples = st.session_state.get("shown", (None, []))
    for example in examples if shown_target == target else ():
        show_example(example)


def show_example(example: Example) -> None:
    """One explanation: verdict, words and pictures."""
    named(example.target, "by", example.explainer)
    head = (
        f"{counted(len(example.missed), 'threshold')} missed"
        if example.missed
        else "No threshold missed"
    )
    notice(FAIL if example.missed else PASS, head, *example.missed)
    paragraphs(example.text)
    columns = st.columns(2)
    for k, (word, svg) in enumerate(example.pictures.items()):
        with columns[k % 2]:
            named(word)
            st.image(svg, width="stretch")
