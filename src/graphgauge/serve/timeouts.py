"""How long the service waits for a request that does not come: the clock of every connection.

A caller who opens connections and sends nothing, or a byte now and then ("slow loris"), keeps them
from others; uvicorn has no clock for that. Here each connection has one. It runs while the caller
owes something,

    a head   from the connection, or from the first byte of a further request, until its last line
             (``head_ms``)
    a body   from the head until the last byte, also where nobody reads it
             (``body_ms`` and a second)

and does not start anew with a byte: what is not there in time ends the connection. A body that is
read is refused with 408 before. Between two requests the usual time for keeping a connection holds.
"""

import asyncio
from typing import TYPE_CHECKING, Any

from graphgauge.serve.settings import Settings

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol

_BODY_GRACE_SECONDS = 1.0  #: seconds after which a body that was refused must be gone


def timeout_protocol(settings: Settings) -> "type[H11Protocol]":
    """Uvicorn's protocol with time limits for the parts of a request."""
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    seconds: dict[Any, float] = {
        h11.IDLE: settings.head_ms / 1000,
        h11.SEND_BODY: settings.body_ms / 1000 + _BODY_GRACE_SECONDS,
    }

    class TimeoutProtocol(H11Protocol):
        """A connection that is closed if its request does not arrive in time."""

        awaited: Any = None  #: the part of a request that h11 waits for
        timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            """Wait for the head of a request."""
            super().connection_made(transport)
            self.update_timer()

        def data_received(self, data: bytes) -> None:
            """Wait for the next part, if this one is complete."""
            super().data_received(data)
            self.update_timer()

        def connection_lost(self, exc: Exception | None) -> None:
            """Wait for nothing any more."""
            self.set_timer(None)
            super().connection_lost(exc)

        def update_timer(self) -> None:
            """Start the timer of the part that is awaited now, unless it runs already."""
            if self.conn.their_state is not self.awaited:
                self.awaited = self.conn.their_state
                self.set_timer(seconds.get(self.awaited))

        def set_timer(self, time: float | None) -> None:
            """Stop the timer; start it again if a time is given."""
            if self.timer is not None:
                self.timer.cancel()
            self.timer = None if time is None else self.loop.call_later(time, self.transport.abort)

    return TimeoutProtocol
