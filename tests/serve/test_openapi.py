"""Schemathesis makes requests out of the OpenAPI, right and wrong ones: none ends in a 5xx, all are
answered as described.
"""

import json

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from support.services import TOKEN, ask, call

from graphgauge.serve.responses import Answer

HEADERS = {"Authorization": f"Bearer {TOKEN}"}
RIGHT, WRONG = GenerationMode.POSITIVE, GenerationMode.NEGATIVE
ROUTES = [("/health", RIGHT), ("/ready", RIGHT), ("/metrics", RIGHT), ("/metrics", WRONG)]


@pytest.fixture(scope="session")
def schema(port):
    return schemathesis.openapi.from_url(
        f"http://127.0.0.1:{port}/openapi.json", headers=HEADERS, wait_for_schema=5
    )


def check_answered(data, operation, mode):
    case = data.draw(operation.as_strategy(generation_mode=mode))
    response = case.call(headers=HEADERS)
    assert response.status_code < 500
    case.validate_response(response, headers=HEADERS)


@pytest.mark.parametrize("mode", [RIGHT, WRONG])
@settings(suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_question_is_answered_as_described(schema, mode, data):
    check_answered(data, schema["/explain"]["POST"], mode)


@pytest.mark.parametrize(("path", "mode"), ROUTES)
@settings(suppress_health_check=list(HealthCheck), max_examples=4)
@given(data=st.data())
def test_every_other_request_is_answered_as_described(schema, path, mode, data):
    check_answered(data, schema[path]["GET"], mode)


def test_the_description_names_every_route_and_no_other(port):
    found = json.loads(call(port, "GET", "/openapi.json")[2])
    assert {path: list(operations) for path, operations in found["paths"].items()} == {
        "/explain": ["post"],
        "/health": ["get"],
        "/ready": ["get"],
        "/metrics": ["get"],
    }
    assert found["paths"]["/explain"]["post"]["security"] == [{"token": []}]
    assert found["paths"]["/health"]["get"]["security"] == []


def test_an_answer_has_the_fields_of_its_description_and_no_other(port):
    answer = ask(port, target=3, audience="expert")
    assert set(answer) == set(Answer.model_fields)
    assert json.loads(Answer.model_validate(answer).model_dump_json()) == answer
