"""What must not be answered is refused with its right status, tells nothing, and leaves the service
as it was.
"""

import json
import time

import pytest
from support.services import TOKEN, ask, call, made_service, raw, serving

QUESTION = json.dumps({"target": 3})
JSON = {"Content_Type": "application/json"}


def post(body, **headers):
    return ("POST", "/explain", body, {**JSON, **headers})


def get(path, method="GET", **headers):
    return (method, path, None, headers)


CASES = {
    # paths that lead nowhere
    "a path out of the root": (404, get("/../../etc/passwd")),
    "an encoded path out of the root": (404, get("/%2e%2e/%2e%2e/etc/passwd")),
    "a doubly encoded path": (404, get("/%252e%252e%252fetc%252fpasswd")),
    "a path below a route": (404, get("/metrics/../../../etc/passwd")),
    "backslashes": (404, get("/..%5c..%5cwindows%5cwin.ini")),
    "a NUL in the path": (404, get("/health%00.html")),
    "the name of the log": (404, get("/audit.sqlite")),
    "a file address": (404, get("/file:///etc/passwd")),
    "a route with a slash after it": (404, get("/explain/", "POST")),
    "pages of documentation": (404, get("/docs")),
    # tokens
    "no token": (401, post(QUESTION, Authorization=None)),
    "a wrong token": (401, post(QUESTION, Authorization="Bearer wrong-wrong-wrong-wrong")),
    "the beginning of the token": (401, post(QUESTION, Authorization=f"Bearer {TOKEN[:-1]}")),
    "more than the token": (401, post(QUESTION, Authorization=f"Bearer {TOKEN}x")),
    "the token as another scheme": (401, post(QUESTION, Authorization=f"Basic {TOKEN}")),
    "the token without a scheme": (401, post(QUESTION, Authorization=TOKEN)),
    "the token in the address": (
        401,
        ("POST", f"/explain?token={TOKEN}", QUESTION, {**JSON, "Authorization": None}),
    ),
    "figures without a token": (401, get("/metrics", Authorization=None)),
    "the description without a token": (401, get("/openapi.json", Authorization=None)),
    "an unknown path without a token": (401, get("/audit.sqlite", Authorization=None)),
    # who calls
    "another host": (421, post(QUESTION, Host="evil.example")),
    "a host that begins like ours": (421, post(QUESTION, Host="127.0.0.1.evil.example")),
    "a host with a port that is none": (421, post(QUESTION, Host="127.0.0.1:80@evil.example")),
    "another host on an open route": (421, get("/health", Host="evil.example")),
    "a web page": (403, post(QUESTION, Origin="http://127.0.0.1:8321")),
    "a page without an origin": (403, post(QUESTION, Origin="null")),
    # methods
    "asking with GET": (405, get("/explain")),
    "deleting": (405, get("/explain", "DELETE")),
    "a preflight": (405, get("/explain", "OPTIONS")),
    "writing to the health": (405, ("POST", "/health", QUESTION, JSON)),
    # bodies
    "a body that is too long": (413, post(json.dumps({"target": 3, "asked_by": "x" * 20_000}))),
    "no body": (400, post("")),
    "half a body": (400, post('{"target": ')),
    "bytes that are no UTF-8": (400, post(b'{"target": 3, "asked_by": "\xff\xfe"}')),
    "a key twice": (400, post('{"target": 3, "target": 4}')),
    "NaN": (400, post('{"target": NaN}')),
    "minus infinity": (400, post('{"target": -Infinity}')),
    "a number of 5000 digits": (400, post('{"target": ' + "9" * 5000 + "}")),
    "nesting without an end": (400, post("[" * 8000)),
    "a list": (422, post("[3]")),
    "a text": (422, post('"3"')),
    "null": (422, post("null")),
    "no target": (422, post("{}")),
    "a target that is not there": (422, post('{"target": 30}')),
    "a negative target": (422, post('{"target": -1}')),
    "a huge target": (422, post('{"target": 1e400}')),
    "a target of 100 digits": (422, post('{"target": ' + "9" * 100 + "}")),
    "a target that is a fraction": (422, post('{"target": 3.5}')),
    "a target that is true": (422, post('{"target": true}')),
    "a target that is a text": (422, post('{"target": "3"}')),
    "a target that is a path": (422, post('{"target": "../../etc/passwd"}')),
    "a pair where nodes are asked for": (422, post('{"target": [3, 4]}')),
    "a field that is not known": (422, post('{"target": 3, "template": "{{ 7 * 7 }}"}')),
    "an explainer that is not allowed": (422, post('{"target": 3, "explainer": "graphmask"}')),
    "an explainer that is a module": (422, post('{"target": 3, "explainer": "os:system"}')),
    "a language that is a path": (422, post('{"target": 3, "language": "../../../etc"}')),
    "an audience that is not known": (422, post('{"target": 3, "audience": "press"}')),
    "no features to tell": (422, post('{"target": 3, "top_k": 0}')),
    "too many features to tell": (422, post('{"target": 3, "top_k": 100000}')),
    "half a letter": (422, post('{"target": 3, "asked_by": "\\ud800"}')),
    "control characters": (422, post('{"target": 3, "asked_by": "a\\u0000b\\n"}')),
    "a name that is too long": (422, post(json.dumps({"target": 3, "asked_by": "x" * 201}))),
    # kinds of content
    "no kind of content": (415, ("POST", "/explain", QUESTION, {})),
    "a form": (415, post("target=3", Content_Type="application/x-www-form-urlencoded")),
    "plain text, which a page may send": (415, post(QUESTION, Content_Type="text/plain")),
    "XML": (
        415,
        post(
            "<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]>", Content_Type="application/xml"
        ),
    ),
    "another encoding of letters": (
        415,
        post(QUESTION, Content_Type="application/json; charset=utf-16"),
    ),
    "a packed body": (415, post(QUESTION, Content_Encoding="gzip")),
}


@pytest.mark.parametrize("name", CASES)
def test_a_bad_request_is_refused_with_its_status(port, service, name):
    wanted, (method, path, body, headers) = CASES[name]
    before = service.audit_count
    status, found, content = call(port, method, path, body, **headers)
    assert status == wanted
    problem = json.loads(content)
    assert set(problem) == {"error", "message"}
    assert TOKEN not in content.decode()
    assert "Traceback" not in content.decode()
    assert "root:" not in content.decode()
    assert (found["cache-control"], found["x-content-type-options"]) == ("no-store", "nosniff")
    assert service.audit_count == before


def test_a_token_is_asked_for_by_name(port):
    _, headers, _ = call(port, "GET", "/metrics", Authorization=None)
    assert headers["www-authenticate"] == "Bearer"


RAW = {
    "no host": (400, b"GET /health HTTP/1.1\r\n\r\n"),
    "two hosts": (400, b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n"),
    "an address as the path": (
        404,
        (
            b"GET http://evil.example/ HTTP/1.1\r\n"
            b"Host: 127.0.0.1\r\n"
            b"Authorization: Bearer %t\r\n"
            b"\r\n"
        ),
    ),
    "two tokens": (
        401,
        (
            b"GET /metrics HTTP/1.1\r\n"
            b"Host: 127.0.0.1\r\n"
            b"Authorization: Bearer %t\r\n"
            b"Authorization: Bearer x\r\n"
            b"\r\n"
        ),
    ),
    "two lengths": (
        400,
        (
            b"POST /explain HTTP/1.1\r\n"
            b"Host: 127.0.0.1\r\n"
            b"Content-Length: 5\r\n"
            b"Content-Length: 6\r\n"
            b"\r\n"
            b"{}   "
        ),
    ),
    "a negative length": (
        400,
        (b"POST /explain HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -5\r\n\r\n"),
    ),
    "a header line without an end": (
        400,
        b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * 200_000 + b"\r\n\r\n",
    ),
    "no HTTP": (400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello\r\n\r\n"),
    "a length that says too much": (
        413,
        b"POST /explain HTTP/1.1\r\n"
        b"Host: 127.0.0.1\r\n"
        b"Authorization: Bearer %t\r\n"
        b"Content-Type: application/json\r\n"
        b"Content-Length: 99999999999\r\n\r\n{",
    ),
    "a long body in chunks, without a length": (
        413,
        b"POST /explain HTTP/1.1\r\n"
        b"Host: 127.0.0.1\r\n"
        b"Authorization: Bearer %t\r\n"
        b"Content-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n"
        + b"1000\r\n"
        + b" " * 4096
        + b"\r\n1000\r\n"
        + b" " * 4096
        + b"\r\n1000\r\n"
        + b" " * 4096
        + b"\r\n1000\r\n"
        + b" " * 4096
        + b"\r\n1000\r\n"
        + b" " * 4096
        + b"\r\n0\r\n\r\n",
    ),
}


@pytest.mark.parametrize("name", RAW)
def test_bytes_that_no_library_would_send_are_refused(port, name):
    wanted, text = RAW[name]
    assert raw(port, text.replace(b"%t", TOKEN.encode())) == wanted


def test_there_are_no_websockets(port):
    upgrade = (
        b"GET /explain HTTP/1.1\r\n"
        b"Host: 127.0.0.1\r\n"
        b"Connection: Upgrade\r\n"
        b"Upgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAuthorization: Bearer "
        + TOKEN.encode()
        + b"\r\n\r\n"
    )
    assert raw(port, upgrade) == 405


def test_after_all_that_the_service_still_answers(port):
    assert ask(port, target=3)["target"] == 3


def test_a_body_that_does_not_arrive_is_not_waited_for(tmp_path):
    with serving(made_service(tmp_path, body_ms=200)) as port:
        head = (
            "POST /explain HTTP/1.1\r\n"
            "Host: 127.0.0.1\r\n"
            f"Authorization: Bearer {TOKEN}\r\n"
            "Content-Type: application/json\r\n"
        )
        start = time.monotonic()
        assert raw(port, f"{head}Content-Length: 13\r\n\r\n".encode() + b'{"tar') == 408
        assert time.monotonic() - start < 5


def test_more_questions_than_the_rate_are_told_to_come_back(tmp_path):
    with serving(made_service(tmp_path, rate=0.001, burst=2)) as port:
        found = [call(port, "POST", "/explain", QUESTION, **JSON) for _ in range(3)]
    assert [status for status, _, _ in found] == [200, 200, 429]
    assert found[2][1]["retry-after"] == "1"
