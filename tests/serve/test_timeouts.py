"""Callers who send nothing, or a byte now and then, are not waited for; all others are."""

import contextlib
import socket
import time

import pytest
from support.services import ask, made_service, serving

HEAD = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n"
POST = b"POST /health HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5000\r\n\r\n"
SECONDS = 0.4


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    """A service that waits 0.4 s for a head, and as long for a body."""
    with serving(
        made_service(
            tmp_path_factory.mktemp("patience"), head_ms=1000 * SECONDS, body_ms=1000 * SECONDS
        )
    ) as port:
        yield port


def seconds_until_closed(port, sent, drops):
    """How long a connection lasts on which something is sent at once, then byte by byte."""
    start = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), timeout=0.05) as link:
        link.sendall(sent)
        for byte in drops:
            try:
                link.sendall(bytes([byte]))
                while link.recv(4096):
                    pass
                break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        else:
            pytest.fail("the connection was still open after all bytes")
    return time.monotonic() - start


SLOW = {
    "silent": (b"", b"", SECONDS),
    "a head that stops": (HEAD, b"", SECONDS),
    "a head byte by byte": (b"", HEAD + b"X: " + b"x" * 400, SECONDS),
    "a body that nobody reads, byte by byte": (POST, b"x" * 400, SECONDS + 1),
    "a second head byte by byte": (HEAD + b"\r\n", HEAD + b"X: " + b"x" * 400, SECONDS),
}


@pytest.mark.parametrize("name", SLOW)
def test_a_slow_caller_is_not_waited_for(port, name):
    sent, drops, wanted = SLOW[name]
    if drops:
        found = seconds_until_closed(port, sent, drops)
    else:
        start = time.monotonic()
        with socket.create_connection(("127.0.0.1", port), timeout=30) as link:
            link.sendall(sent)
            with contextlib.suppress(ConnectionResetError):
                assert link.recv(1) == b""
            found = time.monotonic() - start
    assert wanted - 0.1 <= found < wanted + 2


def test_slow_callers_do_not_keep_others_from_their_answer(port):
    slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(50)]
    for link in slow:
        link.sendall(HEAD)
    assert ask(port, target=3)["target"] == 3
    for link in slow:
        link.close()


def test_between_requests_a_connection_is_kept(port):
    with socket.create_connection(("127.0.0.1", port), timeout=30) as link:
        for _ in range(2):
            link.sendall(HEAD + b"\r\n")
            found = b""
            while not found.endswith(b'{"status":"ok"}'):
                found += link.recv(4096)
            assert found.startswith(b"HTTP/1.1 200")
            time.sleep(2 * SECONDS)
