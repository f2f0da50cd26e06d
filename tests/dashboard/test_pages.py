"""Every page, without a browser: what is chosen decides what is shown, and names are never read as
anything but names.
"""

import re
from html import unescape

import pytest
from support.chosen_results import good
from support.chosen_results import run as made
from support.monitoring_histories import made_monitor

from graphgauge.dashboard.config import DashboardConfig
from graphgauge.evaluation import Results, Settings
from graphgauge.guidelines import Requirements, verdicts
from graphgauge.report.sanitize import tidy_names


def texts(app):
    """What stands in the parts of a page that we write as HTML."""
    return [unescape(re.sub(r"<[^>]+>", " ", own.proto.body)) for own in app.get("html")]


def markdown(app):
    """Everything that Streamlit reads as Markdown, labels of widgets too."""
    written = [
        own.value
        for kind in ("markdown", "caption", "title", "header", "subheader", "info")
        for own in app.get(kind)
    ]
    widgets = (
        "selectbox",
        "slider",
        "checkbox",
        "multiselect",
        "button",
        "radio",
        "number_input",
        "metric",
        "expander",
    )
    return written + [own.label for kind in widgets for own in app.get(kind)]


def test_the_page_of_a_run_says_whom_to_use_and_shows_its_means(opened, places):
    app = opened("Runs", "loans")
    assert "Use lrp, with care (Caution)" in texts(app)[0]
    assert [(own.label, own.value) for own in app.metric] == [
        ("Tasks", "1"),
        ("Networks", "1"),
        ("Explainers", "3"),
        ("Targets", "60"),
    ]
    table = app.dataframe[0].value
    assert list(table.index) == ["lrp", "saliency", "random"]
    own = Results.load(f"{places.root}/loans").values("edge_pertinence", "saliency")
    assert table.loc["saliency", "Edge pertinence"] == pytest.approx(own.mean(), abs=1e-12)
    assert len(app.get("vega_lite_chart")) == 4
    assert "Edge pertinence 0.445 (mean of 60 targets)" in texts(app)[1]


def test_a_run_of_several_tasks_has_the_table_of_tasks_that_its_answer_speaks_of(opened, tmp_path):
    better = {"first": {"lrp": 0.9, "saliency": 0.7}, "second": {"lrp": 0.7, "saliency": 0.9}}
    runs = [
        made({name: good(edge_pertinence=own) for name, own in of.items()}, n=3, task=task).rows
        for task, of in better.items()
    ]
    Results((*runs[0], *runs[1]), Settings()).save(tmp_path / "both")
    shown = texts(opened("Runs", shown=DashboardConfig(str(tmp_path))))
    assert "2 tasks, 2 different choices: see each task" in shown[0]
    assert "see the table of tasks" in shown[0]
    assert shown[1].split()[:4] == ["Task", "Verdict", "Recommended", "Because"]
    assert re.search(r"first +\w+ +lrp .*second +\w+ +saliency ", shown[1])


def test_moved_thresholds_change_the_verdicts(opened, places):
    app = opened("What if", "loans")
    assert "0 of 21 verdicts change." in texts(app)[0]
    slider = next(own for own in app.slider if own.label == "Edge pertinence, at least")
    assert (slider.value, slider.min, slider.max) == (0.6, 0.0, 1.0)
    app = slider.set_value(0.95).run()
    moved = Requirements("node_classification", num_features=80, limits={"edge_pertinence": 0.95})
    results = Results.load(f"{places.root}/loans")
    before = [
        own.outcome
        for own in verdicts(results, Requirements("node_classification", num_features=80))
    ]
    after = [own.outcome for own in verdicts(results, moved)]
    changed = sum(old != new for old, new in zip(before, after, strict=True))
    assert changed > 0
    assert f"{changed} of 21 verdicts change." in texts(app)[0]
    assert "your own limit" in texts(app)[-1]


def test_a_threshold_that_nobody_prescribes_is_asked_for_first(opened):
    app = opened("What if", "loans")
    assert "Edge effective compactness, at most" not in [own.label for own in app.slider]
    app = app.checkbox[0].check().run()
    slider = next(own for own in app.slider if own.label == "Edge effective compactness, at most")
    app = slider.set_value(6.0).run()
    assert "Edge effective compactness 6.513 (mean of 60 targets)" in texts(app)[-1]
    assert "misses the threshold of at most 6 (your own limit)" in texts(app)[-1]


def test_the_sidebar_changes_what_the_use_asks_for(opened):
    app = opened("What if", "loans")
    app = app.number_input[0].set_value(20).run()
    assert next(own for own in app.slider if own.label.startswith("Feature effective")).value == 2.0
    app = (
        next(own for own in app.sidebar.selectbox if own.label == "Latency")
        .set_value("interactive")
        .run()
    )
    assert next(own for own in app.slider if own.label.startswith("Time")).value == pytest.approx(
        0.3
    )


def test_one_target_has_its_own_numbers(opened, places):
    app = opened("Explanations", "loans", DashboardConfig(places.root))
    app = next(own for own in app.selectbox if own.label == "Target").set_value(7).run()
    rows = Results.load(f"{places.root}/loans").rows
    (value,) = [
        row.cell.value
        for row in rows
        if (row.target, row.explainer, row.metric) == (7, "lrp", "edge_ec")
    ]
    assert app.dataframe[0].value.loc["lrp", "Edge EC"] == f"{value:.4g}"
    assert "Start with --project" in app.info[0].value
    assert "of target 7 " in texts(app)[0]


@pytest.mark.parametrize(
    ("run", "said"),
    [("mine", "The run's report has its worst and best."), ("loans", "The run kept no")],
)
def test_explanations_of_a_report_are_promised_only_where_the_run_kept_some(
    opened, places, run, said
):
    assert said in opened("Explanations", run, DashboardConfig(places.root)).info[0].value


def test_a_project_explains_a_target_again_with_pictures(opened):
    app = opened("Explanations", "mine")
    assert not app.get("image")
    app = app.button[0].click().run()
    assert len(app.get("image")) == 4
    assert any("Target: node 1." in text for text in texts(app))
    app = next(own for own in app.selectbox if own.label == "Target").set_value(8).run()
    assert not app.get("image")  # pictures of another target are gone


def test_monitoring_says_what_is_due_and_draws_every_metric(opened):
    app = opened("Monitoring")
    shown = texts(app)
    assert "Action due" in shown[0]
    assert "6 runs since the baseline of 2026-01-05." in shown[0]
    assert "if the new level is accepted, take a new baseline." in shown[1]
    assert len(app.get("vega_lite_chart")) == 6
    assert any("5.1" in text and "waits" in text for text in shown)


def test_monitoring_shows_the_latest_explanations_with_pictures(opened):
    app = opened("Monitoring")
    chosen = next(own for own in app.radio if own.label == "Explanation")
    assert chosen.options == ["1. lowest pertinence", "2. highest pertinence"]
    assert len(app.get("image")) == 4
    (first,) = [text for text in texts(app) if "Target: node" in text]
    app = chosen.set_value("2. highest pertinence").run()
    (second,) = [text for text in texts(app) if "Target: node" in text]
    assert first != second


def test_a_run_without_pictures_says_so(opened, places, tmp_path):
    made_monitor(tmp_path / "m.sqlite", 1)
    app = opened("Monitoring", shown=DashboardConfig(places.root, str(tmp_path / "m.sqlite")))
    assert "The last run kept no pictures" in app.info[-1].value


@pytest.mark.parametrize("token", ["", "wrong", "a-token-for-tests-onl", "a-token-for-tests-only-"])
def test_without_the_token_nothing_is_shown(opened, token):
    app = opened("Runs", token=token)
    (only,) = texts(app)
    assert "This dashboard is private" in only
    assert not app.sidebar.radio
    assert not app.dataframe


def test_pages_without_anything_to_show_say_how_to_get_it(opened, tmp_path):
    assert (
        "Start with --monitor STORE"
        in texts(opened("Monitoring", shown=DashboardConfig(str(tmp_path))))[0]
    )
    for page in ("Runs", "What if", "Explanations"):
        assert (
            "There are no runs here" in texts(opened(page, shown=DashboardConfig(str(tmp_path))))[0]
        )


def test_a_run_that_cannot_be_read_is_said_so(opened, tmp_path):
    (tmp_path / "bad").mkdir()
    for name in ("rows.csv", "settings.json"):
        (tmp_path / "bad" / name).write_text("{}")
    assert (
        "holds no results that graphgauge saved"
        in texts(opened("Runs", shown=DashboardConfig(str(tmp_path))))[0]
    )


def test_the_chosen_run_stays_chosen_on_the_way_over_other_pages(opened):
    app = opened("Runs", "loans")
    for page in ("Monitoring", "Explanations"):
        app = app.sidebar.radio[0].set_value(page).run()
    assert app.sidebar.selectbox(key="run").value == "loans"


@pytest.mark.parametrize("page", ["Runs", "What if", "Explanations"])
def test_names_are_shown_letter_by_letter_and_never_as_markdown(opened, hostile, names, page):
    app = opened(page, hostile)
    tidied = list(tidy_names(names).values())
    assert "Run" in markdown(app)
    for text in markdown(app):
        assert not any(name in text for name in [*tidied, hostile] if name != "random"), text
    body = "".join(own.proto.body for own in app.get("html"))
    assert not re.search(r"<(script|img|a|svg|iframe|b)\b", body)
    whole = " ".join(texts(app))
    assert all(name in whole for name in tidied)
    if page != "What if":
        assert sorted(app.dataframe[0].value.index) == sorted(tidied)
