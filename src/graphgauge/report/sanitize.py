"""Results with names that are safe to show: on one line, not too long, without invisible letters.

People name tasks, networks and explainers. A name can hold line breaks, control characters, marks
that turn the direction of the text around it, or ten thousand letters. A report tidies names once,
at the start, so that every sentence, table and picture shows the same ones. Names that become equal
get a number.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from graphgauge.evaluation import ExplanationKey, Results, Row
from graphgauge.narrative import tidy_text

_MAX_ROW_NAME = 100  #: characters of a name
_NAMELESS = "unnamed"


@dataclass(frozen=True)
class _SanitizedResults:
    """Results with tidy names, and the names as they were."""

    results: Results
    task: dict[str, str]  #: tidy -> given
    model: dict[str, str]
    explainer: dict[str, str]

    def original_key(self, key: ExplanationKey) -> ExplanationKey:
        """Return the key of an explanation with the names as they were before tidying."""
        return self.task[key[0]], self.model[key[1]], self.explainer[key[2]], *key[3:]


def sanitize_results(results: Results) -> _SanitizedResults:
    """Tidy the names of tasks, networks and explainers."""
    names_before = [
        dict.fromkeys(getattr(row, kind) for row in results.rows)
        for kind in ("task", "model", "explainer")
    ]
    task, model, explainer = map(tidy_names, names_before)
    rows = tuple(
        _rename_row(row, task[row.task], model[row.model], explainer[row.explainer])
        for row in results.rows
    )
    originals = (
        {tidied: name for name, tidied in names.items()} for names in (task, model, explainer)
    )
    return _SanitizedResults(replace(results, rows=rows), *originals)


def _rename_row(row: Row, task: str, model: str, explainer: str) -> Row:
    """Return a row under tidy names; the same object if nothing changes."""
    if (row.task, row.model, row.explainer) == (task, model, explainer):
        return row
    return replace(row, task=task, model=model, explainer=explainer)


def tidy_names(names: Iterable[str]) -> dict[str, str]:
    r"""Return the tidy name of each name. No two are equal; the empty name stays empty.

    >>> tidy_names(["lrp", "a\nb", "a b", "\x00", ""])
    {'lrp': 'lrp', 'a\nb': 'a b', 'a b': 'a b (2)', '\x00': 'unnamed', '': ''}
    """
    tidy_by_name: dict[str, str] = {}
    for name in names:
        plain = tidy_text(name, _MAX_ROW_NAME) or (_NAMELESS if name else "")
        taken, number, tried = set(tidy_by_name.values()), 1, plain
        while tried in taken:
            number += 1
            tried = f"{plain} ({number})"
        tidy_by_name[name] = tried
    return tidy_by_name
