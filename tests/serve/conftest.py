"""One service for all tests that only ask."""

import pytest
from support.services import made_service, serving

import graphgauge as gg


@pytest.fixture(scope="session")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("service")
    return made_service(folder, [gg.InputXGradient(), gg.Saliency(), gg.GNNExplainer(epochs=3)])


@pytest.fixture(scope="session")
def port(service):
    with serving(service) as port:
        yield port
