"""Networks for the tests of the benchmark, made once."""

import pytest
from support.bad_explainer_effects import GOOD
from support.tiny_experiments import UNTIMED, make_networks, numbers, run_here, write_experiment


@pytest.fixture(scope="session")
def networks(tmp_path_factory):
    """A folder with the networks of BA-Shapes."""
    return make_networks(tmp_path_factory.mktemp("networks"))


@pytest.fixture(scope="module")
def good(tmp_path_factory, networks):
    """The numbers of the good explainers, alone."""
    folder = tmp_path_factory.mktemp("good")
    return numbers(
        run_here(
            write_experiment(folder / "tiny.yaml", explainers=GOOD, settings=UNTIMED),
            folder / "run",
            networks,
        ).folder
    )
