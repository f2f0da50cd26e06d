"""Results whose names are safe to show anywhere: on one line, not too long, nothing invisible in
them.

Tasks, networks and explainers are named by people. A name can hold line breaks, control characters,
marks that turn the direction of the text around it, or ten thousand letters. Names are tidied once,
before anything is said about them, so that every sentence, table and picture of a report has the
same ones. Names that become equal get a number.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from graphgauge.evaluation import Results, Row
from graphgauge.evaluation.results import Key
from graphgauge.narrative.names import tidy

LONGEST = 100  #: characters of a name
NAMELESS = "unnamed"


@dataclass(frozen=True)
class Cleaned:
    """Results with tidy names, and the names as they were."""

    results: Results
    task: dict[str, str]  #: tidy -> given
    model: dict[str, str]
    explainer: dict[str, str]

    def given(self, key: Key) -> Key:
        """The name of an explanation before the names in it were tidied."""
        return self.task[key[0]], self.model[key[1]], self.explainer[key[2]], *key[3:]


def cleaned(results: Results) -> Cleaned:
    """Tidy every name of a task, a network and an explainer."""
    given = [
        dict.fromkeys(getattr(row, kind) for row in results.rows)
        for kind in ("task", "model", "explainer")
    ]
    task, model, explainer = map(tidy_names, given)
    rows = tuple(
        renamed(row, task[row.task], model[row.model], explainer[row.explainer])
        for row in results.rows
    )
    before = (
        {tidied: name for name, tidied in names.items()} for names in (task, model, explainer)
    )
    return Cleaned(replace(results, rows=rows), *before)


def renamed(row: Row, task: str, model: str, explainer: str) -> Row:
    """A row under tidy names; the same object where nothing changes."""
    if (row.task, row.model, row.explainer) == (task, model, explainer):
        return row
    return replace(row, task=task, model=model, explainer=explainer)


def tidy_names(names: Iterable[str]) -> dict[str, str]:
    r"""Given name -> tidy name, each once; no name stays no name.

    >>> tidy_names(["lrp", "a\nb", "a b", "\x00", ""])
    {'lrp': 'lrp', 'a\nb': 'a b', 'a b': 'a b (2)', '\x00': 'unnamed', '': ''}
    """
    found: dict[str, str] = {}
    for name in names:
        plain = tidy(name, LONGEST) or (NAMELESS if name else "")
        taken, number, tried = set(found.values()), 1, plain
        while tried in taken:
            number += 1
            tried = f"{plain} ({number})"
        found[name] = tried
    return found
