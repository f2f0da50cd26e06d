"""Where the browser is and how it starts. CI sets GRAPHGAUGE_BROWSER=required: there, a missing one
is a failure.
"""

import os

import pytest

ARGUMENTS = [
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
]
ARGUMENTS += ["--disable-sync", "--no-first-run"]
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def missing(reason):
    if os.environ.get("GRAPHGAUGE_BROWSER") == "required":
        pytest.fail(f"GRAPHGAUGE_BROWSER=required, but {reason}")
    pytest.skip(reason)
