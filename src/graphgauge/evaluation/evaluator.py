"""The Evaluator: explanations of many targets by many explainers in, every metric out.

    results = Evaluator(model, preset="paper", seed=0).compare([InputXGradient(), GNNExplainer()], targets)

Targets, explainers, references, trials and steps are axes of the same tensors: random curves are made once per target (and
reference) and serve every explainer. Seeds derive from what a draw is for, so that no number depends on which other targets or
explainers take part, on the batch size or on the number of threads.
"""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

import graphgauge
from graphgauge.core.errors import BadExplanation, GraphgaugeWarning
from graphgauge.core.progress import advance, progress
from graphgauge.core.seeds import check_seed, derive_seed
from graphgauge.core.xplanation import Target, Xplanation
from graphgauge.evaluation.alignment import edge_scores, feature_scores, priority
from graphgauge.evaluation.cells import Cell, missing
from graphgauge.evaluation.entries import Entry, grouped_by_explainer, labelled, split_by_occurrence
from graphgauge.evaluation.identity import digest_of_model, digest_of_scores
from graphgauge.evaluation.repetition import stability_cells
from graphgauge.evaluation.results import Results, Row
from graphgauge.evaluation.sampling import sample_targets
from graphgauge.evaluation.settings import Settings, settings_of
from graphgauge.evaluation.sides import Judged, Reading, Side, judged
from graphgauge.evaluation.substitution import feature_side
from graphgauge.evaluation.timing import seconds_alone
from graphgauge.explainers import OtherTaskExplainer
from graphgauge.explainers.base import check_wrapped
from graphgauge.models import BaseModel, ComputationGraphs
from graphgauge.models.computation import ComputationGraph
from graphgauge.perturbation import EdgeEdits, References, find_references, orders_by_score

MOST_HEIGHTS = 2**25  #: heights of random curves held at a time; targets are judged in groups of so many
RECORD = "evaluation"  #: where `Xplanation.metrics` keeps what is needed not to measure again


@dataclass(frozen=True, init=False)
class Evaluator:
    """Measures explanations of ``model``. Any setting can be given by name: ``Evaluator(model, edge_removal="drop", cap=50)``.

    ``task`` and ``name`` are written into every row, and into seeds: what differs in them draws different random numbers.
    """

    model: BaseModel
    settings: Settings
    seed: int
    task: str
    name: str

    def __init__(
        self, model: BaseModel, preset: str = "paper", seed: int = 0, *, task: str = "", name: str = "", **settings: Any
    ) -> None:
        check_wrapped(model)
        chosen = settings_of(preset, **{"edge_scope": model.edge_scope, **settings})
        values = {"model": model, "settings": chosen, "seed": check_seed(seed), "task": task, "name": name}
        for field, value in values.items():
            object.__setattr__(self, field, value)

    def compare(self, explainers: Any, targets: Any) -> Results:
        """Explain ``targets`` with each explainer (one, a list, or a dictionary of names) and evaluate."""
        named = labelled(explainers)
        with self.model.session():
            asked = self.model.asked(self.model.read(targets))
            with progress(len(named) * len(asked) * 2 + len(asked) * 2, "compare"):
                entries = []
                for label, explainer in named.items():
                    xs = explainer.explain(self.model, asked, seed=self.seed)
                    advance(len(asked))
                    entries += split_by_occurrence(label, explainer, xs)
                return self.evaluated(entries)

    def evaluate(self, xs: Xplanation | Iterable[Xplanation]) -> Results:
        """Score explanations, from `explain` or from elsewhere, and fill their ``metrics``."""
        given = [xs] if isinstance(xs, Xplanation) else list(xs)
        self.check_explanations(given)
        entries = grouped_by_explainer(given)
        with self.model.session(), progress(sum(len(entry.xs) for entry in entries) + 2 * len(given), "evaluate"):
            return self.evaluated(entries)

    def sample(self, count: int, among: Any = None) -> list[Target]:
        """Targets spread over predicted classes and over how sure the model is; see `sample_targets`."""
        return sample_targets(self.model, count, among, derive_seed(self.seed, self.task, self.name))

    def check_explanations(self, xs: Sequence[Any]) -> None:
        """Refuse what are not explanations of this model's data."""
        for x in xs:
            if not isinstance(x, Xplanation):
                raise BadExplanation(f"evaluate needs explanations (gg.Xplanation), but got {type(x).__name__}.")
            if x.level != self.model.level:
                raise BadExplanation(f"the model has {self.model.level} targets, but an explanation is of a {x.level}.")

    # --- how it is done ----------------------------------------------------------------------------------------------

    def evaluated(self, entries: list[Entry]) -> Results:
        """All metrics of all entries; what an explanation carries for these very settings is taken from it."""
        known = {(k, t): self.stored(x) for k, entry in enumerate(entries) for t, x in entry.xs.items()}
        fresh = [
            Entry(entry.label, entry.occurrence, entry.explainer, {t: x for t, x in entry.xs.items() if known[k, t] is None})
            for k, entry in enumerate(entries)
        ]
        cells, stories = self.measured(fresh)
        rows: list[Row] = []
        for k, entry in enumerate(entries):
            for target, x in entry.xs.items():
                old = known[k, target]
                own = old if old is not None else cells[k, target]
                self.fill(x, own)
                rows += [self.row(entry, x, metric, cell) for metric, cell in own.items()]
        return Results(tuple(rows), self.settings, stories)

    def measured(self, entries: list[Entry]) -> tuple[dict[tuple[int, Target], dict[str, Cell]], dict[Any, Any]]:
        """Cells of every entry and target, and the stories behind them."""
        targets = list(dict.fromkeys(target for entry in entries for target in entry.xs))
        cells: dict[tuple[int, Target], dict[str, Cell]] = {
            (k, target): {} for k, entry in enumerate(entries) for target in entry.xs
        }
        stories: dict[Any, Any] = {}
        if targets:
            self.add_curves(entries, targets, cells, stories)
        for k, entry in enumerate(entries):
            self.add_stability(entry, k, cells)
            self.add_time(entry, k, cells)
        return cells, stories

    def add_curves(self, entries: list[Entry], targets: list[Target], cells: Any, stories: Any) -> None:
        """EC, pertinence and their twins, in groups of targets."""
        references = find_references(self.model, targets, self.settings.medoids)
        most = max(1, int(references.count().max()) if len(references) else 1) * self.settings.trials[1] * self.settings.cap
        size = max(1, MOST_HEIGHTS // most)
        for start in range(0, len(targets), size):
            group = targets[start : start + size]
            own = references_of(references, start, start + len(group))
            graphs = self.model.computation_graphs(group, self.settings.edge_scope)
            reading = Reading.of(self.model, self.model.asked(graphs.target), self.settings)
            for name, found, status in (
                ("edge", *self.edge_curves(entries, group, graphs, reading)),
                ("feature", *self.feature_curves(entries, group, graphs, reading, own)),
            ):
                self.write_curves(name, found, status, entries, group, cells, stories)
                advance(len(group))

    def edge_curves(
        self, entries: list[Entry], targets: list[Target], graphs: ComputationGraphs, reading: Reading
    ) -> tuple[Judged | None, list[list[str]]]:
        """What was judged of the edges, and why (target, entry) was not."""
        status = [
            [entry.status(target, "edge", len(graph.edges)) for entry in entries]
            for target, graph in zip(targets, graphs, strict=True)
        ]
        if self.settings.edge_removal == "mask" and self.model.mask_support != "exact":
            if any(len(graph.edges) for graph in graphs):
                tell_no_mask(self.model)
            return None, [[why or "no_mask" for why in row] for row in status]
        valid = is_valid(status, graphs.node.device)
        used = valid.any(1).nonzero()[:, 0]
        if not len(used):
            return None, status
        edits = EdgeEdits.of(self.model, graphs.take(used), self.settings.edge_removal, self.settings.removal_unit)
        seeds = [self.seed_of(targets[k], "edges") for k in used.tolist()]
        order = torch.full((len(targets), len(entries), self.settings.cap), -1, device=graphs.node.device)
        for e, entry in enumerate(entries):
            parts = [
                edge_scores(entry.xs[targets[k]], graphs[k]) if not status[k][e] else graphs[k].x.new_zeros(len(graphs[k].edges))
                for k in used.tolist()
            ]
            score = self.ranked(edits.unit_scores(torch.cat(parts)))
            order[used, e] = orders_by_score(score, edits.num_units, seeds, self.settings.cap)
        side = Side(edits, used, seeds, [None] * len(used), torch.zeros_like(used))
        return judged(self.model, side, order, valid, reading, self.settings), status

    def feature_curves(
        self, entries: list[Entry], targets: list[Target], graphs: ComputationGraphs, reading: Reading, references: References
    ) -> tuple[Judged | None, list[list[str]]]:
        """What was judged of the features, and why (target, entry) was not."""
        has_reference = references.count().tolist()
        status = [
            [entry.status(t, "feature", graphs.source.x.size(1)) or ("" if has else "no_reference") for entry in entries]
            for t, has in zip(targets, has_reference, strict=True)
        ]
        valid = is_valid(status, graphs.node.device)
        if not bool(valid.any()):
            return None, status
        side = feature_side(self.model, graphs, references, reading, self.settings, partial(self.reference_seed, targets))
        seeds = [self.seed_of(target, "features") for target in targets]
        count = torch.bincount(side.target, minlength=len(targets)) > 0
        order = torch.full((len(targets), len(entries), self.settings.cap), -1, device=graphs.node.device)
        for e, entry in enumerate(entries):
            rows = [k for k in range(len(targets)) if not status[k][e] and bool(count[k])]
            parts = [
                priority(feature_scores(entry.xs[targets[k]], graphs[k]), graphs[k].target_rows, self.settings.pooling)
                for k in rows
            ]
            if rows:
                sizes = torch.tensor([len(part) for part in parts], device=graphs.node.device)
                score = self.ranked(torch.cat(parts))
                order[rows, e] = orders_by_score(score, sizes, [seeds[k] for k in rows], self.settings.cap)
        return judged(self.model, side, order, valid, reading, self.settings), status

    def priority(self, x: Xplanation, graph: ComputationGraph) -> Tensor:
        """One score for each candidate of the features.  (candidates,)"""
        return priority(feature_scores(x, graph), graph.target_rows, self.settings.pooling)

    def ranked(self, score: Tensor) -> Tensor:
        """Scores as they sort: signed, or by magnitude."""
        return score.abs() if self.settings.order == "magnitude" else score

    def write_curves(
        self,
        side: str,
        found: Judged | None,
        status: list[list[str]],
        entries: list[Entry],
        targets: list[Target],
        cells: Any,
        stories: Any,
    ) -> None:
        """One cell for each entry, target and metric of a side."""
        names = curve_metrics(side, self.model.task, self.settings)
        for t, target in enumerate(targets):
            for e, entry in enumerate(entries):
                if target not in entry.xs:
                    continue
                why = status[t][e]
                if why or found is None:
                    cells[e, target].update({f"{side}_{name}": missing(why) for name in names})
                    continue
                own = {f"{side}_{name}": curve_cell(found, name, t, e) for name in names}
                cells[e, target].update(own)
                if own[f"{side}_ec"].value is not None:
                    key = (entry.label, target, entry.occurrence, side)
                    stories[key] = partial(told, found, side, entry.label, e, target, t)

    def add_stability(self, entry: Entry, k: int, cells: Any) -> None:
        """Stability of both sides; only what can be run again has one."""
        names = [
            f"{side}_stability{twin}" for side in ("feature", "edge") for twin in ("", *(["_corrected"] * self.settings.twins))
        ]
        targets = list(entry.xs)
        if entry.explainer is None or isinstance(entry.explainer, OtherTaskExplainer):
            why = "no_explainer" if entry.explainer is None else "no_scores"
            for target in targets:
                cells[k, target].update(dict.fromkeys(names, missing(why)))
            return
        seed = derive_seed(self.seed, self.task, self.name, entry.occurrence)
        found = stability_cells(entry.explainer, self.model, targets, self.settings, seed)
        for target in targets:
            cells[k, target].update(found[target])

    def add_time(self, entry: Entry, k: int, cells: Any) -> None:
        """Seconds of one explanation alone, for the first few targets, and the share of the batch."""
        timed = list(entry.xs)[: self.settings.timed] if entry.occurrence == 0 else []
        found = [] if entry.explainer is None else seconds_alone(entry.explainer, self.model, timed, self.seed)
        seconds = dict(zip(timed, found, strict=False))
        for target, x in entry.xs.items():
            why = "no_explainer" if entry.explainer is None else "not_timed"
            cells[k, target]["time"] = Cell(seconds[target]) if target in seconds else missing(why)
            cells[k, target]["time_batched"] = missing("no_explainer") if x.seconds is None else Cell(x.seconds)

    def row(self, entry: Entry, x: Xplanation, metric: str, cell: Cell) -> Row:
        """One row of the results."""
        return Row(
            task=self.task,
            model=self.name,
            explainer=entry.label,
            target=x.target,
            occurrence=entry.occurrence,
            metric=metric,
            cell=cell,
            seconds=x.seconds,
            seed=self.seed,
            settings=self.settings.digest,
            version=graphgauge.__version__,
        )

    # --- seeds, and what has been measured before --------------------------------------------------------------------

    def seed_of(self, target: Target, *purpose: Any) -> int:
        """The seed of what is drawn for one target."""
        return derive_seed(self.seed, self.task, self.name, target, *purpose)

    def reference_seed(self, targets: list[Target], t: int, reference: Any, purpose: str) -> int:
        """The seed of what is drawn for one target and reference."""
        return self.seed_of(targets[t], "features", reference, purpose)

    def key(self, x: Xplanation) -> str:
        """What must be the same for a stored number to hold: settings, seed, names, explainer, network, data, scores."""
        names = f"{self.settings.digest}/{self.seed}/{self.task}/{self.name}/{x.explainer}/{sorted(x.params.items())}"
        return f"{names}/{digest_of_model(self.model)}/{digest_of_scores(x)}"

    def stored(self, x: Xplanation) -> dict[str, Cell] | None:
        """What an explanation carries from an evaluation just like this one."""
        record = x.metrics.get(RECORD)
        if not isinstance(record, dict) or record.get("key") != self.key(x):
            return None
        return {name: Cell.from_record(cell) for name, cell in record["cells"].items()}

    def fill(self, x: Xplanation, cells: dict[str, Cell]) -> None:
        """Write the values into the explanation, and what is needed not to measure again."""
        x.metrics = {name: cell.value for name, cell in cells.items()}
        x.metrics[RECORD] = {"key": self.key(x), "cells": {name: cell.record() for name, cell in cells.items()}}


# --- cells of curves -------------------------------------------------------------------------------------------------


def curve_metrics(side: str, task: str, settings: Settings) -> list[str]:
    """Names of the metrics of a side that come from curves."""
    twins = ["pertinence_tied", "pertinence_rank", "pertinence_p", *(["pertinence_abs"] if task == "regression" else [])]
    return ["ec", "pertinence", *(twins if settings.twins else [])]


def curve_cell(found: Judged, name: str, t: int, e: int) -> Cell:
    """The cell of one metric; without a value where it would have read a prediction that is no number."""
    value, cases = float(found.values[name][t, e]), (found.side.target == t).nonzero()[:, 0].tolist()
    if value != value:
        return missing("nan_prediction")
    if name == "ec":
        per = tuple(float(found.per_case.ec[q, e]) for q in cases)
        return Cell(value, flipped=bool(found.flipped[t, e]), per_reference=per)
    if name == "pertinence":
        per = tuple(float(found.score[q, e]) for q in cases)
        trials, stop = tuple(int(found.trials[q, e]) for q in cases), tuple(found.reason[q][e] for q in cases)
        return Cell(value, trials=trials, stop=stop, per_reference=per)
    return Cell(value)


def told(found: Judged, side: str, label: str, e: int, target: Target, t: int) -> Any:
    """The story, made when it is asked for."""
    from graphgauge.evaluation.stories import story_of

    return story_of(found, side, label, e, target, t)


def is_valid(status: list[list[str]], device: torch.device) -> Tensor:
    """Which (target, entry) can be judged.  (T, E) bool"""
    return torch.tensor([[not why for why in row] for row in status], device=device)


def tell_no_mask(model: BaseModel) -> None:
    """Warn that edges cannot be judged by masks."""
    warnings.warn(
        f"edges are not judged: edge_removal='mask' is not possible for {type(model.net).__name__} ({model.mask_support}). "
        "Use Evaluator(model, edge_removal='drop').",
        GraphgaugeWarning,
        stacklevel=6,
    )


def references_of(references: References, start: int, end: int) -> References:
    """The cases of targets start..end-1, renumbered from 0."""
    chosen = (references.target >= start) & (references.target < end)
    return References(
        end - start,
        references.target[chosen] - start,
        references.reference[chosen],
        references.kind[chosen],
        references.rank[chosen],
        references.graphs,
        references.graph[chosen],
    )
