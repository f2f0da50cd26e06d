"""A browser and a PDF engine for the tests of the page. CI sets GRAPHGAUGE_BROWSER=required: there, a missing one is a failure."""

import os
import shutil

import pytest

ARGUMENTS = ["--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
ARGUMENTS += ["--disable-sync", "--no-first-run"]
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def missing(reason):
    if os.environ.get("GRAPHGAUGE_BROWSER") == "required":
        pytest.fail(f"GRAPHGAUGE_BROWSER=required, but {reason}")
    pytest.skip(reason)


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


@pytest.fixture
def pdf_engine():
    """WeasyPrint, which needs Pango."""
    try:
        import weasyprint
    except (ImportError, OSError) as error:
        missing(f"weasyprint cannot be loaded: {error}")
    return weasyprint


class Visit:
    """A page that was opened from disk, and everything it did."""

    def __init__(self, browser, path, width=1280, **options):
        self.page = browser.new_page(viewport={"width": width, "height": 900}, **options)
        self.told, self.requests, self.dialogs = [], [], []
        self.page.on("console", lambda message: self.told.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.told.append(f"error: {error}"))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))
        self.address = path.as_uri()
        self.page.goto(self.address)

    def check_quiet(self):
        """Nothing was said, asked for or opened but the file itself."""
        assert self.told == []
        assert self.requests == [self.address]
        assert self.dialogs == []


@pytest.fixture
def visit(browser):
    """Open a file: ``visit(path, width=390)``."""
    made = []

    def opened(path, width=1280, **options):
        made.append(Visit(browser, path, width, **options))
        return made[-1]

    yield opened
    for own in made:
        own.page.close()
