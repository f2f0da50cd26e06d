"""Which explanations a run saves: the worst and the best of each explainer.

The worst of a whole run are among the worst of each of its parts, so a benchmark can choose in each
shard alone.
"""

from collections.abc import Mapping
from typing import Any

from graphgauge.core.xplanation import Xplanation
from graphgauge.evaluation import Results, Row
from graphgauge.evaluation.results import Key
from graphgauge.guidelines import Requirements
from graphgauge.guidelines.measures import judged_form
from graphgauge.narrative.facts import checked_sizes
from graphgauge.report.showcase import EACH, Stage


def records_to_keep(results: Results, names: Any = None) -> list[dict[str, Any]]:
    """Return a record for each explanation that a run saves, as plain data.

    Loaded results return the records that they came with.

    Args:
        results: The results of a run.
        names: What things are called: `Names`, or a dictionary of its fields.

    Raises:
        BadSetting: Names refer to things that the data do not have.
    """
    if results.source is None:
        return [record_of(key, dict(exhibit)) for key, exhibit in results.kept().items()]
    form = judged_form(results.settings, (row.metric for row in results.rows))
    stage = Stage(results, Requirements(), form, lambda key: key, names)
    checked_sizes(stage.called, results.source.evaluator.model)
    return [record for cases in stage.cases.values() for record in records_of(stage, cases)]


def records_of(stage: Stage, cases: Mapping[Key, list[Row]]) -> list[dict[str, Any]]:
    """Return the records of one explainer on one task.

    Explanations that a foreign explainer cannot make again are left out.
    """
    order = stage.ordered(cases)
    keys = list(dict.fromkeys([*order[:EACH], *order[::-1][:EACH]]))
    explanations = made_together(stage, keys)
    records = []
    for key in keys:
        try:
            exhibit = stage.exhibit(key, cases[key], explanations.get(key))
        except Exception:  # foreign code, and no number depends on it
            continue
        if exhibit is not None:
            records.append(record_of(key, exhibit.record()))
    return records


def made_together(stage: Stage, keys: list[Key]) -> dict[Key, Xplanation]:
    """Make the explanations in one batch; return none if that fails.

    The caller then makes each alone.
    """
    try:
        return stage.explanations(keys)
    except Exception:  # foreign code, and no number depends on it
        return {}


def record_of(key: Key, exhibit: dict[str, Any]) -> dict[str, Any]:
    """Return which explanation it is, and what a report can show of it."""
    task, model, explainer, target, occurrence = key
    return {
        "task": task,
        "model": model,
        "explainer": explainer,
        "target": list(target) if isinstance(target, tuple) else target,
        "occurrence": occurrence,
        "exhibit": exhibit,
    }
