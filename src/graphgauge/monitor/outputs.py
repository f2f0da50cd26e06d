"""Tell others: a line in a file for every run, a POST to a webhook. What fails is reported, not
raised: the run is stored.
"""

import json
import os
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from graphgauge.core.errors import BadSetting

SECONDS = 10.0


class NoRedirects(HTTPRedirectHandler):
    """What was meant for one address goes to no other."""

    def redirect_request(self, *given: Any) -> None:
        """Refuse."""


def check_webhook(url: str) -> str:
    """Refuse an address that is no web address."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadSetting(
            f"a webhook is an address such as https://example.org/hook, but its scheme is {parts.scheme!r}."
        )
    return url


def post(url: str, record: dict[str, Any], seconds: float = SECONDS) -> str:
    """Send a record as JSON; '' if it was taken, else why not. The address may hold a secret, so
    only its host is told.
    """
    host = urlsplit(check_webhook(url)).hostname
    body = json.dumps(record, ensure_ascii=False, allow_nan=False).encode()
    request = Request(url, body, {"Content-Type": "application/json; charset=utf-8"}, method="POST")
    try:
        with build_opener(NoRedirects).open(request, timeout=seconds) as answer:
            answer.read(1)
        return ""
    except (URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        code = f" {error.code}" if hasattr(error, "code") else ""
        return f"the webhook at {host} was not reached: {type(error).__name__}{code} ({reason})"


def append_line(path: str | os.PathLike[str], record: dict[str, Any]) -> str:
    """Add a record to a file of JSON lines; '' if it is there, else why not."""
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")
        return ""
    except OSError as error:
        return f"{os.fspath(path)} could not be written: {error}"
