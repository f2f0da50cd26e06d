"""What pages read, kept in memory until it changes on disk."""

import json
from pathlib import Path
from typing import Any

import streamlit as st

from graphgauge.core.verdicts import NOT_APPLICABLE
from graphgauge.dashboard.places import Places
from graphgauge.dashboard.showing import notice
from graphgauge.evaluation import Results
from graphgauge.guidelines import Requirements
from graphgauge.guidelines.measures import Measured, of_run
from graphgauge.lifecycle.assessment import stored_requirements
from graphgauge.lifecycle.project import Project
from graphgauge.models import BaseModel
from graphgauge.monitor import History
from graphgauge.monitor.history import read_history
from graphgauge.report.cleaned import cleaned
from graphgauge.report.frames import Fronts, front_frames
from graphgauge.report.overview import overview
from graphgauge.report.shelf import last_change, run_under, runs_under

KEPT = 8  #: runs in memory


class Run:
    """A run that was chosen; everything about it is read when asked for, and once."""

    def __init__(self, folder: Path) -> None:
        self.key = (str(folder), last_change(folder))

    @property
    def results(self) -> Results:
        """Its rows, with names that are safe to show."""
        return results_of(*self.key)

    @property
    def wanted(self) -> Requirements:
        """What it was judged by when it was saved."""
        return Requirements(**stored_requirements(self.key[0]))

    def overview(self) -> dict[str, Any]:
        """What a report says of it first."""
        return overview(self.results, self.measured(self.wanted), self.wanted)

    def measured(self, wanted: Requirements) -> Measured:
        """Its means."""
        return means(*self.key, json.dumps(wanted.record(), sort_keys=True))

    def fronts(self, task: str) -> Fronts:
        """Its Pareto fronts."""
        return drawn_fronts(*self.key, task)


def chosen_run(places: Places) -> Run | None:
    """The run that was chosen in the sidebar, among those under the root; None where there is none."""
    names = list(runs_under(places.root))
    if not names:
        notice(
            NOT_APPLICABLE,
            "There are no runs here",
            f"{places.root} holds no folder that `graphgauge evaluate` wrote.",
        )
        return None
    if st.session_state.get("run") not in names:
        st.session_state.pop("run", None)  # that run is gone
    name = str(st.sidebar.selectbox("Run", names, key="run"))
    return Run(run_under(places.root, name))


@st.cache_resource(max_entries=KEPT, show_spinner="Reading the run …")
def results_of(folder: str, stamp: float) -> Results:
    """The rows of a run; ``stamp``: when it was written to last."""
    return cleaned(Results.load(folder)).results


@st.cache_resource(max_entries=KEPT, show_spinner="Judging …")
def means(folder: str, stamp: float, wanted: str) -> Measured:
    """The means of a run over targets, then networks."""
    return of_run(results_of(folder, stamp), Requirements(**json.loads(wanted)), merge_models=True)


@st.cache_resource(max_entries=KEPT, show_spinner="Drawing …")
def drawn_fronts(folder: str, stamp: float, task: str) -> Fronts:
    """The fronts of a task."""
    return front_frames(
        results_of(folder, stamp), task, Requirements(**stored_requirements(folder))
    )


@st.cache_resource(max_entries=1, show_spinner="Loading the model …")
def opened_project(path: str, stamp: float) -> tuple[Project, BaseModel]:
    """A project and its model."""
    project = Project.read(path)
    return project, project.model()


@st.cache_resource(max_entries=2, show_spinner="Reading the monitoring store …")
def history_in(path: str, stamp: tuple[float, ...]) -> History:
    """Everything in a monitoring store."""
    return read_history(path)


def stamp_of(path: str) -> tuple[float, ...]:
    """When a file was written to last, and the log that SQLite keeps beside it."""
    return tuple(own.stat().st_mtime for own in (Path(path), Path(f"{path}-wal")) if own.exists())
