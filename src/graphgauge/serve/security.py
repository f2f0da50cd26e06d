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

from graphgauge.serve.requests import RequestRefused
from graphgauge.serve.settings import Settings

_AsgiMessage = MutableMapping[str, Any]
_AsgiScope = MutableMapping[str, Any]
_AsgiReceive = Callable[[], Awaitable[_AsgiMessage]]
_AsgiSend = Callable[[_AsgiMessage], Awaitable[None]]
_AsgiApp = Callable[[_AsgiScope, _AsgiReceive, _AsgiSend], Awaitable[None]]

OPEN_PATHS = ("/health", "/ready")  #: without a token: they tell nothing but that they answer
_SAFE_HEADERS = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)


class SecurityMiddleware:
    """Refuses what should not come in, and adds safe headers to what goes out."""

    def __init__(
        self, app: _AsgiApp, settings: Settings, counted: Callable[[str, int], None]
    ) -> None:
        self.app, self.settings, self.count_request = app, settings, counted
        self.token = _sha256_digest(settings.token.encode())

    async def __call__(self, scope: _AsgiScope, receive: _AsgiReceive, send: _AsgiSend) -> None:
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

        async def sent(message: _AsgiMessage) -> None:
            if message["type"] == "http.response.start":
                self.count_request(known, message["status"])
                message = {**message, "headers": [*message.get("headers", []), *_SAFE_HEADERS]}
            await send(message)

        try:
            self.check(scope)
        except RequestRefused as refused:
            await _send_refusal(refused, sent)
        else:
            await self.app(scope, receive, sent)

    def check(self, scope: _AsgiScope) -> None:
        """Host, Origin and token of a request."""
        _check_host(_header_values(scope, b"host"), self.settings.host_names)
        if _header_values(scope, b"origin"):
            raise RequestRefused(403, "bad_origin", "requests from web pages are not answered.")
        if scope["path"] not in OPEN_PATHS:
            self.check_token(_header_values(scope, b"authorization"))

    def check_token(self, given: list[bytes]) -> None:
        """Compare in constant time; digests, so that not even the length shows."""
        kind, _, token = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
        if kind.lower() != b"bearer" or not hmac.compare_digest(
            _sha256_digest(token.strip(b" ")), self.token
        ):
            raise RequestRefused(
                401, "bad_token", "show the service's token: Authorization: Bearer TOKEN."
            )


def _sha256_digest(text: bytes) -> bytes:
    """SHA-256."""
    return hashlib.sha256(text).digest()


def _header_values(scope: _AsgiScope, name: bytes) -> list[bytes]:
    """All values of a header."""
    return [value for key, value in scope["headers"] if key.lower() == name]


def _check_host(given: list[bytes], allowed: frozenset[str]) -> None:
    """Refuse a request for another host, whatever its port."""
    host = given[0].decode("latin-1").lower() if len(given) == 1 else ""
    name, colon, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
    if not colon:
        name, port = host, ""
    if name not in allowed or (colon and not (port.isascii() and port.isdigit())):
        raise RequestRefused(421, "bad_host", "this service does not answer under that Host.")


def refusal_response(refused: RequestRefused) -> tuple[bytes, list[tuple[bytes, bytes]]]:
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


async def _send_refusal(refused: RequestRefused, send: _AsgiSend) -> None:
    """Send a refusal."""
    body, headers = refusal_response(refused)
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class TokenBucket:
    """A token bucket: ``rate`` a second over time, ``burst`` at once."""

    def __init__(
        self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.rate, self.burst, self.clock = rate, float(burst), clock
        self.level, self.last = float(burst), clock()

    def take(self) -> None:
        """One question, or `RequestRefused`."""
        now = self.clock()
        self.level = min(self.burst, self.level + (now - self.last) * self.rate)
        self.last = now
        if self.level < 1:
            raise RequestRefused(
                429, "too_many", f"more than {self.rate:g} questions a second.", retry_after=1
            )
        self.level -= 1


def check_body_headers(headers: Any, most: int) -> None:
    """Refuse what is no JSON, is packed, or says that it is too long."""
    kind = headers.get("content-type", "").partition(";")
    charset = kind[2].replace(" ", "").replace('"', "").lower()
    if kind[0].strip().lower() != "application/json" or charset not in ("", "charset=utf-8"):
        raise RequestRefused(
            415, "bad_type", "the body must be sent as Content-Type: application/json, in UTF-8."
        )
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise RequestRefused(415, "bad_encoding", "the body must not be compressed.")
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        raise RequestRefused(400, "bad_length", "Content-Length is no number.")
    if len(length) > 12 or int(length) > most:
        raise _body_too_long(most)


async def read_body(chunks: AsyncIterator[bytes], most: int, seconds: float) -> bytes:
    """The body, or `RequestRefused`: 413 for a long one, 408 for one that does not arrive."""

    async def collected() -> bytes:
        found = bytearray()
        async for chunk in chunks:
            found += chunk
            if len(found) > most:
                raise _body_too_long(most)
        return bytes(found)

    try:
        return await asyncio.wait_for(collected(), seconds)
    except asyncio.TimeoutError:
        raise RequestRefused(
            408, "slow_body", f"the body did not arrive within {seconds:g} s."
        ) from None


def _body_too_long(most: int) -> RequestRefused:
    """A body beyond the limit."""
    return RequestRefused(413, "too_long", f"a question has at most {most} bytes.")
