"""Which explanations a run saves: the worst and the best of each explainer.

The worst of a whole run are among the worst of each of its parts, so a benchmark can choose in each
shard alone.
"""

from collections.abc import Mapping

from graphgauge.core import Xplanation
from graphgauge.evaluation import ExplanationKey, Results, Row
from graphgauge.guidelines import Requirements, judged_pertinence_form
from graphgauge.narrative import NamesLike, check_names_fit_model
from graphgauge.report.examples import EXAMPLES_PER_END, ExampleBuilder
from graphgauge.report.score_table import Record


def collect_example_records(results: Results, names: NamesLike = None) -> list[Record]:
    """Return a record for each explanation that a run saves, as plain data.

    Loaded results return the records that they came with.

    Args:
        results: The results of a run.
        names: What things are called: `Names`, or a dictionary of its fields.

    Raises:
        BadSetting: Names refer to things that the data do not have.
    """
    if results.source is None:
        return [_example_record(key, dict(exhibit)) for key, exhibit in results.kept().items()]
    form = judged_pertinence_form(results.settings, (row.metric for row in results.rows))
    stage = ExampleBuilder(results, Requirements(), form, lambda key: key, names)
    check_names_fit_model(stage.resolved_names, results.source.evaluator.model)
    return [record for cases in stage.cases.values() for record in _explainer_records(stage, cases)]


def _explainer_records(
    stage: ExampleBuilder, cases: Mapping[ExplanationKey, list[Row]]
) -> list[Record]:
    """Return the records of one explainer on one task.

    Explanations that a foreign explainer cannot make again are left out.
    """
    order = stage.ordered(cases)
    keys = list(dict.fromkeys([*order[:EXAMPLES_PER_END], *order[::-1][:EXAMPLES_PER_END]]))
    explanations = _explain_in_one_batch(stage, keys)
    records = []
    for key in keys:
        try:
            exhibit = stage.exhibit(key, cases[key], explanations.get(key))
        except Exception:  # foreign code, and no number depends on it
            continue
        if exhibit is not None:
            records.append(_example_record(key, exhibit.record()))
    return records


def _explain_in_one_batch(
    stage: ExampleBuilder, keys: list[ExplanationKey]
) -> dict[ExplanationKey, Xplanation]:
    """Make the explanations in one batch; return none if that fails.

    The caller then makes each alone.
    """
    try:
        return stage.explanations(keys)
    except Exception:  # foreign code, and no number depends on it
        return {}


def _example_record(key: ExplanationKey, exhibit: Record) -> Record:
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
