"""The validation behind a baseline: which explainer was decided on, when, and who signed.

It is stored with the baseline, so that runs need no other file. Runs use this explainer and are
compared with the limits of the baseline's plan. The age of the validation counts from its own date,
not from that of the baseline.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from graphgauge.core import JsonObject


@dataclass(frozen=True)
class ValidationRecord:
    """The part of a decision that monitoring needs."""

    at: datetime
    explainer: str  #: registry name
    parameters: Mapping[str, Any] = field(default_factory=dict)
    decision: str = ""  #: digest of the decision file
    signed_by: str = ""  #: '': nobody
    may_stop_early: bool = (
        True  #: whether early stopping left every verdict and mean of the validation as it was
    )

    def record(self) -> JsonObject:
        """Return the validation as plain data."""
        return {**asdict(self), "at": self.at.isoformat(), "parameters": dict(self.parameters)}

    @staticmethod
    def from_record(record: Mapping[str, Any] | None) -> "ValidationRecord | None":
        """Build a validation from what `record` returned; None if there was no decision."""
        return (
            None
            if record is None
            else ValidationRecord(**{**record, "at": datetime.fromisoformat(record["at"])})
        )
