"""What a service allows, and how long it takes for an explanation."""

import ipaddress
import secrets
from dataclasses import dataclass, field, fields

from graphgauge.core import BadSetting

_LOOPBACK_NAMES = ("localhost",)
MIN_TOKEN_LENGTH = 16  #: characters


@dataclass(frozen=True)
class Settings:
    """Settings of a service. Times are in milliseconds.

    ``host, port``   where it listens (port 0: any that is free)
    ``token``        what callers must show; default: a random one
    ``hosts``        further names under which it may be called, such as "explain.internal"
    ``budget_ms``    for one explanation, from its arrival; after that the fallback answers
    ``gather_ms``    how long the first question of a batch waits for others
    ``max_batch``    questions that are explained in one call
    ``max_waiting``  questions that may wait; more are refused with 503
    ``rate``         questions a second over time, with up to ``burst`` at once; more are refused
                     with 429
    ``max_body``     bytes of a question
    ``head_ms``      how long the head of a request may take to arrive
    ``body_ms``      how long a question may take to arrive
    ``max_top``      features and edges that can be asked for
    ``seed``         of every explanation: the same question gets the same scores
    """

    host: str = "127.0.0.1"
    port: int = 8321
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    hosts: tuple[str, ...] = ()
    budget_ms: float = 300.0
    gather_ms: float = 3.0
    max_batch: int = 64
    max_waiting: int = 512
    rate: float = 1000.0
    burst: int = 1000
    max_body: int = 16_384
    head_ms: float = 10_000.0
    body_ms: float = 10_000.0
    max_top: int = 50
    seed: int = 0

    def __post_init__(self) -> None:
        _check_token(self.token)
        for name in (
            "budget_ms",
            "rate",
            "head_ms",
            "body_ms",
            "max_batch",
            "max_waiting",
            "burst",
            "max_body",
            "max_top",
        ):
            if not 0 < getattr(self, name) < float("inf"):
                raise BadSetting(
                    f"{name} must be a number above 0, but {getattr(self, name)!r} was given."
                )
        if not 0 <= self.gather_ms < float("inf") or not 0 <= self.port < 65536:
            raise BadSetting(
                f"gather_ms must be 0 or more and port in 0..65535, but are {self.gather_ms!r} "
                f"and {self.port!r}."
            )

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the service."""
        return _is_loopback(self.host)

    @property
    def host_names(self) -> frozenset[str]:
        """Names and addresses under which the service may be called."""
        own = {"localhost", "127.0.0.1", "[::1]"} if self.is_loopback else {bracket_host(self.host)}
        return frozenset(name.lower() for name in {*own, *self.hosts})

    def record(self) -> dict[str, object]:
        """Everything but the token."""
        shown = {
            entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name != "token"
        }
        return {**shown, "hosts": list(self.hosts)}


def _is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine only.

    >>> _is_loopback("127.0.0.1"), _is_loopback("::1")
    (True, True)
    >>> _is_loopback("0.0.0.0"), _is_loopback("example.org")
    (False, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() in _LOOPBACK_NAMES


def bracket_host(host: str) -> str:
    """A host as it stands in a Host header."""
    return f"[{host}]" if ":" in host else host


def _check_token(token: str) -> None:
    """Refuse a token that is easy to guess or that no header can carry.

    The message never contains the token.
    """
    if (
        len(token) < MIN_TOKEN_LENGTH
        or not token.isascii()
        or not token.isprintable()
        or " " in token
    ):
        raise BadSetting(
            f"the token must have at least {MIN_TOKEN_LENGTH} printable ASCII characters and no "
            "space."
        )
