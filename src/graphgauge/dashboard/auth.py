"""Who may look: a browser that shows the token of this run, and that asked for this machine by one
of its own names.

A page from elsewhere can make a browser call 127.0.0.1, under a name of its own too (DNS
rebinding), and Streamlit takes such a call for one of its own. So every session has to show what
only the printed address holds, before anything is read from disk. Other users of this machine do
not know it either: the token is in the process's environment, not on its command line.
"""

import hmac
import os
import secrets
from collections.abc import Mapping

from graphgauge.core import BadSetting

#: environment variables
TOKEN_VARIABLE, EXPOSED_VARIABLE = ("GRAPHGAUGE_DASHBOARD_TOKEN", "GRAPHGAUGE_DASHBOARD_EXPOSED")
_MIN_TOKEN_LENGTH = 16  #: characters
_LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")


def new_token(environment: Mapping[str, str] = os.environ) -> str:
    """The token that the environment says, else a random one; the error never holds it."""
    token = environment.get(TOKEN_VARIABLE) or secrets.token_urlsafe(24)
    if len(token) < _MIN_TOKEN_LENGTH or not all(
        letter.isascii() and (letter.isalnum() or letter in "-_") for letter in token
    ):
        raise BadSetting(
            f"{TOKEN_VARIABLE} must have at least {_MIN_TOKEN_LENGTH} letters, digits, - or _."
        )
    return token


def check_token_known(environment: Mapping[str, str]) -> None:
    """Refuse to be quiet about a random token: nobody could look."""
    if not environment.get(TOKEN_VARIABLE):
        raise BadSetting(
            f"--quiet would not tell the address with its token: set {TOKEN_VARIABLE}, or leave "
            "--quiet out."
        )


def is_authorised(
    shown: str | None, host: str | None, environment: Mapping[str, str] = os.environ
) -> bool:
    """Check that a session has the token and uses one of our host names.

    An exposed dashboard may have any host name.

    >>> here = {TOKEN_VARIABLE: "0123456789abcdef"}
    >>> is_authorised("0123456789abcdef", "localhost:8501", here)
    True
    >>> is_authorised("0123456789abcdef", "evil.example:8501", here)
    False
    >>> is_authorised("", "localhost:8501", here), is_authorised("", None, {})
    (False, False)
    """
    token = environment.get(TOKEN_VARIABLE, "")
    is_shown = bool(token) and hmac.compare_digest((shown or "").encode(), token.encode())
    return is_shown and (
        host is None
        or bool(environment.get(EXPOSED_VARIABLE))
        or _host_without_port(host) in _LOOPBACK_HOSTS
    )


def _host_without_port(host: str) -> str:
    """A Host without its port.

    >>> _host_without_port("LocalHost:8501"), _host_without_port("[::1]:8501")
    ('localhost', '[::1]')
    >>> _host_without_port("127.0.0.1")
    '127.0.0.1'
    """
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isascii() and port.isdigit() else host.lower()
