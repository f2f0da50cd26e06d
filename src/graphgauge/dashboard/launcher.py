"""Start Streamlit in a process of its own, on this machine only unless asked otherwise, and end it
with Ctrl-C or SIGTERM.

Everything under the root can be read by whoever has the address with its token (see `auth`), and
the token travels in the clear: an address that other machines reach needs ``expose``. Every option
is on Streamlit's command line, where it comes before anyone's own settings: no usage statistics, no
file watcher, no question for an e-mail address.
"""

import importlib.util
import ipaddress
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphgauge.core import BadSetting, MissingExtra
from graphgauge.dashboard.auth import EXPOSED_VARIABLE, TOKEN_VARIABLE, new_token
from graphgauge.dashboard.config import DashboardConfig

_APP_FILE = Path(__file__).with_name("app.py")
_SECONDS_TO_STOP = 10
_STREAMLIT_OPTIONS = {
    "server.headless": "true",
    "server.fileWatcherType": "none",
    "server.runOnSave": "false",
    "browser.gatherUsageStats": "false",
    "client.toolbarMode": "minimal",
    "runner.magicEnabled": "false",
    "theme.primaryColor": "#0072B2",
}


@dataclass(frozen=True)
class ListenAddress:
    """Where the dashboard listens; port 0: any that is free."""

    host: str = "127.0.0.1"
    port: int = 8501
    expose: bool = False

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it.

        >>> [ListenAddress(host).is_loopback for host in ("::1", "localhost", "0.0.0.0")]
        [True, True, False]
        """
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def url(self) -> str:
        """For the browser."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def with_free_port(self) -> "ListenAddress":
        """The same with a port that is free; refuses addresses that cannot be listened on, or that
        others reach unasked.
        """
        if not self.is_loopback and not self.expose:
            raise BadSetting(
                f"--host {self.host} can be reached from other machines. Add --expose if that is "
                "meant, with a proxy in front that speaks TLS: the token travels in the clear."
            )
        try:
            with socket.create_server(
                (self.host, self.port),
                family=socket.AF_INET6 if ":" in self.host else socket.AF_INET,
            ) as own:
                return ListenAddress(self.host, int(own.getsockname()[1]), self.expose)
        except OSError as error:
            raise BadSetting(
                f"{self.url} cannot be listened on: {error}. Choose another --port, or 0 for any."
            ) from error


def check_dashboard_extra() -> None:
    """Refuse to go on without Streamlit."""
    if importlib.util.find_spec("streamlit") is None:
        raise MissingExtra(
            "the dashboard needs Streamlit, which is not installed: pip install "
            '"graphgauge[dashboard]".'
        )


def _streamlit_command(places: DashboardConfig, address: ListenAddress) -> list[str]:
    """The command line of the process."""
    options = {
        **_STREAMLIT_OPTIONS,
        "server.address": address.host,
        "server.port": str(address.port),
    }
    flags = [f"--{name}={value}" for name, value in options.items()]
    return [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        str(_APP_FILE),
        *flags,
        "--",
        places.to_json(),
    ]


def run_dashboard(
    places: DashboardConfig, address: ListenAddress, say: Callable[[str], Any]
) -> int:
    """Serve the dashboard until Ctrl-C or SIGTERM.

    Args:
        places: The folder with runs, and optionally a monitoring store and a project file.
        address: Where the dashboard listens.
        say: Called with each line for people: the address with its token, and a warning if other
            machines can reach it.

    Returns:
        The exit code: 0 after Ctrl-C or SIGTERM, else that of Streamlit.

    Raises:
        MissingExtra: Streamlit is not installed.
        BadFile: One of the places does not exist.
        BadSetting: The address cannot be listened on, or others can reach it unasked.
    """
    check_dashboard_extra()
    known, free = places.resolve_paths(), address.with_free_port()
    if not free.is_loopback:
        say(
            f"graphgauge: warning: {free.host} can be reached from other machines, and the token "
            "travels in the clear without TLS"
        )
    token = new_token()
    own = _process_environment(token, not free.is_loopback)
    process = subprocess.Popen(
        _streamlit_command(known, free),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env=own,
    )
    with _stop_on_signals(process) as is_asked:
        say(f"graphgauge shows {known.root} on {free.url}/?token={token} (end with Ctrl-C)")
        code = process.wait()
    return 0 if is_asked.is_set() else code


def _process_environment(token: str, is_exposed: bool) -> dict[str, str]:
    """That of this process, with what `auth` reads; pictures are drawn without a screen."""
    return {
        **os.environ,
        "MPLBACKEND": "agg",
        TOKEN_VARIABLE: token,
        EXPOSED_VARIABLE: "yes" if is_exposed else "",
    }


@contextmanager
def _stop_on_signals(process: "subprocess.Popen[bytes]") -> Iterator[threading.Event]:
    """Pass Ctrl-C and SIGTERM on; the event is set once one came. A process that does not stop in
    time is killed.
    """
    is_asked = threading.Event()

    def end(*_: Any) -> None:
        if not is_asked.is_set():
            is_asked.set()
            process.terminate()
            killer.start()

    killer = threading.Timer(_SECONDS_TO_STOP, process.kill)
    killer.daemon = True
    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield is_asked
    finally:
        killer.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)
        if process.poll() is None:
            process.kill()
