"""The worst and the best explanations of an explainer, with pictures and sentences.

Pertinence orders the explanations: the mean of both sides if both were measured. Ties with random
orders count half (`pertinence_tied`) wherever that was measured, whichever form is judged: an
explanation whose first edit changes everything ties with every random order that begins with the
same edit, and is among the best. Examples come from this process, or from what a saved run holds.
"""

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from graphgauge.core.errors import BadFile
from graphgauge.core.verdicts import FAIL, Verdict
from graphgauge.core.xplanation import WIDTH, Target, Xplanation, numbers_of
from graphgauge.evaluation import STATUSES, Results, Row
from graphgauge.evaluation.results import Key, Source
from graphgauge.guidelines.judging import explanation_verdicts
from graphgauge.guidelines.measures import SIDES
from graphgauge.guidelines.requirements import Requirements
from graphgauge.narrative import Names
from graphgauge.narrative.quality import quality_facts
from graphgauge.narrative.telling import AUDIENCES, all_names, read_audience, text_of
from graphgauge.report.bars import draw_bars, figure_height
from graphgauge.report.curves import Curve, draw_curve
from graphgauge.report.exhibits import TOP_FEATURES, Exhibit, exhibit_of
from graphgauge.report.html import svg_of
from graphgauge.report.labels import PLAIN
from graphgauge.report.subgraph import draw_sketch

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: explanations at either end; one where there are more than FEW tasks, for pictures take time
EACH = 2
FEW = 3
TIED = "pertinence_tied"
CURVES = {"edge": "Edges removed, best first", "feature": "Features substituted, best first"}
#: matplotlib measures texts with its own font; the page draws them with the reader's, which has
#: more letters
FONTS = "Glyph .* missing from|Matplotlib currently does not support"


@dataclass(frozen=True)
class Example:
    """One explanation at either end of the order."""

    end: str  #: "worst" or "best"
    task: str
    model: str
    explainer: str
    target: str
    pertinence: float
    numbers: dict[str, float]
    missed: list[str]  #: the thresholds it misses, as sentences
    text: str = ""
    pictures: dict[str, str] = field(default_factory=dict)  #: what it shows -> SVG


@dataclass(frozen=True)
class Stage:
    """Builds examples; ``given`` returns the key of an explanation before its names were tidied."""

    results: Results
    wanted: Requirements
    form: str
    given: Callable[[Key], Key]
    names: Names | Mapping[str, Any] | None = None
    language: str = "en"
    audience: str = "expert"

    @property
    def source(self) -> Source | None:
        """What made the results, if it is in memory."""
        return self.results.source

    @cached_property
    def called(self) -> Names:
        """The names of nodes, features and classes."""
        return (
            Names.read(self.names)
            if self.source is None
            else all_names(self.source.evaluator, self.names)
        )

    def examples(self, task: str, explainer: str) -> list[Example]:
        """Return the worst, then the best explanations of an explainer on a task."""
        cases = self.cases.get((task, explainer), {})
        order = self.ordered(cases)
        each = min(EACH if len({own for own, _ in self.cases}) <= FEW else 1, len(order) // 2)
        ends = [
            *(("worst", key) for key in order[:each]),
            *(("best", key) for key in order[::-1][:each]),
        ]
        verdicts = self.verdicts([row for _, key in ends for row in cases[key]])
        return [self.example(end, key, cases[key], verdicts.get(key, [])) for end, key in ends]

    def ordered(self, cases: Mapping[Key, list[Row]]) -> list[Key]:
        """Return explanations with a pertinence, the worst first."""
        measured = (key for key, rows in cases.items() if self.pertinence(rows) is not None)
        return sorted(measured, key=lambda key: self.rank(key, cases[key]))

    def verdicts(self, rows: list[Row]) -> dict[Key, list[Verdict]]:
        """Return the verdicts on single explanations, by explanation."""
        by_key: dict[Key, list[Verdict]] = {}
        for verdict in (
            explanation_verdicts(Results(tuple(rows), self.results.settings), self.wanted)
            if rows
            else ()
        ):
            if verdict.target is not None:
                by_key.setdefault(
                    (
                        verdict.task,
                        verdict.model,
                        verdict.explainer,
                        verdict.target,
                        verdict.occurrence,
                    ),
                    [],
                ).append(verdict)
        return by_key

    def pertinence(self, rows: list[Row]) -> float | None:
        """Return the mean pertinence of both sides; None if neither was measured."""
        by_side = [value_of(rows, f"{side}_{self.form_of(side)}") for side in SIDES]
        known = [value for value in by_side if value is not None]
        return sum(known) / len(known) if known else None

    def form_of(self, side: str) -> str:
        """Return the form that orders a side: with ties counting half, if any row has it."""
        return TIED if f"{side}_{TIED}" in self.metrics else self.form

    @cached_property
    def metrics(self) -> set[str]:
        """The metrics that have rows."""
        return {row.metric for row in self.results.rows}

    def rank(self, key: Key, rows: list[Row]) -> tuple[Any, ...]:
        """Return a key to sort by: pertinence, then edits (more is worse), then the name."""
        edits = [value_of(rows, f"{side}_ec") or 0.0 for side in SIDES]
        return self.pertinence(rows), -sum(edits), str(key)

    def example(self, end: str, key: Key, rows: list[Row], verdicts: list[Verdict]) -> Example:
        """Return one explanation with everything that can be shown of it."""
        task, model, explainer, target, _ = key
        missed = [verdict.reason for verdict in verdicts if verdict.outcome == FAIL]
        judged = {
            verdict.metric: (verdict.number, verdict.threshold, verdict.outcome != FAIL)
            for verdict in verdicts
            if verdict.threshold is not None
        }
        numbers = {row.metric: row.cell.value for row in rows if row.cell.value is not None}
        exhibit = self.exhibit(key, rows)
        text, pictures = (
            ("", {})
            if exhibit is None
            else (self.text(exhibit, target, judged), self.pictures(exhibit))
        )
        label = self.label(target, exhibit)
        return Example(
            end,
            task,
            model,
            explainer,
            label,
            self.pertinence(rows) or 0.0,
            numbers,
            missed,
            text,
            pictures,
        )

    @property
    def level(self) -> str:
        """What targets are; without a model, pairs are links and all others are nodes."""
        if self.source is not None:
            return str(self.source.evaluator.model.level)
        if is_labelled(self.results):
            return str(self.results.made["network"]["level"])
        return (
            "link"
            if any(isinstance(row.target, tuple) for row in self.results.rows[:1])
            else "node"
        )

    @cached_property
    def cases(self) -> dict[tuple[str, str], dict[Key, list[Row]]]:
        """The rows of each explanation by task and explainer, without those of faults."""
        by_explainer: dict[tuple[str, str], dict[Key, list[Row]]] = {}
        for row in self.results.rows:
            if row.cell.status in STATUSES:
                by_key = by_explainer.setdefault((row.task, row.explainer), {})
                by_key.setdefault(
                    (row.task, row.model, row.explainer, row.target, row.occurrence), []
                ).append(row)
        return by_explainer

    @cached_property
    def kept(self) -> Mapping[Key, Mapping[str, Any]]:
        """The records of a saved run."""
        return self.results.kept()

    def explanations(self, keys: list[Key]) -> dict[Key, Xplanation]:
        """Make the explanations of one explainer that can be made, all in one batch."""
        originals = {key: self.given(key)[2:] for key in keys}
        known = {
            key: original
            for key, original in originals.items()
            if self.source is not None and original in self.source.explanations
        }
        if self.source is None or not known:
            return {}
        label = next(iter(known.values()))[0]
        return dict(
            zip(
                known,
                self.source.several(label, [original[1:] for original in known.values()]),
                strict=True,
            )
        )

    def exhibit(self, key: Key, rows: list[Row], x: Xplanation | None = None) -> Exhibit | None:
        """Return what can be shown of an explanation; None if it is not at hand.

        ``x`` is the explanation, if it has been made already.
        """
        original = self.given(key)
        if self.source is None:
            return read_exhibit(self.kept[original]) if original in self.kept else None
        if original[2:] not in self.source.explanations:
            return None
        explanation = self.source.explanations[original[2:]]() if x is None else x
        loaders = [self.results.stories.get((*original[2:], side)) for side in CURVES]
        return exhibit_of(
            self.source.evaluator,
            explanation,
            rows,
            [story for story in loaders if story is not None],
            self.called,
        )

    def label(self, target: Target, exhibit: Exhibit | None) -> str:
        """Describe a target, with its name if it is known."""
        facts = None if exhibit is None else exhibit.facts
        if facts is None:
            return target_name(target, self.level, self.called)
        named = dict(zip(facts["target"]["ids"], facts["target"]["names"], strict=True))
        return target_name(
            target, facts["level"], Names(nodes=named, graphs=named, classes=self.called.classes)
        )

    @property
    def is_redacted(self) -> bool:
        """Whether neighbours stay unnamed for this audience."""
        return AUDIENCES[read_audience(self.audience)]

    def text(self, exhibit: Exhibit, target: Target, judged: Mapping[str, Any]) -> str:
        """Write sentences about an explanation and the thresholds it misses; '' without facts."""
        facts = exhibit.redacted if self.is_redacted else exhibit.facts
        if facts is None:
            return ""
        return text_of(
            {**facts, "quality": quality_facts(judged, target)}, self.language, self.audience
        )

    def pictures(self, exhibit: Exhibit) -> dict[str, str]:
        """Draw the subgraph (unless neighbours stay unnamed), the features and deletion curves."""
        drawers: dict[str, Callable[[Any], Any]] = {}
        if exhibit.sketch is not None and not self.is_redacted:
            drawers["The edges that matter"] = partial(draw_sketch, exhibit.sketch)
        if exhibit.bars is not None:
            drawers["The features that matter"] = partial(draw_bars, exhibit.bars)
        drawers |= {CURVES[curve.side]: partial(curve_with_key, curve) for curve in exhibit.curves}
        return {word: picture(draw, HEIGHTS[word]) for word, draw in drawers.items()}


def curve_with_key(curve: Curve, ax: "Axes") -> None:
    """Draw a deletion curve with its legend above it, where it hides nothing."""
    draw_curve(curve, ax)
    above = ax.legend(
        loc="lower center", bbox_to_anchor=(0.45, 1.0), ncols=2, frameon=False, fontsize=8
    )
    for text in above.get_texts():
        text.set(**PLAIN)


HEIGHTS = {
    "The edges that matter": 4.4,
    "The features that matter": figure_height(TOP_FEATURES) + 0.4,
    CURVES["edge"]: 3.1,
    CURVES["feature"]: 3.1,
}


def read_exhibit(record: Mapping[str, Any]) -> Exhibit:
    """Read what a run saved of an explanation; raise BadFile if that fails."""
    try:
        return Exhibit.read(record)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise BadFile(
            f"what the run has kept of an explanation cannot be read: {error!r}. "
            "Save the run again."
        ) from error


def picture(draw: Callable[["Axes"], Any], height: float) -> str:
    """Draw a picture as SVG, narrow enough for a phone; the page gives the title."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, height), layout="constrained")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", FONTS, UserWarning)
        draw(figure.subplots())
        figure.axes[0].set_title("")
        return svg_of(figure)


def value_of(rows: list[Row], metric: str) -> float | None:
    """Return the value of a metric, if there is a finite one."""
    values = (row.cell.value for row in rows if row.metric == metric)
    return next((value for value in values if value is not None and math.isfinite(value)), None)


def is_labelled(results: Results) -> bool:
    """Whether targets name one of the labels of their network."""
    return bool(results.made.get("network", {}).get("labels"))


def target_name(target: Target, level: str, names: Names) -> str:
    """Describe a target.

    >>> names = Names(nodes={4: "Ada"}, classes={7: "member"})
    >>> target_name(4, "node", names), target_name((4, 7), "link", names)
    ('node 4 (Ada)', 'link 4 (Ada) → 7')
    >>> target_name((4, 7), "node", names)
    'node 4 (Ada), label 7 (member)'
    """
    kind, numbers = "graphs" if level == "graph" else "nodes", numbers_of(target)
    ids, labels = numbers[: WIDTH[level]], numbers[WIDTH[level] :]
    ends = [f"{end} ({name})" if (name := names.of_one(kind, end)) else str(end) for end in ids]
    label_texts = [
        f", label {label}" + (f" ({name})" if (name := names.of_one("classes", label)) else "")
        for label in labels
    ]
    return f"{level} {' → '.join(ends)}{''.join(label_texts)}"
