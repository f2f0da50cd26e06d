"""Replaces explainers of one run by the variants that a second run measured.

The paper most likely ran variants of four explainers; they are measured in a run of their own
(`paper-variants`). Their rows may stand beside those of another run only if both were measured in
the same way: the same settings and seeds, the same targets of the same tasks and networks.
Otherwise every table would compare explainers on different questions, so that is refused.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from graphgauge.benchmark.explainer_names import paper_method
from graphgauge.core import BadSetting, Target
from graphgauge.evaluation import Results, Row

#: explainer -> the variant of it that mimics the paper
MIMICKING_VARIANTS = {
    "lrp": "captum",
    "guided_backprop": "captum",
    "deconvolution": "captum",
    "graphmask": "pyg",
}
_MAX_LISTED = 10  #: differences in a message
_Case = tuple[int, Target, int]  #: the seed, the target and the occurrence of an explanation


def with_variants(results: Results, variants: Results) -> Results:
    """Replace the explainers of a run by their variants from a second run.

    Args:
        results: The run with the default explainers.
        variants: The run with the variants; both must have the same settings, seeds and targets.
    """
    _check_comparable(results, variants)
    renamed = [replace(row, explainer=_variant_label(row.explainer)) for row in variants.rows]
    replaced = {paper_method(row.explainer) for row in renamed}
    kept = [row for row in results.rows if paper_method(row.explainer) not in replaced]
    rows: tuple[Row, ...] = (*kept, *renamed)
    return replace(results, rows=rows, stories={})


def _variant_label(label: str) -> str:
    """The name of the variant that mimics the paper.

    >>> _variant_label("lrp"), _variant_label("graphmask(variant=pyg)"), _variant_label("saliency")
    ('lrp(variant=captum)', 'graphmask(variant=pyg)', 'saliency')
    """
    return f"{label}(variant={MIMICKING_VARIANTS[label]})" if label in MIMICKING_VARIANTS else label


def _check_comparable(results: Results, variants: Results) -> None:
    """Raise `BadSetting` with the differences unless two runs were measured in the same way."""
    lines = list(islice(_list_differences(results, variants), _MAX_LISTED + 1))
    if lines:
        shown_lines = [*lines[:_MAX_LISTED], *(["and more"] if len(lines) > _MAX_LISTED else [])]
        raise BadSetting(
            "the run of variants was measured otherwise than the run it is to complete:"
            + "".join(f"\n  {line}" for line in shown_lines)
            + "\nMeasure the variants with the same tasks, networks, targets, settings and seed, "
            "and let both runs finish first."
        )


def _list_differences(results: Results, variants: Results) -> Iterator[str]:
    """A line for each setting, and for each task and network, in which two runs differ."""
    settings, variant_settings = results.settings.to_dict(), variants.settings.to_dict()
    yield from (
        f"the setting {name} is {settings[name]!r} and {variant_settings[name]!r}"
        for name in settings
        if settings[name] != variant_settings[name]
    )
    first, second = _explained_cases(results.rows), _explained_cases(variants.rows)
    for task_and_model in {**first, **second}:
        yield from _describe_difference(
            task_and_model, first.get(task_and_model, set()), second.get(task_and_model, set())
        )


def _explained_cases(rows: Iterable[Row]) -> dict[tuple[str, str], set[_Case]]:
    """The seed, target and occurrence of every explanation, for each task and network."""
    cases: dict[tuple[str, str], set[_Case]] = {}
    for row in rows:
        cases.setdefault((row.task, row.model), set()).add((row.seed, row.target, row.occurrence))
    return cases


def _describe_difference(
    task_and_model: tuple[str, str],
    cases: set[_Case],
    variant_cases: set[_Case],
) -> Iterator[str]:
    """How two sets of explanations of one task and network differ; nothing if they do not."""
    seeds, others = ({seed for seed, *_ in side} for side in (cases, variant_cases))
    if cases and variant_cases and seeds != others:
        yield f"{' '.join(task_and_model)}: the seed is {sorted(seeds)} and {sorted(others)}"
    elif cases != variant_cases:
        here, there = (
            f"{len(cases - variant_cases)} of {len(cases)}",
            f"{len(variant_cases - cases)} of {len(variant_cases)}",
        )
        yield f"{' '.join(task_and_model)}: {here} targets only here, {there} only there"
