"""What a validation decided before the baseline was taken: the explainer in use, since when it is
valid, who answers for it.

It is kept with the baseline, so that runs need no other file: they are measured with this explainer
and held against the limits of the baseline's plan, and the age of the validation counts from its
own date, not from the baseline's.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class Validated:
    """A decision, as far as monitoring needs it."""

    at: datetime
    explainer: str  #: registry name
    parameters: Mapping[str, Any] = field(default_factory=dict)
    decision: str = ""  #: digest of the decision file
    signed_by: str = ""  #: '': nobody
    may_stop_early: bool = (
        True  #: whether early stopping left every verdict and mean of the validation as it was
    )

    def record(self) -> dict[str, Any]:
        """As plain data."""
        return {**asdict(self), "at": self.at.isoformat(), "parameters": dict(self.parameters)}

    @staticmethod
    def from_record(record: Mapping[str, Any] | None) -> "Validated | None":
        """What `record` gave; None where there was no decision."""
        return (
            None
            if record is None
            else Validated(**{**record, "at": datetime.fromisoformat(record["at"])})
        )
