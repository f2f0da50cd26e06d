"""The real command in a real browser: every page by mouse, nothing from outside, no error, and gone
after Ctrl-C.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from urllib.request import urlopen

import pytest
from support.browser import ARGUMENTS, PROGRAMS

from graphgauge.report.sanitize import tidy_names

COMMAND = "from graphgauge.cli.main import main; main()"

CHART = "[data-testid=stVegaLiteChart] :is(canvas, svg.marks)"


@pytest.fixture(scope="module")
def address(places):
    """The command, running; it must end with exit code 0 after Ctrl-C."""
    words = [places.root, "--monitor", places.monitor, "--project", places.project, "--port", "0"]
    paths = os.pathsep.join(path for path in sys.path if path)
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, "dashboard", *words],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    try:
        url, _, token = re.search(
            r"(http://127\.0\.0\.1:\d+)(/\?token=)(\S+)", process.stderr.readline()
        ).groups()
        wait_until_up(url)
        yield f"{url}/?token={token}"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert not is_up(url)
        assert "Traceback" not in process.stderr.read()
    finally:
        process.kill()
        process.stderr.close()
        process.wait()


def wait_until_up(url, seconds=60):
    end = time.monotonic() + seconds
    while not is_up(url):
        assert time.monotonic() < end, f"{url} did not answer within {seconds} s"
        time.sleep(0.1)


def is_up(url):
    try:
        with urlopen(f"{url}/_stcore/health", timeout=1):
            return True
    except OSError:
        return False


class Visit:
    """A page of the dashboard, and everything it did."""

    def __init__(self, browser, url):
        self.page = browser.new_page(viewport={"width": 1280, "height": 1600})
        self.page.set_default_timeout(20_000)
        self.errors, self.requests = [], []
        self.page.on(
            "console", lambda told: self.errors.append(told.text) if told.type == "error" else None
        )
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(url)
        self.sidebar = self.page.get_by_test_id("stSidebar")

    def go(self, name):
        self.sidebar.get_by_text(name, exact=True).click()
        self.page.get_by_role("heading", name=name, exact=True).wait_for()

    def choose(self, name):
        self.sidebar.get_by_test_id("stSelectbox").first.click()
        self.page.get_by_role("option", name=name, exact=True).click()

    def wait_for_target(self, name):
        """Until the page tells of this target, and of no other."""
        told = (
            r"[...document.body.innerText.matchAll(/Target: (\w+ \d+)\./g)].map(own => "
            r"own[1]).join()"
        )
        self.page.wait_for_function(f"name => {told} === name", arg=name)


@pytest.fixture
def visit(browser, address):
    own = Visit(browser, address)
    yield own
    own.page.close()
    assert own.errors == []
    assert [
        url
        for url in own.requests
        if not url.startswith((address.partition("?")[0], "data:", "blob:"))
    ] == []


def test_every_page_can_be_clicked_through(visit, tmp_path):
    page = visit.page
    page.get_by_role("heading", name="Runs", exact=True).wait_for()
    visit.choose("loans")
    page.get_by_text("Use lrp, with care (Caution)").wait_for()
    page.locator(CHART).nth(3).wait_for()
    page.get_by_text("Every verdict and its reason").click()
    page.get_by_text("Edge pertinence 0.445 (mean of 60 targets)").first.wait_for()
    visit.go("What if")
    page.get_by_text("0 of 21 verdicts change.").wait_for()
    page.get_by_role("slider").nth(0).focus()
    # feature pertinence of 1: nobody has it, and random misses it already
    page.keyboard.press("End")
    page.get_by_text("2 of 21 verdicts change.").wait_for()
    visit.go("Explanations")
    visit.choose("mine")
    page.get_by_role("button", name="Explain this target").click()
    visit.wait_for_target("node 1")
    page.get_by_role("img").nth(3).wait_for()
    visit.go("Monitoring")
    page.get_by_text("Action due").wait_for()
    page.locator(CHART).nth(5).wait_for()
    visit.wait_for_target("node 1")
    page.get_by_text("2. highest pertinence").click()
    visit.wait_for_target("node 2")
    drawn = "own => own.complete && own.naturalWidth > 100"
    page.wait_for_function(
        f"[...document.querySelectorAll('[data-testid=stImage] img')].filter({drawn}).length === 4"
    )
    page.screenshot(path=tmp_path / "monitoring.png")


def test_hostile_names_stay_names(visit, hostile, names):
    page = visit.page
    page.get_by_role("heading", name="Runs", exact=True).wait_for()
    visit.choose(hostile)
    page.locator(CHART).nth(3).wait_for()
    page.get_by_text("Every verdict and its reason").click()
    shown = (
        "[...new Set([...document.querySelectorAll('table td:first-child')].map(own => "
        "own.textContent))].sort()"
    )
    # as JavaScript sorts
    told = sorted(tidy_names(names).values(), key=lambda name: name.encode("utf-16-be"))
    page.wait_for_function(f"told => JSON.stringify({shown}) === JSON.stringify(told)", arg=told)
    assert page.evaluate("window.hacked") is None
    assert (
        page.locator("[data-testid=stHtml] :is(script, img, a, svg, iframe, object)").count() == 0
    )
    assert page.locator("[data-testid=stMain] a[href*='example.invalid'], .katex").count() == 0


def test_nobody_looks_in_without_the_token(browser, address):
    page = browser.new_page()
    page.goto(address.partition("?")[0])
    page.get_by_text("This dashboard is private").wait_for(timeout=20_000)
    assert page.get_by_test_id("stSidebar").count() == 0
    page.close()


def test_a_browser_that_was_led_here_under_another_name_sees_nothing(browser, address):
    """DNS rebinding: the name of somebody else's page leads to this machine. Streamlit alone would
    answer.
    """
    program = next(filter(None, map(shutil.which, PROGRAMS)))
    rebound = [*ARGUMENTS, "--host-resolver-rules=MAP evil.example 127.0.0.1"]
    strange = browser.browser_type.launch(executable_path=program, args=rebound)
    page = strange.new_page()
    page.goto(address.replace("127.0.0.1", "evil.example"))
    page.get_by_text("This dashboard is private").wait_for(timeout=20_000)
    assert page.get_by_test_id("stSidebar").count() == 0
    strange.close()


# --- what no browser would send -------------------------------------------------------------------

UP = "/../../../../../../../.."
PATHS = [
    "/etc/passwd",
    f"{UP}/etc/passwd",
    "/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "/..%2f..%2f..%2fetc%2fpasswd",
    "/%252e%252e%252fetc%252fpasswd",
    "/..%5c..%5cetc%5cpasswd",
    "/static/../../../../etc/passwd",
    f"/static{UP}/etc/passwd",
    f"/media{UP}/etc/passwd",
    "/media/rows.csv",
    f"/app/static{UP}/etc/passwd",
    "/app/static/rows.csv",
    f"/component{UP}/etc/passwd",
    "/component/x/../../../../etc/passwd",
    f"/_stcore{UP}/etc/passwd",
    "/_stcore/upload_file/x/y",
    "/_stcore/message?hash=x",
    "/_stcore/script-health-check",
    "/loans/rows.csv",
    "/runs/loans/rows.csv",
    "/m.sqlite",
    "/project.yaml",
    "/rows.csv%00.html",
    "/file:///etc/passwd",
    "//etc/passwd",
    "/?token=wrong",
    "/proc/self/environ",
]
CALLS = [("GET", path, "127.0.0.1:{port}", None) for path in PATHS]
CALLS += [
    (method, "/_stcore/upload_file/x/y", "127.0.0.1:{port}", "http://evil.example")
    for method in ("PUT", "DELETE", "POST", "PATCH")
]
CALLS += [(method, "/", "127.0.0.1:{port}", None) for method in ("TRACE", "CONNECT", "PROPFIND")]
CALLS += [
    ("GET", path, "evil.example", "http://evil.example")
    for path in ("/", "/_stcore/host-config", "/_stcore/health", "/media/x")
]
CALLS += [
    ("OPTIONS", path, "127.0.0.1:{port}", "http://evil.example")
    for path in ("/_stcore/stream", "/_stcore/upload_file/x/y")
]
CALLS += [
    ("WS", "/_stcore/stream", "127.0.0.1:{port}", origin)
    for origin in ("http://evil.example", "null", "http://127.0.0.1.evil.example")
]
HANDSHAKE = (
    "Connection: Upgrade\r\n"
    "Upgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)


def raw(port, method, path, host, origin):
    """Everything that comes back for one request."""
    head = f"{method.replace('WS', 'GET')} {path} HTTP/1.1\r\nHost: {host.format(port=port)}\r\n"
    head += f"Origin: {origin}\r\n" if origin else ""
    head += HANDSHAKE if method == "WS" else "Connection: close\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=20) as link:
        link.sendall(f"{head}\r\n".encode())
        return b"".join(iter(lambda: link.recv(65536), b""))


def test_40_requests_without_the_token_leak_nothing(address, places):
    token = address.partition("token=")[2].encode()
    port = int(re.search(r":(\d+)/", address)[1])
    secrets = [
        b"root:",
        token,
        places.root.encode(),
        b"saliency",
        b"explainer,",
        b"SQLite format",
        b"weights:",
        b"PATH=",
    ]
    assert len(CALLS) >= 40
    for call in CALLS:
        found = raw(port, *call)
        assert found, call
        assert not [secret for secret in secrets if secret in found], call
        assert b"101 Switching" not in found, call
        assert b"access-control-allow-origin: *" not in found.lower(), call
        assert b"allow-origin: http://evil" not in found.lower(), call
