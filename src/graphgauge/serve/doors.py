"""What every request passes before it is read: Host, Origin, token, rate; and the safe reading of
its body.

A page in a browser can make the browser call 127.0.0.1, also under a name of its own (DNS
rebinding). So the Host must be one of the service's names, a request with an Origin is refused, and
a token is asked for, which only a header can carry.
"""

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any

from graphgauge.serve.questions import Refused
from graphgauge.serve.settings import Settings

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN_PATHS = ("/health", "/ready")  #: without a token: they tell nothing but that they answer
SAFE_HEADERS = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)


class Door:
    """Refuses what should not come in, and adds safe headers to what goes out."""

    def __init__(self, app: App, settings: Settings, counted: Callable[[str, int], None]) -> None:
        self.app, self.settings, self.counted = app, settings, counted
        self.token = digest(settings.token.encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no WebSockets here
            await send({"type": "websocket.close", "code": 1008})
            return
        known = (
            scope["path"]
            if scope["path"] in ("/explain", "/metrics", "/openapi.json", *OPEN_PATHS)
            else "other"
        )

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.counted(known, message["status"])
                message = {**message, "headers": [*message.get("headers", []), *SAFE_HEADERS]}
            await send(message)

        try:
            self.check(scope)
        except Refused as refused:
            await respond(refused, sent)
        else:
            await self.app(scope, receive, sent)

    def check(self, scope: Scope) -> None:
        """Host, Origin and token of a request."""
        check_host(values(scope, b"host"), self.settings.host_names)
        if values(scope, b"origin"):
            raise Refused(403, "bad_origin", "requests from web pages are not answered.")
        if scope["path"] not in OPEN_PATHS:
            self.check_token(values(scope, b"authorization"))

    def check_token(self, given: list[bytes]) -> None:
        """Compare in constant time; digests, so that not even the length shows."""
        kind, _, token = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
        if kind.lower() != b"bearer" or not hmac.compare_digest(
            digest(token.strip(b" ")), self.token
        ):
            raise Refused(
                401, "bad_token", "show the service's token: Authorization: Bearer TOKEN."
            )


def digest(text: bytes) -> bytes:
    """SHA-256."""
    return hashlib.sha256(text).digest()


def values(scope: Scope, name: bytes) -> list[bytes]:
    """All values of a header."""
    return [value for key, value in scope["headers"] if key.lower() == name]


def check_host(given: list[bytes], allowed: frozenset[str]) -> None:
    """Refuse a request for another host, whatever its port."""
    host = given[0].decode("latin-1").lower() if len(given) == 1 else ""
    name, colon, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
    if not colon:
        name, port = host, ""
    if name not in allowed or (colon and not (port.isascii() and port.isdigit())):
        raise Refused(421, "bad_host", "this service does not answer under that Host.")


def problem(refused: Refused) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """Body and headers of a refusal."""
    body = json.dumps(
        {"error": refused.code, "message": refused.message}, ensure_ascii=True
    ).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if refused.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if refused.retry_after is not None:
        headers.append((b"retry-after", str(refused.retry_after).encode()))
    return body, headers


async def respond(refused: Refused, send: Send) -> None:
    """Send a refusal."""
    body, headers = problem(refused)
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Bucket:
    """A token bucket: ``rate`` a second over time, ``burst`` at once."""

    def __init__(
        self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.rate, self.burst, self.clock = rate, float(burst), clock
        self.level, self.last = float(burst), clock()

    def take(self) -> None:
        """One question, or `Refused`."""
        now = self.clock()
        self.level = min(self.burst, self.level + (now - self.last) * self.rate)
        self.last = now
        if self.level < 1:
            raise Refused(
                429, "too_many", f"more than {self.rate:g} questions a second.", retry_after=1
            )
        self.level -= 1


def check_body_head(headers: Any, most: int) -> None:
    """Refuse what is no JSON, is packed, or says that it is too long."""
    kind = headers.get("content-type", "").partition(";")
    charset = kind[2].replace(" ", "").replace('"', "").lower()
    if kind[0].strip().lower() != "application/json" or charset not in ("", "charset=utf-8"):
        raise Refused(
            415, "bad_type", "the body must be sent as Content-Type: application/json, in UTF-8."
        )
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise Refused(415, "bad_encoding", "the body must not be compressed.")
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        raise Refused(400, "bad_length", "Content-Length is no number.")
    if len(length) > 12 or int(length) > most:
        raise too_long(most)


async def read_body(chunks: AsyncIterator[bytes], most: int, seconds: float) -> bytes:
    """The body, or `Refused`: 413 for a long one, 408 for one that does not arrive."""

    async def collected() -> bytes:
        found = bytearray()
        async for chunk in chunks:
            found += chunk
            if len(found) > most:
                raise too_long(most)
        return bytes(found)

    try:
        return await asyncio.wait_for(collected(), seconds)
    except asyncio.TimeoutError:
        raise Refused(408, "slow_body", f"the body did not arrive within {seconds:g} s.") from None


def too_long(most: int) -> Refused:
    """A body beyond the limit."""
    return Refused(413, "too_long", f"a question has at most {most} bytes.")
