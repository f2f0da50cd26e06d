"""Values that an explanation carries from an evaluation, so that nothing is measured twice.

`Xplanation.metrics` holds the values for people, and under the name "evaluation" a record with all
that was found and a key. The key names the settings, the seed, the explainer, the network, its data
and the scores: where one of them differs, the stored values do not hold.
"""

from collections.abc import Mapping

from graphgauge.core import Xplanation
from graphgauge.evaluation.metric_value import MetricValue

RECORD = "evaluation"  #: where `Xplanation.metrics` keeps the record


def read_stored_values(x: Xplanation, key: str) -> dict[str, MetricValue] | None:
    """What an explanation carries from an evaluation with this key; None without one.

    Args:
        x: The explanation.
        key: What must be the same for stored values to hold.
    """
    record = x.metrics.get(RECORD)
    if not isinstance(record, dict) or record.get("key") != key:
        return None
    return {name: MetricValue.from_record(cell) for name, cell in record["cells"].items()}


def store_values(
    x: Xplanation,
    key: str,
    values: Mapping[str, MetricValue],
    agreement: Mapping[str, MetricValue] | None = None,
) -> None:
    """Write values into an explanation, in the place of those of an earlier evaluation.

    Args:
        x: The explanation.
        key: What must be the same for the values to hold.
        values: By metric.
        agreement: Values that depend on a known truth; they are not read again, since the truth may
            be another one next time.
    """
    agreement = agreement or {}
    before = x.metrics.get(RECORD)
    stale: set[str] = set()
    if isinstance(before, dict) and "cells" in before:
        stale = {*before["cells"], *before.get("truth", ())}
    kept = {name: value for name, value in x.metrics.items() if name not in stale}
    x.metrics = {
        **kept,
        **{name: cell.value for name, cell in {**values, **agreement}.items()},
        RECORD: {"key": key, "cells": {name: cell.record() for name, cell in values.items()}},
    }
    if agreement:
        x.metrics[RECORD]["truth"] = list(agreement)
