"""A service for a project: the decision selects the explainer, and one that does not hold is
refused or told with every answer.
"""

import time
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from support.services import TOKEN
from support.user_networks import write_project

from graphgauge.core.errors import BadSetting
from graphgauge.lifecycle import Project, SignOff, validate
from graphgauge.serve.project_service import _decision_flags, service_from_project
from graphgauge.serve.requests import Question
from graphgauge.serve.settings import Settings

QUICK = {
    "explainers": ["saliency", "input_x_gradient", "random"],
    "targets": 4,
    "settings": {
        "trials": [3, 3],
        "twins": False,
        "cap": 5,
        "stability": "none",
        "early_stop": "none",
    },
}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return Project.read(write_project(tmp_path_factory.mktemp("project"), **QUICK))


@pytest.fixture(scope="module")
def decision(project):
    model = project.model()
    evaluator, targets = project.evaluator(model), project.targets(model)
    return validate(
        evaluator,
        targets,
        project.explainers(),
        project.requirements(model),
        SignOff(signed_by="Ada"),
    ).decision


def answer(service, **changes):
    usual = {
        "target": 3,
        "explainer": None,
        "language": "en",
        "audience": "internal",
        "top_k": 3,
        "asked_by": "",
    }
    service.start()
    service.wait_until_warm()
    found = service.ask(Question(**{**usual, **changes})).result()
    service.stop()
    return found


def settings():
    return Settings(token=TOKEN, budget_ms=60_000)


def test_without_a_decision_the_first_explainer_answers_and_is_not_validated(project, tmp_path):
    found = answer(service_from_project(project, tmp_path / "a.sqlite", settings()))
    assert (found["explainer"], [flag["flag"] for flag in found["flags"]]) == (
        "saliency",
        ["not_validated"],
    )
    assert found["features"][0]["name"] in ("income", "age", "debt")


def test_a_decision_selects_the_explainer_and_its_numbers_are_told(project, decision, tmp_path):
    service = service_from_project(project, tmp_path / "a.sqlite", settings(), decision=decision)
    found = answer(service)
    assert found["explainer"] == decision.explainer
    assert "not_validated" not in [flag["flag"] for flag in found["flags"]]
    assert service.record()["decision"] == decision.digest
    assert list(service.batch_explainer.choices) == [decision.label]


def test_only_what_is_allowed_can_be_asked_for(project, decision, tmp_path):
    service = service_from_project(
        project, tmp_path / "a.sqlite", settings(), decision=decision, allowed=["random"]
    )
    assert list(service.batch_explainer.choices) == [decision.label, "random"]
    assert answer(service, explainer="random")["explainer"] == "random"


@pytest.mark.parametrize(
    ("changes", "flag", "message"),
    [
        ({"signed_by": ""}, "decision_unsigned", "nobody has signed"),
        ({"expires": "2001-01-01T00:00:00+00:00"}, "decision_expired", "held until 2001"),
        ({"network": "another"}, "decision_network", "the network is not the one"),
    ],
)
def test_a_decision_that_does_not_hold_is_refused_or_told(
    project, decision, tmp_path, changes, flag, message
):
    bad = replace(decision, **changes)
    with pytest.raises(BadSetting, match=message):
        service_from_project(project, tmp_path / "a.sqlite", settings(), decision=bad)
    found = answer(
        service_from_project(project, tmp_path / "a.sqlite", settings(), decision=bad, force=True)
    )
    assert flag in [one["flag"] for one in found["flags"]]


def test_other_data_stop_nothing_and_are_told(project, decision, tmp_path):
    service = service_from_project(
        project, tmp_path / "a.sqlite", settings(), decision=replace(decision, data="another")
    )
    assert "decision_data" in [one["flag"] for one in answer(service)["flags"]]


def test_a_decision_that_expires_while_it_is_served_is_told_from_then_on(decision):
    soon = datetime.now(timezone.utc) + timedelta(seconds=1)
    flags = _decision_flags(replace(decision, expires=soon.isoformat()), [], force=False)
    assert flags() == []
    time.sleep(1.1)
    assert flags() == ["decision_expired"]
