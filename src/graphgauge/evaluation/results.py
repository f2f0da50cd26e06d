"""Results: one row per explanation and metric, with a value or the reason why there is none."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from lzma import LZMAError
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphgauge.core import (
    BadFile,
    BadSetting,
    Target,
    UndefinedScore,
    UnknownName,
    Xplanation,
    is_on_front,
    lookup,
)
from graphgauge.evaluation.accuracy import ModelAccuracy, model_accuracy
from graphgauge.evaluation.explanation_set import ExplanationRebuilder
from graphgauge.evaluation.metric_names import HEADLINES, higher_is_better
from graphgauge.evaluation.metric_value import OK
from graphgauge.evaluation.result_files import (
    RUN_FILE,
    read_results_folder,
    write_examples,
    write_results,
)
from graphgauge.evaluation.result_row import (
    ROW_FIELDS,
    TABLE_COLUMNS,
    TEXT_COLUMNS,
    ExplanationKey,
    LocalExplanationKey,
    Row,
)
from graphgauge.evaluation.score_trace import ScoreTrace
from graphgauge.evaluation.settings import Settings
from graphgauge.explainers import number_occurrences
from graphgauge.metrics import MetricName
from graphgauge.models import digest_of_network

if TYPE_CHECKING:
    import pandas as pd

    from graphgauge.guidelines import Requirements
    from graphgauge.narrative import Names
    from graphgauge.report import Report

#: a summary also tells the shares of targets that flipped within so many edits
_FLIPPED_WITHIN = (10, 25, 100)
_SUMMARY_COLUMNS = ["mean", "sd", "n", "networks", "seeds", "sd_over", "missing"]
#: what the rows of one run have in common
_RUN_COLUMNS = ("task", "model", "seed")
_ExampleReader = Callable[[], Mapping[ExplanationKey, Mapping[str, Any]]]


@dataclass(frozen=True)
class ResultsSource:
    """What made results, while it is in memory: with it, single explanations can be shown. Those of
    `compare` are made again.
    """

    evaluator: Any
    explanations: Mapping[LocalExplanationKey, Callable[[], Xplanation]]
    #: those that explain again, by name
    explainers: Mapping[str, ExplanationRebuilder] = field(default_factory=dict)

    def explain_several(self, label: str, wanted: Sequence[tuple[Target, int]]) -> list[Xplanation]:
        """Explanations of one explainer, by target and occurrence, in one batch where they are made
        again.
        """
        if label not in self.explainers:
            return [self.explanations[label, target, number]() for target, number in wanted]
        times = {
            target: max(number for other, number in wanted if other == target) + 1
            for target, _ in wanted
        }
        asked = [target for target, number in times.items() for _ in range(number)]
        xs = self.explainers[label].explain(self.evaluator.model, asked)
        found = dict(zip(number_occurrences(asked), xs, strict=True))
        return [found[own] for own in wanted]


@dataclass(frozen=True, repr=False)
class Results:
    """What an `Evaluator` found: one row for each explanation and metric.

    Results come from `Evaluator.compare` and `Evaluator.evaluate`, from `load` or from `concat`;
    there is no need to construct them.

    Args:
        rows: One value each, or the reason why there is none.
        settings: The settings of the evaluation.
        stories: Functions that return the curves behind the numbers of this run, by explainer,
            target, occurrence and side ("edge" or "feature"). They are not saved.
        source: The evaluator and explanations while they are in memory, from which single
            explanations can be shown. They are not saved; None for results that were loaded.
        kept: Reads what a saved run holds of its worst and best explanations; see
            `graphgauge.report.saved_examples`. By default it holds none.
        made: The versions of packages, the device, and how the network was treated
            (`BaseModel.record`); empty if this is unknown.
        parts: The results that `concat` joined; empty for others.
        phase_seconds: What `costs` shows. It is not saved; empty for results that were loaded.

    >>> results
    Results(96 rows: 3 targets, explainers input_x_gradient, random)
    >>> results.headline()["edge_ec"].round(2).to_dict()  # how many removals change a prediction
    {'input_x_gradient': 1.33, 'random': 5.0}
    """

    rows: tuple[Row, ...]
    settings: Settings
    stories: Mapping[tuple[str, Target, int, str], Callable[[], ScoreTrace]] = field(
        default_factory=dict
    )
    source: ResultsSource | None = field(default=None, compare=False)
    kept: _ExampleReader = field(default=dict, compare=False)
    made: Mapping[str, Any] = field(default_factory=dict, compare=False)
    parts: "tuple[Results, ...]" = field(default=(), compare=False)
    phase_seconds: Mapping[tuple[str, str], float] = field(default_factory=dict, compare=False)

    @cached_property
    def accuracy(self) -> ModelAccuracy | None:
        """How good the network is at its task: as it was saved, else measured on the labels in the
        data; None: not known.
        """
        if self.made.get("accuracy") is not None or self.source is None:
            return ModelAccuracy.from_value(self.made.get("accuracy"))
        model = self.source.evaluator.model
        is_same = digest_of_network(model) == self.made.get("identity", {}).get("network")
        return model_accuracy(model) if is_same else None

    def with_accuracy(self, accuracy: Any) -> "Results":
        """The same results with a stated score of the network.

        Args:
            accuracy: How good the network is at its task: a share such as 0.81, a mapping such as
                ``{"name": "R²", "value": 0.64}``, or a `ModelAccuracy`. With None the results stay
                as they are.
        """
        found = ModelAccuracy.from_value(accuracy)
        return (
            self if found is None else replace(self, made={**self.made, "accuracy": found.record()})
        )

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        explainers = list(dict.fromkeys(row.explainer for row in self.rows))
        targets = {row.target for row in self.rows}
        return (
            f"Results({len(self.rows)} rows: {len(targets)} targets, explainers "
            f"{', '.join(explainers)})"
        )

    def __add__(self, other: object) -> "Results":
        """The rows of both, as by `concat`."""
        if not isinstance(other, Results):
            return NotImplemented
        from graphgauge.evaluation.concatenation import concat  # it imports this file

        return concat([self, other])

    def to_pandas(self) -> "pd.DataFrame":
        """One row per (task, model, explainer, target, metric)."""
        return self.table.copy()

    @cached_property
    def table(self) -> "pd.DataFrame":
        """What `to_pandas` gives copies of. Texts are Python's own: those of Arrow cannot hold
        every name.
        """
        import pandas as pd

        cells = [row.cell for row in self.rows]
        held = {
            name: [getattr(own, name) for own in (self.rows if name in ROW_FIELDS else cells)]
            for name in TABLE_COLUMNS
        }
        table = pd.DataFrame(
            {
                name: pd.Series(own, dtype=object if name in TEXT_COLUMNS else None)
                for name, own in held.items()
            }
        )
        return table.astype({"value": "float64", "error": "float64", "seconds": "float64"})

    def values(self, metric: str, explainer: str | None = None) -> "pd.Series":
        """The values of one metric, without the rows that have none.

        Args:
            metric: Name of the metric, such as "edge_ec".
            explainer: Name of the explainer; by default the values of all explainers.

        Returns:
            The values, indexed by the number of their row.

        Raises:
            UnknownName: No row has this metric.

        >>> results.values("edge_ec", "input_x_gradient").tolist()
        [2.0, 1.0, 1.0]
        """
        table = self.to_pandas()
        self.check_metric(metric)
        chosen = table[(table["metric"] == metric) & (table["status"] == OK)]
        return (chosen if explainer is None else chosen[chosen["explainer"] == explainer])["value"]

    def check_metric(self, metric: str) -> None:
        """Raise UnknownName if no row has this metric.

        Args:
            metric: Name of the metric.
        """
        lookup(dict.fromkeys(row.metric for row in self.rows), metric, "metric of these results")

    def summary(self) -> "pd.DataFrame":
        """Mean and SD of each explainer and metric, over what is replicated: networks, else seeds,
        else targets.

        Values are averaged over the targets of each network and seed first, then over the seeds of
        each network, and then over networks, a network being a name within a task. ``sd`` is the SD
        of the last step that has several values, which ``sd_over`` names; ``n`` counts the
        explanations with a value, ``networks`` and ``seeds`` where they are from; ``missing``
        counts those without a value, with the reasons.
        """
        import pandas as pd

        table = pd.concat([self.to_pandas(), self.flip_rows()], ignore_index=True)
        lines = [
            _summary_line(name, part)
            for name, part in table.groupby(["explainer", "metric"], sort=False)
        ]
        found = pd.DataFrame(lines, columns=["explainer", "metric", *_SUMMARY_COLUMNS])
        return found.set_index(["explainer", "metric"])

    def with_seeds_as_networks(self) -> "Results":
        """The same rows, the seed being part of a network's name wherever one network was evaluated
        with several seeds.
        """
        seeds: dict[tuple[str, str], set[int]] = {}
        for row in self.rows:
            seeds.setdefault((row.task, row.model), set()).add(row.seed)
        if all(len(own) == 1 for own in seeds.values()):
            return self

        def renamed(row: Row) -> Row:
            several = len(seeds[row.task, row.model]) > 1
            return (
                replace(row, model=f"{row.model}, seed {row.seed}".removeprefix(", "))
                if several
                else row
            )

        return replace(self, rows=tuple(map(renamed, self.rows)))

    def headline(self) -> "pd.DataFrame":
        """The means that matter most, a row for each explainer: the paper's seven numbers, or their
        calibrated twins.
        """
        means = self.summary()["mean"].unstack("metric")
        order = list(dict.fromkeys(row.explainer for row in self.rows))
        return means.reindex(
            index=order,
            columns=[name for name in HEADLINES[self.settings.headline] if name in means.columns],
        )

    def flip_rows(self) -> "pd.DataFrame":
        """Whether each explanation flips within 10, 25 and 100 edits, as rows of values 0 and 1."""
        table = self.to_pandas()
        ecs = table[table["metric"].isin(["edge_ec", "feature_ec"]) & (table["status"] == OK)]
        parts = []
        for k in (k for k in _FLIPPED_WITHIN if k <= self.settings.cap):
            part = ecs.copy()
            part["metric"] = [
                str(MetricName(MetricName.parse(name).side, "flipped", str(k)))
                for name in ecs["metric"]
            ]
            part["value"] = (ecs["flipped"].astype(bool) & (ecs["value"] <= k)).astype(float)
            parts.append(part)
        import pandas as pd

        return pd.concat(parts) if parts else ecs.iloc[:0]

    def flip_curve(self, side: str = "edge") -> "pd.DataFrame":
        """Share of targets whose prediction changed within k edits, k = 1..cap.

        Args:
            side: "edge" counts removed edges, "feature" counts substituted features.

        Returns:
            A row for each k and a column for each explainer.

        >>> results.flip_curve().loc[10].round(2).to_dict()
        {'input_x_gradient': 1.0, 'random': 0.67}
        """
        import pandas as pd

        table = self.to_pandas()
        ecs = table[(table["metric"] == f"{_check_side(side)}_ec") & (table["status"] == OK)]
        steps = range(1, self.settings.cap + 1)
        shares = {
            name: [
                float((part["flipped"].astype(bool) & (part["value"] <= k)).mean()) for k in steps
            ]
            for name, part in ecs.groupby("explainer", sort=False)
        }
        return pd.DataFrame(shares, index=pd.Index(steps, name="k"))

    def fidelity_curve(self, side: str = "edge", form: str = "plus") -> "pd.DataFrame":
        """Mean fidelity where the top edits are 10, 20 .. 90 % of the candidates.

        Needs an evaluation with ``extras=True``.

        Args:
            side: "edge" or "feature".
            form: "plus" makes the top edits, "minus" makes all others.

        Returns:
            A row for each share of candidates, 0.1 to 0.9, and a column for each explainer.

        Raises:
            BadSetting: The side or the form is unknown.
            UnknownName: The evaluation did not measure fidelity.
        """
        import pandas as pd

        if form not in ("plus", "minus"):
            raise BadSetting(f"form must be 'plus' or 'minus', but {form!r} was given.")
        metric = f"{_check_side(side)}_fidelity_{form}_auc"
        self.check_metric(metric)
        found: dict[str, list[tuple[float, ...]]] = {}
        for row in self.rows:
            if row.metric == metric and row.cell.per_level is not None:
                found.setdefault(row.explainer, []).append(row.cell.per_level)
        means = {
            name: [sum(level) / len(level) for level in zip(*own, strict=True)]
            for name, own in found.items()
        }
        return pd.DataFrame(means, index=pd.Index([k / 10 for k in range(1, 10)], name="share"))

    def costs(self) -> "pd.DataFrame":
        """The seconds that each explainer took in this process, by phase.

        The explanations of all explainers are compared with the same random curves, and their own
        curves are measured in one pass with each other: the row "shared" has these seconds. What
        was not measured again, such as values that an explanation carried, costs nothing. The
        seconds are not saved.

        Returns:
            A row for each explainer, then "shared", with the seconds of each phase and their
            "total".

        Raises:
            UndefinedScore: The results were loaded.

        >>> results.costs().index.tolist()
        ['input_x_gradient', 'random', 'shared']
        """
        from graphgauge.evaluation.phases import cost_table  # it imports what imports this file

        if not self.phase_seconds:
            raise UndefinedScore(
                "these results do not say what they cost: seconds are known in the process that "
                "measured, and are not saved. The metric 'time' is."
            )
        return cost_table(self.phase_seconds)

    def pareto(self, first: str, second: str) -> "pd.DataFrame":
        """Means of two metrics for each explainer, and whether it is on the Pareto front.

        An explainer is on the front if no other is at least as good in both metrics and better in
        one.

        Args:
            first: Name of one metric, such as "edge_ec".
            second: Name of the other metric.

        Returns:
            A row for each explainer that has both means; the column "front" is True on the front.

        Raises:
            UnknownName: A metric is not in these results.

        >>> results.pareto("edge_ec", "feature_ec")["front"].to_dict()
        {'input_x_gradient': True, 'random': False}
        """
        means = self.summary()["mean"].unstack("metric")
        for metric in (first, second):
            lookup(dict.fromkeys(means.columns), metric, "metric of these results")
        both = means[[first, second]].dropna()
        signs = [1 if higher_is_better(metric) else -1 for metric in (first, second)]
        both["front"] = is_on_front(both.to_numpy() * signs)
        return both

    def explain(self, row: Any) -> ScoreTrace:
        """The curves and counts behind a row.

        Args:
            row: The row, its number, or a mapping with its explainer, target and metric, such as a
                row of `to_pandas`.

        Raises:
            UnknownName: There are no curves: the metric has none, the results were loaded, or the
                explanation carried its values from an earlier call.

        >>> results.explain(0).cases[0].ec  # removals that change the prediction
        2
        """
        found = self.rows[row] if isinstance(row, int) else row
        record = found.record() if isinstance(found, Row) else found
        side = MetricName.parse(str(record["metric"])).side
        target = record["target"]
        key = (
            str(record["explainer"]),
            target if isinstance(target, tuple) else int(target),
            int(record.get("occurrence", 0)),
            side,
        )
        for part in self.parts:
            run = part.rows[0] if part.rows else None
            if key in part.stories and all(
                record.get(name, getattr(run, name)) == getattr(run, name) for name in _RUN_COLUMNS
            ):
                return part.stories[key]()
        if key not in self.stories:
            raise UnknownName(
                f"there are no curves behind {record['metric']} of {key[0]} for target {key[1]}: "
                "only Effective Compactness and Pertinence have curves, where they have a value, "
                "in the call that measured them (not where x.metrics had them)."
            )
        return self.stories[key]()

    def save(self, folder: str | os.PathLike[str], names: Any = None) -> None:
        """Write ``rows.csv`` (numbers to the last bit), ``settings.json``, ``made.json`` and
        ``examples.json``.

        Examples are the worst and the best explanations of each explainer with what a report shows
        of them. All other explanations and curves stay in memory.

        Args:
            folder: The folder to write to. It is made if it does not exist.
            names: What examples call nodes, features and classes: `Names`, or a dictionary of its
                fields; what is missing is taken from the data. Loaded results keep the names that
                they were saved with.

        Raises:
            BadFile: The folder cannot be written.
            BadSetting: Names refer to things that the data do not have.
        """
        from graphgauge.report import collect_example_records

        try:
            write_results(self, Path(folder))
            write_examples(Path(folder), collect_example_records(self, names))
        except OSError as error:
            raise BadFile(f"{os.fspath(folder)} could not be written: {error}.") from error

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the table of `to_pandas` as Parquet; targets and lists as JSON texts.

        Args:
            path: The file to write.

        Raises:
            MissingExtra: Neither polars nor pyarrow is installed.
            BadFile: The file cannot be written.
        """
        from graphgauge.evaluation.parquet import to_parquet

        to_parquet(self, path)

    def report(
        self,
        requirements: "Requirements | None" = None,
        accuracy: "ModelAccuracy | float | Mapping[str, Any] | None" = None,
        names: "Names | Mapping[str, Any] | None" = None,
        *,
        title: str = "Quality of explanations",
        language: str = "en",
        audience: str = "expert",
        run: str | os.PathLike[str] | None = None,
    ) -> "Report":
        """One page for everybody: the verdict first, then the numbers.

        Args:
            requirements: What the use asks of explanations; the paper's thresholds by default.
            accuracy: How good the model is at its task, where the labels in its data do not tell: a
                share such as 0.81, or ``{"name": "R²", "value": 0.64, "interval": [0.58, 0.7]}``.
            names: What nodes, features and classes are called; what is missing is taken from the
                data. The explanations that a saved run has kept have the names it was saved with.
            title: Heading of the page.
            language: Language of the sentences on single explanations.
            audience: Whom these sentences are for.
            run: The folder that the results were read from; the page states its facts, too.

        Returns:
            A report: ``.save("report.html")`` writes it, notebooks show it.
        """
        from graphgauge.report import build_report

        return build_report(
            self,
            requirements,
            accuracy,
            names,
            title=title,
            language=language,
            audience=audience,
            run=run,
        )

    def _repr_html_(self) -> str:
        from graphgauge.report import results_html

        return results_html(self)

    @staticmethod
    def load(folder: str | os.PathLike[str]) -> "Results":
        """Read what `save` wrote, or a benchmark run, finished or not, or a published one.

        Args:
            folder: The folder of the run.

        Raises:
            BadFile: The folder holds no results.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     results.save(folder)
        ...     gg.Results.load(folder)
        Results(96 rows: 3 targets, explainers input_x_gradient, random)
        """
        place = Path(folder)
        if (place / RUN_FILE).exists():
            from graphgauge.benchmark import read_results

            return read_results(place)
        try:
            return read_results_folder(place)
        except (OSError, LookupError, ValueError, TypeError, EOFError, LZMAError) as error:
            raise BadFile(
                f"{os.fspath(folder)} holds no results that graphgauge saved: {error}."
            ) from error


def _summary_line(name: Any, part: "pd.DataFrame") -> tuple[Any, ...]:
    """One explainer and metric: the columns of `_SUMMARY_COLUMNS`."""
    good = part[part["status"] == OK]
    runs = good.groupby([*_RUN_COLUMNS])["value"].mean()
    networks = runs.groupby(["task", "model"]).mean()
    steps = {"networks": networks, "seeds": runs, "targets": good["value"]}
    over = next((unit for unit, values in steps.items() if len(values) > 1), "targets")
    missing = part[part["status"] != OK]["status"].value_counts()
    told = ", ".join(f"{count} {reason}" for reason, count in missing.items())
    mean = networks.mean() if len(networks) else float("nan")
    return (
        *name,
        mean,
        steps[over].std(ddof=1),
        len(good),
        len(networks),
        good["seed"].nunique(),
        over,
        told,
    )


def _check_side(side: str) -> str:
    """Refuse what is not a side."""
    if side not in ("edge", "feature"):
        raise BadSetting(f"side must be 'edge' or 'feature', but {side!r} was given.")
    return side
