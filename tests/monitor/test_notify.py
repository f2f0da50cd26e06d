"""Telling others: what arrives at a webhook and in a file, and what is said when it does not."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from graphgauge.core.errors import BadSetting
from graphgauge.monitor.notify import append_json_line, post_json


class Hook(BaseHTTPRequestHandler):
    """Keeps what it is sent; answers with the status that the path names."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append((self.path, self.headers["Content-Type"], json.loads(body)))
        status = int(self.path.rpartition("/")[2])
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/elsewhere/200")
        self.end_headers()

    def log_message(self, *given):
        """Say nothing."""


@pytest.fixture
def server():
    found = HTTPServer(("127.0.0.1", 0), Hook)
    found.seen = []
    thread = threading.Thread(target=found.serve_forever)
    thread.start()
    yield found
    found.shutdown()
    thread.join()
    found.server_close()


def address(server, path):
    return f"http://127.0.0.1:{server.server_port}/{path}"


def test_a_webhook_gets_the_record_as_json(server):
    record = {"run": 3, "triggers": [{"name": "metric drift", "told": "größer"}]}
    assert post_json(address(server, "secret/200"), record) == ""
    assert server.seen == [("/secret/200", "application/json; charset=utf-8", record)]


@pytest.mark.parametrize("status", [302, 404, 500])
def test_a_refusal_is_reported_without_the_secret_in_the_address(server, status):
    told = post_json(address(server, f"secret/{status}"), {})
    assert told.startswith("the webhook at 127.0.0.1 did not take the record: HTTPError")
    assert str(status) in told
    assert "secret" not in told
    assert len(server.seen) == 1


def test_silence_ends_after_the_time_allowed():
    with HTTPServer(("127.0.0.1", 0), Hook) as silent:
        assert "127.0.0.1 did not take the record" in post_json(
            address(silent, "200"), {}, seconds=0.2
        )


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://host/x", "hook", "http://"])
def test_other_addresses_are_refused(url):
    with pytest.raises(BadSetting, match="a webhook is an address"):
        post_json(url, {})


def test_a_file_gets_a_line_for_each_record(tmp_path):
    path = tmp_path / "runs.jsonl"
    assert [append_json_line(path, {"run": k, "told": "a\nb"}) for k in (1, 2)] == ["", ""]
    assert [json.loads(line)["run"] for line in path.read_text().splitlines()] == [1, 2]
    assert "could not be written" in append_json_line(tmp_path, {})
