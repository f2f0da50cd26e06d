"""A target seen closely: the numbers of `compare`, with words, curves and a subgraph."""

import pytest
from support.user_networks import write_project

from graphgauge.core.errors import UnknownName
from graphgauge.lifecycle import Project
from graphgauge.lifecycle.target_examples import build_target_examples

QUICK = {"trials": [4, 4], "early_stop": "none", "twin_trials": 4, "permutations": 2, "timed": 1}


@pytest.fixture
def project(tmp_path):
    return Project.read(
        write_project(tmp_path, explainers=["saliency", "random"], settings=QUICK, name="a\nb")
    )


def test_close_ups_measure_tell_and_draw(project):
    model = project.model()
    found = build_target_examples(project, model, 8, ["saliency", "random"])
    assert [(own.explainer, own.target, own.task) for own in found] == [
        ("saliency", "node 8", "a b"),
        ("random", "node 8", "a b"),
    ]
    expected = project.evaluator(model).compare(project.explainers(), [8])
    for own in found:
        rows = {
            row.metric: row.cell.value for row in expected.rows if row.explainer == own.explainer
        }
        known = {
            name: value
            for name, value in rows.items()
            if value is not None and not name.startswith("time")
        }
        assert {name: own.numbers[name] for name in known} == known
        assert own.text.startswith("Target: node 8.")
        assert list(own.pictures) == [
            "The edges that matter",
            "The features that matter",
            "Edges removed, best first",
            "Features substituted, best first",
        ]


def test_an_explainer_that_the_project_does_not_name_is_refused(project):
    with pytest.raises(UnknownName, match="No explainer of the project is called 'lrp'"):
        build_target_examples(project, project.model(), 8, ["lrp"])
