"""What pages read, kept in memory until it changes on disk."""

import json
from pathlib import Path

import streamlit as st

from graphgauge.core import NOT_APPLICABLE, JsonObject
from graphgauge.dashboard.config import DashboardConfig
from graphgauge.dashboard.widgets import show_notice
from graphgauge.evaluation import Results
from graphgauge.guidelines import AggregatedScores, Requirements, aggregate_run
from graphgauge.lifecycle import Project, stored_requirements
from graphgauge.models import BaseModel
from graphgauge.monitor import History, read_history
from graphgauge.report import (
    FrontTables,
    build_overview,
    find_run,
    find_runs,
    front_frames,
    last_modified,
    sanitize_results,
)

_MAX_CACHED_RUNS = 8  #: runs in memory


class _SelectedRun:
    """A run that was chosen; everything about it is read when asked for, and once."""

    def __init__(self, folder: Path) -> None:
        self.key = (str(folder), last_modified(folder))

    @property
    def results(self) -> Results:
        """Its rows, with names that are safe to show."""
        return _load_results(*self.key)

    @property
    def requirements(self) -> Requirements:
        """What it was judged by when it was saved."""
        return Requirements(**stored_requirements(self.key[0]))

    def overview(self) -> JsonObject:
        """What a report says of it first."""
        return build_overview(
            self.results, self.aggregated_scores(self.requirements), self.requirements
        )

    def aggregated_scores(self, wanted: Requirements) -> AggregatedScores:
        """Its means."""
        return _load_means(*self.key, json.dumps(wanted.record(), sort_keys=True))

    def fronts(self, task: str) -> FrontTables:
        """Its Pareto fronts."""
        return _load_fronts(*self.key, task)


def select_run(places: DashboardConfig) -> _SelectedRun | None:
    """Return the run that was chosen in the sidebar.

    The sidebar lists the runs under the root. The result is None if there are none.
    """
    names = list(find_runs(places.root))
    if not names:
        show_notice(
            NOT_APPLICABLE,
            "There are no runs here",
            f"{places.root} holds no folder that `graphgauge evaluate` wrote.",
        )
        return None
    if st.session_state.get("run") not in names:
        st.session_state.pop("run", None)  # that run is gone
    name = str(st.sidebar.selectbox("Run", names, key="run"))
    return _SelectedRun(find_run(places.root, name))


@st.cache_resource(max_entries=_MAX_CACHED_RUNS, show_spinner="Reading the run …")
def _load_results(folder: str, stamp: float) -> Results:
    """The rows of a run; ``stamp``: when it was written to last."""
    return sanitize_results(Results.load(folder)).results


@st.cache_resource(max_entries=_MAX_CACHED_RUNS, show_spinner="Judging …")
def _load_means(folder: str, stamp: float, wanted: str) -> AggregatedScores:
    """The means of a run over targets, then networks."""
    return aggregate_run(
        _load_results(folder, stamp), Requirements(**json.loads(wanted)), merge_models=True
    )


@st.cache_resource(max_entries=_MAX_CACHED_RUNS, show_spinner="Drawing …")
def _load_fronts(folder: str, stamp: float, task: str) -> FrontTables:
    """The fronts of a task."""
    return front_frames(
        _load_results(folder, stamp), task, Requirements(**stored_requirements(folder))
    )


@st.cache_resource(max_entries=1, show_spinner="Loading the model …")
def load_project(path: str, stamp: float) -> tuple[Project, BaseModel]:
    """A project and its model."""
    project = Project.read(path)
    return project, project.model()


@st.cache_resource(max_entries=2, show_spinner="Reading the monitoring store …")
def load_history(path: str, stamp: tuple[float, ...]) -> History:
    """Everything in a monitoring store."""
    return read_history(path)


def file_stamp(path: str) -> tuple[float, ...]:
    """When a file was written to last, and the log that SQLite keeps beside it."""
    return tuple(own.stat().st_mtime for own in (Path(path), Path(f"{path}-wal")) if own.exists())
