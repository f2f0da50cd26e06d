"""Networks for the tests of the benchmark, made once."""

import pytest
from tiny import make_networks


@pytest.fixture(scope="session")
def networks(tmp_path_factory):
    """A folder with the networks of BA-Shapes."""
    return make_networks(tmp_path_factory.mktemp("networks"))
