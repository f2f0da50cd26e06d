"""Results of several networks, seeds or tasks as one table."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from functools import cache
from typing import Any

from graphgauge.core import BadSetting, JsonObject, sum_phases
from graphgauge.evaluation.result_row import ExplanationKey, Row, explanation_key
from graphgauge.evaluation.results import Results


def concat(results: Iterable[Results] | Mapping[str, Results]) -> Results:
    """Join the rows of several results, such as those of several networks, training seeds or tasks.

    A summary of the joined results averages over the targets of each network first, and then gives
    the mean and the SD over networks.

    Args:
        results: Results with equal settings. The keys of a dictionary become the names of the
            networks. In a list, networks are distinguished by the names of their evaluators, as in
            ``Evaluator(model, name="gcn, run 1")``.

    Returns:
        Results that know where each row is from: `Results.explain` finds its curves as before.

    Raises:
        BadSetting: There are no results, their settings differ, two different networks have the
            same name, or a row comes twice.

    >>> more = evaluator.compare([gg.InputXGradient()], [403])  # a target that was left out
    >>> gg.concat([results, more])
    Results(112 rows: 4 targets, explainers input_x_gradient, random)
    """
    if isinstance(results, Mapping):
        parts = [_rename_network(part, str(name)) for name, part in results.items()]
    elif isinstance(results, Results):
        parts = [results]
    else:
        parts = list(results)
    for part in parts:
        if not isinstance(part, Results):
            raise BadSetting(
                "concat takes results of an Evaluator, or a dictionary of them by name, but got "
                f"{type(part).__name__}."
            )
    if not parts:
        raise BadSetting("concat needs one set of results or more, but none was given.")
    parts = [own for part in parts for own in (part.parts or (part,))]
    _check_settings(parts)
    _check_networks(parts)
    rows = tuple(row for part in parts for row in part.rows)
    _check_rows(rows)
    if len(parts) == 1:
        return parts[0]
    return Results(
        rows,
        parts[0].settings,
        kept=cache(lambda: _collect_examples(parts)),
        made=_shared_provenance(parts),
        parts=tuple(parts),
        phase_seconds=sum_phases(*(part.phase_seconds for part in parts)),
    )


def _rename_network(part: Any, name: str) -> Any:
    """The results with ``name`` as that of the network."""
    if not isinstance(part, Results):
        return part
    if len({row.model for row in part.rows}) > 1:
        raise BadSetting(
            f"the results called {name!r} are of several networks, which have names already: give "
            "a list instead."
        )
    rows = tuple(replace(row, model=name) for row in part.rows)
    return replace(
        part,
        rows=rows,
        kept=cache(lambda: {(k[0], name, *k[2:]): v for k, v in _collect_examples([part]).items()}),
    )


def _check_settings(parts: list[Results]) -> None:
    """Refuse numbers that were measured differently."""
    first = parts[0].settings
    for part in parts[1:]:
        differing = [
            field.name
            for field in fields(first)
            if getattr(first, field.name) != getattr(part.settings, field.name)
        ]
        if differing:
            shown = "; ".join(
                f"{name}: {getattr(first, name)!r} and {getattr(part.settings, name)!r}"
                for name in differing
            )
            raise BadSetting(
                f"these results were measured with different settings ({shown}): evaluate again "
                "with equal ones."
            )


def _check_networks(parts: list[Results]) -> None:
    """Refuse two networks under one name.

    Otherwise their targets would be averaged as those of one network.
    """
    known: dict[tuple[str, str], Any] = {}
    for part in parts:
        network = part.made.get("identity", {}).get("network")
        if network is None:
            continue
        for name in dict.fromkeys((row.task, row.model) for row in part.rows):
            if known.setdefault(name, network) != network:
                task = f" in task {name[0]!r}" if name[0] else ""
                raise BadSetting(
                    f"two different networks are both called {name[1]!r}{task}: give each a name, "
                    "Evaluator(model, name=...), or a dictionary, concat({'first': ..., 'second': "
                    "...})."
                )


def _check_rows(rows: tuple[Row, ...]) -> None:
    """Refuse rows that come twice: an explanation would count more than once."""
    count = Counter(
        (row.task, row.model, row.seed, row.explainer, row.target, row.occurrence, row.metric)
        for row in rows
    )
    if not count:
        return
    (task, model, seed, explainer, target, _, metric), times = count.most_common(1)[0]
    if times > 1:
        again = sum(1 for number in count.values() if number > 1)
        raise BadSetting(
            f"{again} rows come more than once, for example {metric} of {explainer} for target "
            f"{target} (task {task!r}, network {model!r}, seed {seed}): leave one of the results "
            "out, or name the networks, concat({'first': ..., 'second': ...})."
        )


def _shared_provenance(parts: list[Results]) -> JsonObject:
    """What is known of how all parts were made, where they agree; and each part by itself."""
    first = parts[0].made
    agreed = {
        name: value
        for name, value in first.items()
        if all(part.made.get(name) == value for part in parts)
    }
    runs = [(part.rows[0], part.made) for part in parts if part.rows and part.made]
    each = [{"task": row.task, "model": row.model, "seed": row.seed, **made} for row, made in runs]
    return {**agreed, "parts": each} if each else dict(agreed)


def _collect_examples(parts: list[Results]) -> dict[ExplanationKey, Mapping[str, Any]]:
    """What the parts keep, or would keep, of single explanations."""
    from graphgauge.report import collect_example_records

    found: dict[ExplanationKey, Mapping[str, Any]] = {}
    for part in parts:
        found |= (
            part.kept()
            if part.source is None
            else {
                explanation_key(own): own["exhibit"] for own in collect_example_records(part, None)
            }
        )
    return found
