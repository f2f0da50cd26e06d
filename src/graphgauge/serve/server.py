"""Start the service and keep it up until it is told to stop (Ctrl-C or SIGTERM: what waits is
answered first).
"""

import gc
import os
import secrets
import signal
import socket
import stat
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphgauge.core import BadFile, BadSetting
from graphgauge.serve.app import build_app, check_serve_extra
from graphgauge.serve.service import Service
from graphgauge.serve.settings import MIN_TOKEN_LENGTH, Settings, bracket_host
from graphgauge.serve.timeouts import timeout_protocol

if TYPE_CHECKING:
    import uvicorn

_TOKEN_VARIABLE = "GRAPHGAUGE_TOKEN"  #: environment variable with the token
_SECONDS_TO_STOP = 10
#: at once, idle ones too; more than questions that may wait, so that those are told why they are
#: refused
_MIN_CONNECTIONS = 256
_SWITCH_INTERVAL = 0.0005  #: seconds


def run_service(service: Service, say: Any = None) -> None:
    """Warm up, then listen until a signal stops the server.

    ``say`` is called with the address. By default it writes a line to stderr.
    """
    check_serve_extra()
    import uvicorn

    settings = service.settings
    with _open_listener(settings.host, settings.port) as listening, _running_worker(service):
        server = uvicorn.Server(_uvicorn_config(service))
        with _graceful_shutdown(server), _low_latency_interpreter():
            port = listening.getsockname()[1]
            (say or print_to_stderr)(
                f"graphgauge serves on http://{bracket_host(settings.host)}:{port} (audit log: "
                f"{service.audit_path})"
            )
            server.run(sockets=[listening])


def _uvicorn_config(service: Service) -> "uvicorn.Config":
    """What uvicorn is told: HTTP only, nothing about us in headers or logs, and bounds for
    everything that waits.
    """
    import uvicorn

    return uvicorn.Config(
        build_app(service),
        loop="asyncio",
        http=timeout_protocol(service.settings),
        ws="none",
        lifespan="on",
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=max(_MIN_CONNECTIONS, 2 * service.settings.max_waiting),
        timeout_keep_alive=30,
        timeout_graceful_shutdown=_SECONDS_TO_STOP,
    )


@contextmanager
def _running_worker(service: Service) -> Iterator[None]:
    """The service's worker, warm; stopped afterwards."""
    service.start()
    try:
        service.wait_until_warm()
        yield
    finally:
        service.stop()


@contextmanager
def _graceful_shutdown(server: Any) -> Iterator[None]:
    """Let SIGTERM and Ctrl-C be the ordinary end: uvicorn stops in order, then raises the signal
    again, and nobody minds.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: Any) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _low_latency_interpreter() -> Iterator[None]:
    """Let no answer wait for Python itself.

    Threads take turns every half millisecond: with Python's five the network would wait for the
    worker at every call. And what is there after the start (torch alone brings several 100,000
    objects) is not looked through for garbage again and again.
    """
    before = sys.getswitchinterval()
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(_SWITCH_INTERVAL)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
        gc.unfreeze()


def _open_listener(host: str, port: int) -> socket.socket:
    """A socket that listens, or an error that says why not."""
    try:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET
        )
    except OSError as error:
        raise BadSetting(
            f"{bracket_host(host)}:{port} cannot be listened on: {error}. Choose another port, or "
            "0 for any."
        ) from error


def print_to_stderr(line: str) -> None:
    """A line on stderr."""
    print(line, file=sys.stderr, flush=True)


def resolve_token(
    settings: Settings, file: str | None, environment: Mapping[str, str]
) -> tuple[Settings, str]:
    """Return the settings with the token to use, and where it came from, for people.

    GRAPHGAUGE_TOKEN comes first, then the file. Without both the token of the settings stays, which
    is random by default.

    Args:
        settings: The settings of the service.
        file: Path of a file with the token, or None. If it does not exist, a new token is written
            to it, and only its owner can read it.
        environment: The environment variables.

    Returns:
        The settings with the token, and where the token came from, such as "in token.txt".

    Raises:
        BadFile: The file cannot be read or written, or others can read it.
    """
    if environment.get(_TOKEN_VARIABLE):
        return replace(settings, token=environment[_TOKEN_VARIABLE]), f"from {_TOKEN_VARIABLE}"
    if file is None:
        return settings, "random"
    path = Path(file)
    return replace(
        settings, token=_read_token(path) if path.exists() else _write_token(path)
    ), f"in {path}"


def _write_token(path: Path) -> str:
    """A new token, in a file that only its owner can read."""
    token = secrets.token_urlsafe(32)
    try:
        with os.fdopen(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii"
        ) as file:
            file.write(token + "\n")
    except OSError as error:
        raise BadFile(f"the token could not be written to {path}: {error}.") from error
    return token


def _read_token(path: Path) -> str:
    """The token in a file; refuses one that others can read."""
    try:
        if os.name == "posix" and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise BadFile(
                f"others can read the token in {path}: chmod 600 {path}, and better make a new one."
            )
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        if isinstance(error, BadFile):
            raise
        raise BadFile(
            f"the token could not be read from {path}: {error}. It needs {MIN_TOKEN_LENGTH} ASCII "
            "characters."
        ) from error


def check_exposure(settings: Settings, expose: bool) -> str:
    """Refuse an address that others can reach unless that was asked for; then a warning, for people
    ("": none).
    """
    if settings.is_loopback:
        return ""
    if not expose:
        raise BadSetting(
            f"--host {settings.host} can be reached from other machines. Add --expose if that is "
            "meant, with a proxy in front that speaks TLS: the token travels in the clear."
        )
    return (
        f"warning: {settings.host} can be reached from other machines, and the token travels in "
        "the clear without TLS"
    )
