"""What a run keeps of its explanations when it is saved: exhibits of the worst and the best of each
explainer.

The worst of a whole run are among the worst of each of its parts, so a benchmark can keep those of
every shard by itself.
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
    """A record for each explanation that is kept, as plain data; of results that were loaded, those
    they came with.

    Names of what the data do not have are refused: no explanation could be told with them.
    """
    if results.source is None:
        return [record_of(key, dict(exhibit)) for key, exhibit in results.kept().items()]
    form = judged_form(results.settings, (row.metric for row in results.rows))
    stage = Stage(results, Requirements(), form, lambda key: key, names)
    checked_sizes(stage.called, results.source.evaluator.model)
    return [record for cases in stage.cases.values() for record in records_of(stage, cases)]


def records_of(stage: Stage, cases: Mapping[Key, list[Row]]) -> list[dict[str, Any]]:
    """Those of one explainer on one task. What an explainer from elsewhere cannot do again is not
    kept.
    """
    order = stage.ordered(cases)
    keys = list(dict.fromkeys([*order[:EACH], *order[::-1][:EACH]]))
    made = made_together(stage, keys)
    found = []
    for key in keys:
        try:
            exhibit = stage.exhibit(key, cases[key], made.get(key))
        except Exception:  # foreign code, and no number depends on it
            continue
        if exhibit is not None:
            found.append(record_of(key, exhibit.record()))
    return found


def made_together(stage: Stage, keys: list[Key]) -> dict[Key, Xplanation]:
    """The explanations in one batch; none where that fails: each is then made by itself, and one
    that can be is kept.
    """
    try:
        return stage.explanations(keys)
    except Exception:  # foreign code, and no number depends on it
        return {}


def record_of(key: Key, exhibit: dict[str, Any]) -> dict[str, Any]:
    """Which explanation it is, and what can be shown of it."""
    task, model, explainer, target, occurrence = key
    return {
        "task": task,
        "model": model,
        "explainer": explainer,
        "target": list(target) if isinstance(target, tuple) else target,
        "occurrence": occurrence,
        "exhibit": exhibit,
    }
