"""The worst and the best explanations of the recommended explainer, with pictures and sentences where they can be made.

Explanations are ordered by their pertinence, the mean of both sides where both were measured, in the form that is judged. A run
that was read from a folder holds numbers only: pictures, curves and sentences need the results of this very process.
"""

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from graphgauge.core.errors import GraphgaugeError
from graphgauge.core.verdicts import FAIL, Verdict
from graphgauge.core.xplanation import Target, Xplanation
from graphgauge.evaluation import STATUSES, Results, Row, Story
from graphgauge.evaluation.results import Source
from graphgauge.guidelines.judging import explanation_verdicts
from graphgauge.guidelines.measures import SIDES
from graphgauge.guidelines.requirements import Requirements
from graphgauge.narrative import Names
from graphgauge.narrative.telling import all_names, textual_explanation
from graphgauge.report.bars import figure_height, plot_feature_bars
from graphgauge.report.curves import plot_deletion_curve
from graphgauge.report.html import svg_of
from graphgauge.report.labels import PLAIN
from graphgauge.report.subgraph import draw_explanation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Key = tuple[str, str, str, Target, int]  #: task, network, explainer, target, occurrence
EACH = 2  #: explanations at either end
TOP_EDGES, TOP_FEATURES = 15, 8
#: matplotlib measures texts with its own font; the page draws them with the reader's, which has more letters
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
    """What is needed to show explanations: ``given`` maps tidy names of explainers to those in the stories."""

    results: Results
    wanted: Requirements
    form: str
    given: Mapping[str, str]
    names: Names | Mapping[str, Any] | None = None
    language: str = "en"
    audience: str = "expert"

    @property
    def source(self) -> Source | None:
        """What made the results, if it is in memory."""
        return self.results.source

    def called(self) -> Names:
        """The names of nodes, features and classes."""
        return Names.read(self.names) if self.source is None else all_names(self.source.evaluator, self.names)

    def examples(self, task: str, explainer: str) -> list[Example]:
        """The worst, then the best explanations of an explainer on a task."""
        cases = cases_of(self.results, task, explainer)
        order = sorted(
            (key for key in cases if self.pertinence(cases[key]) is not None), key=lambda key: self.rank(key, cases[key])
        )
        each = min(EACH, len(order) // 2)
        ends = [*(("worst", key) for key in order[:each]), *(("best", key) for key in order[::-1][:each])]
        verdicts = self.verdicts([row for _, key in ends for row in cases[key]])
        return [self.example(end, key, cases[key], verdicts.get(key, [])) for end, key in ends]

    def verdicts(self, rows: list[Row]) -> dict[Key, list[Verdict]]:
        """The verdicts on single explanations, by explanation."""
        found: dict[Key, list[Verdict]] = {}
        for own in explanation_verdicts(Results(tuple(rows), self.results.settings), self.wanted) if rows else ():
            if own.target is not None:
                found.setdefault((own.task, own.model, own.explainer, own.target, own.occurrence), []).append(own)
        return found

    def pertinence(self, rows: list[Row]) -> float | None:
        """The mean of both sides; None where neither was measured."""
        found = [value_of(rows, f"{side}_{self.form}") for side in SIDES]
        own = [value for value in found if value is not None]
        return sum(own) / len(own) if own else None

    def rank(self, key: Key, rows: list[Row]) -> tuple[Any, ...]:
        """Pertinence; among equals, more edits are worse; then by name."""
        edits = [value_of(rows, f"{side}_ec") or 0.0 for side in SIDES]
        return self.pertinence(rows), -sum(edits), str(key)

    def example(self, end: str, key: Key, rows: list[Row], verdicts: list[Verdict]) -> Example:
        """One explanation, with all that can be shown of it."""
        task, model, explainer, target, _ = key
        missed = [own.reason for own in verdicts if own.outcome == FAIL]
        judged = {own.metric: (own.number, own.threshold, own.outcome != FAIL) for own in verdicts if own.threshold is not None}
        numbers = {row.metric: row.cell.value for row in rows if row.cell.value is not None}
        text, pictures = self.told(key, rows, judged)
        label = target_name(target, self.level, self.called())
        return Example(end, task, model, explainer, label, self.pertinence(rows) or 0.0, numbers, missed, text, pictures)

    @property
    def level(self) -> str:
        """Of targets; pairs are links, and without a model all others are nodes."""
        if self.source is not None:
            return str(self.source.evaluator.model.level)
        return "link" if any(isinstance(row.target, tuple) for row in self.results.rows[:1]) else "node"

    def told(self, key: Key, rows: list[Row], judged: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
        """Sentences and pictures; nothing where the explanation is not at hand."""
        given = (self.given.get(key[2], key[2]), key[3], key[4])
        if self.source is None or given not in self.source.explanations:
            return "", {}
        x, evaluator = self.source.explanations[given](), self.source.evaluator
        evaluator.fill(x, {row.metric: row.cell for row in rows})
        options = {"names": self.names, "language": self.language, "audience": self.audience}
        return attempted(textual_explanation, evaluator, x, **options, quality=judged) or "", self.pictures(x, given)

    def pictures(self, x: Xplanation, given: tuple[str, Target, int]) -> dict[str, str]:
        """The subgraph, the features, and the deletion curves."""
        names, model = self.called(), self.source.evaluator.model if self.source is not None else None
        made: dict[str, Callable[[Any], Any]] = {}
        if len(x.edges):
            made["The edges that matter"] = lambda ax: draw_explanation(x, model, names, TOP_EDGES, ax)
        made["The features that matter"] = lambda ax: plot_feature_bars(x, names, TOP_FEATURES, ax, data=model)
        for side, word in (("edge", "Edges removed, best first"), ("feature", "Features substituted, best first")):
            story = self.results.stories.get((given[0], given[1], given[2], side))
            if story is not None:
                made[word] = partial(drawn_story, story)
        drawn = {word: attempted(picture, draw, HEIGHTS[word]) for word, draw in made.items()}
        return {word: svg for word, svg in drawn.items() if svg}


def drawn_story(story: Callable[[], Story], ax: "Axes") -> None:
    """The deletion curve of a story, its legend above it, where it hides nothing."""
    plot_deletion_curve(story(), ax=ax)
    above = ax.legend(loc="lower center", bbox_to_anchor=(0.45, 1.0), ncols=2, frameon=False, fontsize=8)
    for text in above.get_texts():
        text.set(**PLAIN)


HEIGHTS = {
    "The edges that matter": 4.4,
    "The features that matter": figure_height(TOP_FEATURES) + 0.4,
    "Edges removed, best first": 3.1,
    "Features substituted, best first": 3.1,
}


def attempted(make: Callable[..., str], *args: Any, **options: Any) -> str | None:
    """What can be made; None where graphgauge says that it cannot (no scores, NaN ...)."""
    try:
        return make(*args, **options)
    except GraphgaugeError:
        return None


def picture(draw: Callable[["Axes"], Any], height: float) -> str:
    """A picture as SVG, narrow enough for a phone, without a title: the page says what it shows."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, height), layout="constrained")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", FONTS, UserWarning)
        draw(figure.subplots())
        figure.axes[0].set_title("")
        return svg_of(figure)


def cases_of(results: Results, task: str, explainer: str) -> dict[Key, list[Row]]:
    """The rows of each explanation; those of faults, which have no verdict, are left out."""
    found: dict[Key, list[Row]] = {}
    for row in results.rows:
        if (row.task, row.explainer) == (task, explainer) and row.cell.status in STATUSES:
            found.setdefault((row.task, row.model, row.explainer, row.target, row.occurrence), []).append(row)
    return found


def value_of(rows: list[Row], metric: str) -> float | None:
    """The value of a metric, if there is a finite one."""
    values = (row.cell.value for row in rows if row.metric == metric)
    return next((value for value in values if value is not None and math.isfinite(value)), None)


def target_name(target: Target, level: str, names: Names) -> str:
    """A target for people.

    >>> target_name(4, "node", Names(nodes={4: "Ada"})), target_name((4, 7), "link", Names(nodes={4: "Ada"}))
    ('node 4 (Ada)', 'link 4 (Ada) → 7')
    """
    kind = "graphs" if level == "graph" else "nodes"
    ends = [
        f"{end} ({name})" if (name := names.of_one(kind, end)) else str(end)
        for end in (target if isinstance(target, tuple) else (target,))
    ]
    return f"{level} {' → '.join(ends)}"
