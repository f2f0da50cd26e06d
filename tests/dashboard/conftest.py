"""A folder with runs (one of them with hostile names), a monitoring store and a project: made once,
shown by every test.
"""

import json
import sys

import pytest
from support.chosen_results import good
from support.chosen_results import run as made
from support.hostile_names import HOSTILE
from support.monitoring_histories import drop, made_monitor
from support.report_results import by_hand
from support.user_networks import write_project

from graphgauge.dashboard.auth import TOKEN_VARIABLE
from graphgauge.dashboard.config import DashboardConfig
from graphgauge.dashboard.launcher import _APP_FILE
from graphgauge.lifecycle import Project, shown_examples

QUICK = {
    "settings": {
        "trials": [4, 4],
        "early_stop": "none",
        "twin_trials": 4,
        "permutations": 2,
        "timed": 1,
    },
    "targets": [1, 2, 8],
}

MARKDOWN = [
    "[x](http://example.invalid) **b** `c` # d",
    "$\\frac{a}{b$ $x$",
    ":smile: :red[x] :material/bolt:",
    "www.example.invalid -> x",
]
HOSTILE_RUN = "a :smile: $x$ <b> [y](z)"
NAMES = [*MARKDOWN, *(HOSTILE[k] for k in (0, 4, 15, 25, 45, 47, 50, 58)), "random"]


@pytest.fixture(scope="session")
def places(tmp_path_factory):
    """Runs with hostile names, 'loans' and 'mine' (of the project), and a store in which edge EC
    drifts.
    """
    folder = tmp_path_factory.mktemp("dashboard")
    root = folder / "runs"
    by_hand().save(root / "loans")
    note = {"requirements": {"task_kind": "node_classification", "num_features": 80}}
    (root / "loans" / "project.json").write_text(json.dumps(note))
    hostile = {
        name: good(edge_ec=3 + k, edge_pertinence=0.9 - k / 20) for k, name in enumerate(NAMES)
    }
    made(hostile, n=2, task=MARKDOWN[0], model=MARKDOWN[2]).save(root / HOSTILE_RUN)
    path = write_project(folder, name="mine", explainers=["saliency", "random"], **QUICK)
    project = Project.read(path)
    model = project.model()
    project.evaluator(model).compare(project.explainers(), project.targets(model)).save(
        root / "mine"
    )
    results = project.evaluator(model).compare(
        [project.explainers()["saliency"]], project.targets(model)
    )
    examples = shown_examples(project.names(model), project.requirements(model))(results)
    made_monitor(folder / "m.sqlite", 6, change=drop("edge_ec", 40, 5), examples=examples)
    return DashboardConfig(str(root), str(folder / "m.sqlite"), str(path))


@pytest.fixture
def opened(places, monkeypatch):
    """Open the dashboard without a browser: ``opened("Runs", "loans")``."""
    from streamlit.testing.v1 import AppTest

    def opens(page, run=None, shown=places, token="a-token-for-tests-only"):
        monkeypatch.setattr(sys, "argv", ["app.py", shown.to_json()])
        monkeypatch.setenv(TOKEN_VARIABLE, "a-token-for-tests-only")
        app = AppTest.from_file(str(_APP_FILE), default_timeout=60)
        app.query_params["token"] = token
        app = app.run()
        if token != "a-token-for-tests-only":
            return app
        app = app if page == "Runs" else app.sidebar.radio[0].set_value(page).run()
        if run is not None and app.sidebar.selectbox(key="run").value != run:
            app = app.sidebar.selectbox(key="run").set_value(run).run()
        assert not app.exception
        return app

    return opens


@pytest.fixture
def hostile():
    """The run with hostile names."""
    return HOSTILE_RUN


@pytest.fixture
def names():
    """Its explainers."""
    return NAMES
