"""Notify others of a run: append a line to a file, or POST it to a webhook.

A notification that fails is reported, not raised, because the run itself is already stored.
"""

import json
import os
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from graphgauge.core import BadSetting, JsonObject

_TIMEOUT_SECONDS = 10.0


class _NoRedirects(HTTPRedirectHandler):
    """Follow no redirects: a record meant for one address is sent to no other."""

    def redirect_request(self, *given: Any) -> None:
        """Refuse the redirect."""


def check_webhook(url: str) -> str:
    """Return the address of a webhook, or raise `BadSetting` if it is not an http(s) address."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadSetting(
            "a webhook is an address such as https://example.org/hook, but the given one has the "
            f"scheme {parts.scheme!r}."
        )
    return url


def post_json(url: str, record: JsonObject, seconds: float = _TIMEOUT_SECONDS) -> str:
    """Send a record as JSON; return '' on success, otherwise the reason for the failure.

    The address may contain a secret, so the reason names its host only.

    Args:
        url: Address of the webhook, http or https. Redirects are not followed.
        record: Plain data without NaN and infinity.
        seconds: Timeout of the connection and of each read, in seconds; 10 by default.

    Raises:
        BadSetting: The address is not an http or https address.
    """
    host = urlsplit(check_webhook(url)).hostname
    body = json.dumps(record, ensure_ascii=False, allow_nan=False).encode()
    request = Request(url, body, {"Content-Type": "application/json; charset=utf-8"}, method="POST")
    try:
        with build_opener(_NoRedirects).open(request, timeout=seconds) as answer:
            answer.read(1)
        return ""
    except (URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        code = f" {error.code}" if hasattr(error, "code") else ""
        kind = f"{type(error).__name__}{code}"
        return f"the webhook at {host} did not take the record: {kind} ({reason})"


def append_json_line(path: str | os.PathLike[str], record: JsonObject) -> str:
    """Append a record to a file of JSON lines; return '' on success, otherwise the reason."""
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")
        return ""
    except OSError as error:
        return f"{os.fspath(path)} could not be written: {error}"
