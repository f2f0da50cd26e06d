"""One number of one explanation, and what identifies the explanation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphgauge.core import JsonObject, Target
from graphgauge.evaluation.metric_value import MetricValue

#: an explanation: task, network, explainer, target, occurrence
ExplanationKey = tuple[str, str, str, Target, int]
#: an explanation within one task and network: explainer, target, occurrence
LocalExplanationKey = tuple[str, Target, int]


@dataclass(frozen=True)
class Row:
    """One number of one explanation."""

    task: str
    model: str
    explainer: str
    target: Target
    occurrence: int
    metric: str
    cell: MetricValue
    seconds: float | None  #: the explanation's share of its batch
    seed: int
    settings: str  #: digest
    version: str

    def record(self) -> JsonObject:
        """As one flat dictionary."""
        flat = {**vars(self), **vars(self.cell)}
        del flat["cell"]
        return flat


#: the fields of a row beside its value
ROW_FIELDS = [name for name in Row.__dataclass_fields__ if name != "cell"]
#: the columns of `Results.to_pandas`
TABLE_COLUMNS = [*ROW_FIELDS, *MetricValue.__dataclass_fields__]
TEXT_COLUMNS = ("task", "model", "explainer", "metric", "settings", "version", "status", "message")
#: columns with an entry per reference, or per level
LIST_COLUMNS = ("trials", "stop", "per_reference", "per_level")


def explanation_key(record: Mapping[str, Any]) -> ExplanationKey:
    """Which explanation a record, or a row as a record, is of."""
    target = record["target"]
    target = tuple(target) if isinstance(target, list) else target
    return record["task"], record["model"], record["explainer"], target, record["occurrence"]
