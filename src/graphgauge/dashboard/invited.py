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

from graphgauge.core.errors import BadSetting

TOKEN, EXPOSED = (
    "GRAPHGAUGE_DASHBOARD_TOKEN",
    "GRAPHGAUGE_DASHBOARD_EXPOSED",
)  #: environment variables
LEAST = 16  #: characters
OWN = ("localhost", "127.0.0.1", "[::1]")


def new_token(environment: Mapping[str, str] = os.environ) -> str:
    """The token that the environment says, else a random one; the error never holds it."""
    token = environment.get(TOKEN) or secrets.token_urlsafe(24)
    if len(token) < LEAST or not all(
        letter.isascii() and (letter.isalnum() or letter in "-_") for letter in token
    ):
        raise BadSetting(f"{TOKEN} must have at least {LEAST} letters, digits, - or _.")
    return token


def check_known(environment: Mapping[str, str]) -> None:
    """Refuse to be quiet about a random token: nobody could look."""
    if not environment.get(TOKEN):
        raise BadSetting(
            f"--quiet would not tell the address with its token: set {TOKEN}, or leave --quiet out."
        )


def is_invited(
    shown: str | None, host: str | None, environment: Mapping[str, str] = os.environ
) -> bool:
    """Whether a session showed the token and came by one of our names; an exposed dashboard may
    have any name.

    >>> here = {TOKEN: "0123456789abcdef"}
    >>> is_invited("0123456789abcdef", "localhost:8501", here), is_invited("0123456789abcdef", "evil.example:8501", here)
    (True, False)
    >>> is_invited("", "localhost:8501", here), is_invited("", None, {})
    (False, False)
    """
    token = environment.get(TOKEN, "")
    is_shown = bool(token) and hmac.compare_digest((shown or "").encode(), token.encode())
    return is_shown and (host is None or bool(environment.get(EXPOSED)) or name_of(host) in OWN)


def name_of(host: str) -> str:
    """A Host without its port.

    >>> name_of("LocalHost:8501"), name_of("[::1]:8501"), name_of("127.0.0.1")
    ('localhost', '[::1]', '127.0.0.1')
    """
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isascii() and port.isdigit() else host.lower()
