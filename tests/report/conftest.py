"""A PDF engine and visits to pages for the tests of the page. The browser is the whole suite's."""

import pytest
from support.browser import missing


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
        self.page.on(
            "dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss())
        )
        self.address = path.as_uri()
        self.page.goto(self.address)

    def check_quiet(self):
        """Nothing was said, asked for or opened but the file itself."""
        assert self.told == []
        assert self.requests == [self.address]
        assert self.dialogs == []

    def check_harmless(self):
        """The same, where pictures that are part of the page count as requests, too."""
        self.requests = [url for url in self.requests if not url.startswith("data:image/svg+xml")]
        self.check_quiet()


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
