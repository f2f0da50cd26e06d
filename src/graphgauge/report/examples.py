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

from graphgauge.core import FAIL, IDS_PER_LEVEL, BadFile, Target, Verdict, Xplanation, target_tuple
from graphgauge.evaluation import STATUSES, ExplanationKey, Results, ResultsSource, Row
from graphgauge.guidelines import SIDES, Requirements, judge_explanations
from graphgauge.narrative import (
    AUDIENCES,
    Names,
    NamesLike,
    complete_names,
    parse_audience,
    quality_facts,
    render_text,
)
from graphgauge.plots import (
    PLAIN_TEXT,
    CurveData,
    bars_figure_height,
    draw_bars,
    draw_deletion_curve,
    draw_subgraph,
    svg_of,
)
from graphgauge.report.saved_examples import TOP_FEATURES, SavedExample, build_saved_example
from graphgauge.report.score_table import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: explanations at either end; one where there are more than FEW tasks, for pictures take time
EXAMPLES_PER_END = 2
_FEW_TASKS = 3
_TIED_PERTINENCE = "pertinence_tied"
_CURVE_TITLES = {"edge": "Edges removed, best first", "feature": "Features substituted, best first"}
#: matplotlib measures texts with its own font; the page draws them with the reader's, which has
#: more letters
_FONT_WARNINGS = "Glyph .* missing from|Matplotlib currently does not support"


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
class ExampleBuilder:
    """Builds examples; ``given`` returns the key of an explanation before its names were tidied."""

    results: Results
    requirements: Requirements
    form: str
    original_key: Callable[[ExplanationKey], ExplanationKey]
    names: NamesLike = None
    language: str = "en"
    audience: str = "expert"

    @property
    def source(self) -> ResultsSource | None:
        """What made the results, if it is in memory."""
        return self.results.source

    @cached_property
    def resolved_names(self) -> Names:
        """The names of nodes, features and classes."""
        return (
            Names.from_value(self.names)
            if self.source is None
            else complete_names(self.source.evaluator, self.names)
        )

    def examples(self, task: str, explainer: str) -> list[Example]:
        """Return the worst, then the best explanations of an explainer on a task."""
        cases = self.cases.get((task, explainer), {})
        order = self.ordered(cases)
        each = min(
            EXAMPLES_PER_END if len({own for own, _ in self.cases}) <= _FEW_TASKS else 1,
            len(order) // 2,
        )
        ends = [
            *(("worst", key) for key in order[:each]),
            *(("best", key) for key in order[::-1][:each]),
        ]
        verdicts = self.verdicts([row for _, key in ends for row in cases[key]])
        return [self.example(end, key, cases[key], verdicts.get(key, [])) for end, key in ends]

    def ordered(self, cases: Mapping[ExplanationKey, list[Row]]) -> list[ExplanationKey]:
        """Return explanations with a pertinence, the worst first."""
        measured = (key for key, rows in cases.items() if self.pertinence(rows) is not None)
        return sorted(measured, key=lambda key: self.rank(key, cases[key]))

    def verdicts(self, rows: list[Row]) -> dict[ExplanationKey, list[Verdict]]:
        """Return the verdicts on single explanations, by explanation."""
        by_key: dict[ExplanationKey, list[Verdict]] = {}
        for verdict in (
            judge_explanations(Results(tuple(rows), self.results.settings), self.requirements)
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
        by_side = [_finite_value_of(rows, f"{side}_{self.form_of(side)}") for side in SIDES]
        known = [value for value in by_side if value is not None]
        return sum(known) / len(known) if known else None

    def form_of(self, side: str) -> str:
        """Return the form that orders a side: with ties counting half, if any row has it."""
        return _TIED_PERTINENCE if f"{side}_{_TIED_PERTINENCE}" in self.metrics else self.form

    @cached_property
    def metrics(self) -> set[str]:
        """The metrics that have rows."""
        return {row.metric for row in self.results.rows}

    def rank(self, key: ExplanationKey, rows: list[Row]) -> tuple[float | None, float, str]:
        """Return a key to sort by: pertinence, then edits (more is worse), then the name."""
        edits = [_finite_value_of(rows, f"{side}_ec") or 0.0 for side in SIDES]
        return self.pertinence(rows), -sum(edits), str(key)

    def example(
        self, end: str, key: ExplanationKey, rows: list[Row], verdicts: list[Verdict]
    ) -> Example:
        """Return one explanation with everything that can be shown of it.

        Args:
            end: "worst" or "best"; "" for an explanation that was not chosen by its rank.
            key: Task, network, explainer, target and occurrence of the explanation, with tidied
                names.
            rows: The rows of this explanation, one for each metric.
            verdicts: The verdicts on this explanation; those that fail are listed as missed.
        """
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
        if has_labels(self.results):
            return str(self.results.made["network"]["level"])
        return (
            "link"
            if any(isinstance(row.target, tuple) for row in self.results.rows[:1])
            else "node"
        )

    @cached_property
    def cases(self) -> dict[tuple[str, str], dict[ExplanationKey, list[Row]]]:
        """The rows of each explanation by task and explainer, without those of faults."""
        by_explainer: dict[tuple[str, str], dict[ExplanationKey, list[Row]]] = {}
        for row in self.results.rows:
            if row.cell.status in STATUSES:
                by_key = by_explainer.setdefault((row.task, row.explainer), {})
                by_key.setdefault(
                    (row.task, row.model, row.explainer, row.target, row.occurrence), []
                ).append(row)
        return by_explainer

    @cached_property
    def saved_records(self) -> Mapping[ExplanationKey, Mapping[str, Any]]:
        """The records of a saved run."""
        return self.results.kept()

    def explanations(self, keys: list[ExplanationKey]) -> dict[ExplanationKey, Xplanation]:
        """Make the explanations of one explainer that can be made, all in one batch."""
        originals = {key: self.original_key(key)[2:] for key in keys}
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
                self.source.explain_several(label, [original[1:] for original in known.values()]),
                strict=True,
            )
        )

    def exhibit(
        self, key: ExplanationKey, rows: list[Row], x: Xplanation | None = None
    ) -> SavedExample | None:
        """Return what can be shown of an explanation; None if it is not at hand.

        Args:
            key: Task, network, explainer, target and occurrence of the explanation, with tidied
                names.
            rows: The rows of this explanation. Their values become its metrics, unless it is read
                from a saved run.
            x: The explanation, if it has been made already; by default it is made again.
        """
        original = self.original_key(key)
        if self.source is None:
            return (
                _read_saved_example(self.saved_records[original])
                if original in self.saved_records
                else None
            )
        if original[2:] not in self.source.explanations:
            return None
        explanation = self.source.explanations[original[2:]]() if x is None else x
        loaders = [self.results.stories.get((*original[2:], side)) for side in _CURVE_TITLES]
        return build_saved_example(
            self.source.evaluator,
            explanation,
            rows,
            [story for story in loaders if story is not None],
            self.resolved_names,
        )

    def label(self, target: Target, exhibit: SavedExample | None) -> str:
        """Describe a target, with its name if it is known."""
        facts = None if exhibit is None else exhibit.facts
        if facts is None:
            return describe_target(target, self.level, self.resolved_names)
        named = dict(zip(facts["target"]["ids"], facts["target"]["names"], strict=True))
        return describe_target(
            target,
            facts["level"],
            Names(nodes=named, graphs=named, classes=self.resolved_names.classes),
        )

    @property
    def is_redacted(self) -> bool:
        """Whether neighbours stay unnamed for this audience."""
        return AUDIENCES[parse_audience(self.audience)]

    def text(self, exhibit: SavedExample, target: Target, judged: Record) -> str:
        """Write sentences about an explanation and the thresholds it misses; '' without facts.

        Args:
            exhibit: What can be shown of the explanation.
            target: The target that was explained; error messages name it.
            judged: {metric: (value, threshold, passed)}, from the verdicts.
        """
        facts = exhibit.redacted if self.is_redacted else exhibit.facts
        if facts is None:
            return ""
        return render_text(
            {**facts, "quality": quality_facts(judged, target)}, self.language, self.audience
        )

    def pictures(self, exhibit: SavedExample) -> dict[str, str]:
        """Draw the subgraph (unless neighbours stay unnamed), the features and deletion curves."""
        drawers: dict[str, Callable[[Any], Any]] = {}
        if exhibit.sketch is not None and not self.is_redacted:
            drawers["The edges that matter"] = partial(draw_subgraph, exhibit.sketch)
        if exhibit.bars is not None:
            drawers["The features that matter"] = partial(draw_bars, exhibit.bars)
        drawers |= {
            _CURVE_TITLES[curve.side]: partial(_draw_curve_with_legend, curve)
            for curve in exhibit.curves
        }
        return {word: _picture_svg(draw, _PICTURE_HEIGHTS[word]) for word, draw in drawers.items()}


def _draw_curve_with_legend(curve: CurveData, ax: "Axes") -> None:
    """Draw a deletion curve with its legend above it, where it hides nothing."""
    draw_deletion_curve(curve, ax)
    above = ax.legend(
        loc="lower center", bbox_to_anchor=(0.45, 1.0), ncols=2, frameon=False, fontsize=8
    )
    for text in above.get_texts():
        text.set(**PLAIN_TEXT)


_PICTURE_HEIGHTS = {
    "The edges that matter": 4.4,
    "The features that matter": bars_figure_height(TOP_FEATURES) + 0.4,
    _CURVE_TITLES["edge"]: 3.1,
    _CURVE_TITLES["feature"]: 3.1,
}


def _read_saved_example(record: Mapping[str, Any]) -> SavedExample:
    """Read what a run saved of an explanation; raise BadFile if that fails."""
    try:
        return SavedExample.from_record(record)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise BadFile(
            f"what the run has kept of an explanation cannot be read: {error!r}. "
            "Save the run again."
        ) from error


def _picture_svg(draw: Callable[["Axes"], object], height: float) -> str:
    """Draw a picture as SVG, narrow enough for a phone; the page gives the title."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, height), layout="constrained")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", _FONT_WARNINGS, UserWarning)
        draw(figure.subplots())
        figure.axes[0].set_title("")
        return svg_of(figure)


def _finite_value_of(rows: list[Row], metric: str) -> float | None:
    """Return the value of a metric, if there is a finite one."""
    values = (row.cell.value for row in rows if row.metric == metric)
    return next((value for value in values if value is not None and math.isfinite(value)), None)


def has_labels(results: Results) -> bool:
    """Whether targets name one of the labels of their network."""
    return bool(results.made.get("network", {}).get("labels"))


def describe_target(target: Target, level: str, names: Names) -> str:
    """Describe a target.

    >>> names = Names(nodes={4: "Ada"}, classes={7: "member"})
    >>> describe_target(4, "node", names), describe_target((4, 7), "link", names)
    ('node 4 (Ada)', 'link 4 (Ada) → 7')
    >>> describe_target((4, 7), "node", names)
    'node 4 (Ada), label 7 (member)'
    """
    kind, numbers = "graphs" if level == "graph" else "nodes", target_tuple(target)
    ids, labels = numbers[: IDS_PER_LEVEL[level]], numbers[IDS_PER_LEVEL[level] :]
    ends = [f"{end} ({name})" if (name := names.name_of(kind, end)) else str(end) for end in ids]
    label_texts = [
        f", label {label}" + (f" ({name})" if (name := names.name_of("classes", label)) else "")
        for label in labels
    ]
    return f"{level} {' → '.join(ends)}{''.join(label_texts)}"
