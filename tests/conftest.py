"""Settings of the whole suite."""

import os
import shutil
from pathlib import Path

import pytest
import torch
from hypothesis import settings
from support.browser import ARGUMENTS, PROGRAMS, missing

settings.register_profile(
    "graphgauge",
    deadline=None,
    max_examples=int(os.environ.get("GRAPHGAUGE_EXAMPLES", "40")),
    derandomize=True,
)
settings.load_profile("graphgauge")
torch.set_num_threads(1)  # the suite runs in two processes on two cores


def pytest_addoption(parser):
    parser.addoption(
        "--device",
        default="cpu",
        help="where tests marked 'numeric' run what they compare with the CPU: cpu, cuda",
    )


def pytest_configure(config):
    # for networks that are built when tests are collected
    os.environ["GRAPHGAUGE_TEST_DEVICE"] = config.getoption("--device")
    config.addinivalue_line(
        "markers",
        "numeric: compares numbers with a definition or a peer on the CPU; takes --device",
    )


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    """The suite keeps parsed data sets to itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRAPHGAUGE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def data_folder():
    """The folder with the raw files of Cora, GitHub and MovieLens."""
    if not os.environ.get("GRAPHGAUGE_DATA"):
        pytest.skip(
            "set GRAPHGAUGE_DATA to the folder with the files of Cora, GitHub and MovieLens "
            "(docs/datasets.md)"
        )
    return Path(os.environ["GRAPHGAUGE_DATA"])


@pytest.fixture
def device(request):
    """Where numeric tests run ours."""
    return request.config.getoption("--device")


@pytest.fixture
def two_threads():
    """Two threads inside torch, for this test."""
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def browser():
    """The distribution's Chromium."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        missing(f"none of {', '.join(PROGRAMS)} is installed: apt-get install chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright is not installed: pip install playwright")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield opened
        opened.close()
