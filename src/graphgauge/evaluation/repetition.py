"""Stability: an explainer is run again and again on the same targets, all repetitions as one batch.

    pairs       30 to 100 pairs of independent explanations; the two lists (features, edges) go on until both may stop
                (with ``early_stop="betting"`` by the rule of precision alone: there is no null value to bet against)
    binomial    M explanations, all M (M - 1) / 2 pairs, with the jackknife's standard error

An explainer that says it is deterministic is run twice; if the two are alike to within 1e-5 (on a
CPU they are equal to the last bit, on a GPU sums come in any order), so would all others be, and
that likeness is its stability. The corrected twin compares with what permuted scores reach.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from graphgauge.core.memory import budget_bytes
from graphgauge.core.numbers import all_finite
from graphgauge.core.progress import advance
from graphgauge.core.seeds import derive_seed, generator
from graphgauge.core.xplanation import Target, Xplanation
from graphgauge.evaluation.alignment import EMPTY, NAN, NO_SCORES, edge_scores
from graphgauge.evaluation.cells import Cell, missing
from graphgauge.evaluation.entries import OfClasses
from graphgauge.evaluation.settings import Settings
from graphgauge.evaluation.sides import growing
from graphgauge.explainers import BaseExplainer
from graphgauge.metrics import (
    binomial,
    corrected,
    edge_chance,
    edge_stability,
    feature_chance,
    feature_stability,
    stopped,
    stopped_together,
)
from graphgauge.metrics.stability import blocks, can_move
from graphgauge.models import BaseModel
from graphgauge.models.computation import ComputationGraph

SAME = 1e-5  #: likeness that a deterministic explainer may miss
SHARE_OF_BUDGET = 0.25  #: of the memory budget that explanations may fill at a time


@dataclass
class Repetitions:
    """The repeated explanations of one target, one side, kept as likenesses."""

    status: str = ""
    values: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.float64))
    chance: float = float("nan")
    seen: "Seen" = field(default_factory=lambda: Seen())


@dataclass(frozen=True)
class Seen:
    """What makes a stability less than it seems: explanations that are all 0, and a target without
    other nodes.
    """

    made: int = 0
    zero: int = 0
    is_lonely: bool = False

    def __add__(self, more: "Seen") -> "Seen":
        return Seen(self.made + more.made, self.zero + more.zero, self.is_lonely or more.is_lonely)

    @property
    def remark(self) -> str | None:
        """For people; None where there is nothing to say."""
        zero = f"all scores are 0 in {self.zero} of {self.made} explanations" if self.zero else ""
        lonely = (
            "no other node can reach the target: its own features alone" if self.is_lonely else ""
        )
        return "; ".join(filter(None, [zero, lonely])) or None


def stability_cells(
    explainer: BaseExplainer | OfClasses,
    model: BaseModel,
    targets: Sequence[Target],
    settings: Settings,
    seed: int,
) -> dict[Target, dict[str, Cell]]:
    """Stability of both sides for each target, and its corrected twin."""
    if explainer.deterministic:
        found = twice(explainer, model, targets, settings, seed)
        changing = [target for target in targets if target not in found]
    else:
        found, changing = {}, list(targets)
    run = in_pairs if settings.stability == "pairs" else all_pairs
    return {**found, **(run(explainer, model, changing, settings, seed) if changing else {})}


def twice(
    explainer: BaseExplainer | OfClasses,
    model: BaseModel,
    targets: Sequence[Target],
    settings: Settings,
    seed: int,
) -> dict[Target, dict[str, Cell]]:
    """Targets whose two explanations are the same."""
    found = {}
    for target, xs in repeated(
        explainer, model, targets, 2, settings, derive_seed(seed, "stability", 0)
    ):
        advance(1)
        given = [Given.of(xs, side) for side in SIDES]
        alike = [
            1.0 if one.status else float(one.likeness(one.scores[:1], one.scores[1:]))
            for one in given
        ]
        if min(alike) < 1 - SAME:
            continue
        cells: dict[str, Cell] = {}
        for one, mean in zip(given, alike, strict=True):
            is_wanted = settings.twins and not one.status
            same = one.scores[:1]
            chance = (
                one.chance(same, same, settings.permutations, chance_seed(seed, target, one.side))
                if is_wanted
                else float("nan")
            )
            cells |= side_cells(
                one.side,
                one.status,
                mean,
                chance,
                settings,
                1,
                "deterministic",
                0.0,
                one.seen.remark,
            )
        found[target] = cells
    return found


def in_pairs(
    explainer: BaseExplainer | OfClasses,
    model: BaseModel,
    targets: Sequence[Target],
    settings: Settings,
    seed: int,
) -> dict[Target, dict[str, Cell]]:
    """The paper's algorithm, for all targets at once, stage by stage."""
    done: dict[Target, dict[str, Cell]] = {}
    series = {target: {side: Repetitions() for side in SIDES} for target in targets}
    left, start = list(targets), 0
    for end in pair_stages(settings):
        for target, xs in repeated(
            explainer,
            model,
            left,
            2 * (end - start),
            settings,
            derive_seed(seed, "stability", start),
        ):
            for side, own in series[target].items():
                add_pairs(
                    own,
                    Given.of(xs, side),
                    settings,
                    chance_seed(seed, target, side),
                    is_first=start == 0,
                )
            found = paired_cells(series[target], end, settings)
            if found is not None:
                done[target] = found
                advance(1)
        left, start = [target for target in left if target not in done], end
        if not left:
            break
    return done


def pair_stages(settings: Settings) -> list[int]:
    """Numbers of pairs after which the rule is applied."""
    least, most = settings.trials
    return growing(most if settings.early_stop == "none" else least, most)


def add_pairs(
    own: Repetitions, given: "Given", settings: Settings, seed: int, is_first: bool
) -> None:
    """Likenesses of explanations 0 and 1, 2 and 3 ..., and once the likeness by chance."""
    own.status = own.status or given.status
    if own.status:
        return
    first, second = given.scores[0::2], given.scores[1::2]
    own.values, own.seen = (
        torch.cat([own.values, given.likeness(first, second).double().cpu()]),
        own.seen + given.seen,
    )
    if is_first and settings.twins:
        own.chance = given.chance(first, second, settings.permutations, seed)


def paired_cells(
    series: dict[str, Repetitions], end: int, settings: Settings
) -> dict[str, Cell] | None:
    """The cells of a target once both of its lists may stop; None: go on."""
    open_sides = [side for side in SIDES if not series[side].status]
    if not open_sides:
        return {
            name: cell
            for side in SIDES
            for name, cell in side_cells(side, series[side].status, 0, 0, settings).items()
        }
    least, most = settings.trials
    tau = settings.tau if settings.early_stop == "paper" else None
    lists = [series[side].values[None] for side in open_sides]
    rule = (most if settings.early_stop == "none" else least, end, tau, settings.epsilon)
    stops = (
        [stopped(lists[0], *rule)]
        if len(lists) == 1
        else list(stopped_together(lists[0], lists[1], *rule))
    )
    if end < most and any(stop.reason == ["most"] for stop in stops):
        return None
    cells: dict[str, Cell] = {}
    is_fixed = (
        settings.early_stop == "none"
    )  # then no rule ends the lists, whatever holds at their end
    reasons = {
        side: "most" if is_fixed else stop.reason[0]
        for side, stop in zip(open_sides, stops, strict=True)
    }
    trials = int(stops[0].trials[0])
    for side, own in series.items():
        counted = own.values[:trials]
        error = (
            float(counted.std(correction=0) / trials**0.5) if trials and not own.status else None
        )
        mean = float(counted.mean()) if not own.status else 0.0
        cells |= side_cells(
            side,
            own.status,
            mean,
            own.chance,
            settings,
            trials,
            reasons.get(side, ""),
            error,
            own.seen.remark,
        )
    return cells


def all_pairs(
    explainer: BaseExplainer | OfClasses,
    model: BaseModel,
    targets: Sequence[Target],
    settings: Settings,
    seed: int,
) -> dict[Target, dict[str, Cell]]:
    """All pairs of M explanations."""
    done = {}
    for target, xs in repeated(
        explainer, model, targets, settings.calls, settings, derive_seed(seed, "stability", 0)
    ):
        cells: dict[str, Cell] = {}
        for given in (Given.of(xs, side) for side in SIDES):
            if given.status:
                cells |= side_cells(given.side, given.status, 0, 0, settings)
                continue
            scores, seed_of_side = given.scores, chance_seed(seed, target, given.side)
            found = binomial(
                torch.stack([given.likeness(own[None].expand_as(scores), scores) for own in scores])
            )
            chance = (
                given.chance(scores, scores.roll(-1, 0), settings.permutations, seed_of_side)
                if settings.twins
                else float("nan")
            )
            error, remark = float(found.error), given.seen.remark
            cells |= side_cells(
                given.side,
                "",
                float(found.mean),
                chance,
                settings,
                settings.calls,
                "binomial",
                error,
                remark,
            )
        done[target] = cells
        advance(1)
    return done


# --- small parts ----------------------------------------------------------------------------------

SIDES = ("feature", "edge")


def repeated(
    explainer: BaseExplainer | OfClasses,
    model: BaseModel,
    targets: Sequence[Target],
    count: int,
    settings: Settings,
    seed: int,
) -> Iterator[tuple[Target, list[Xplanation]]]:
    """``count`` independent explanations of each target, in as few calls as memory allows."""
    if not targets:
        return
    graphs = model.computation_graphs(list(targets), settings.edge_scope)
    graph = iter(graphs)
    each = graphs.num_nodes * graphs.source.x.size(1) + graphs.num_edges
    room = SHARE_OF_BUDGET * budget_bytes(model.engine.budget, graphs.source.device)
    filled = (each.double() * graphs.source.x.element_size() * count / room).cumsum(0)
    for part in filled.floor().unique_consecutive(return_counts=True)[1].tolist():
        some, targets = targets[:part], targets[part:]
        xs = explainer.explain(model, [target for target in some for _ in range(count)], seed=seed)
        for k, target in enumerate(some):
            found = xs[k * count : (k + 1) * count]  # all of one computation graph
            own = next(graph)
            yield (
                target,
                found
                if torch.equal(found[0].edges, own.edges)
                else [in_scope(x, own) for x in found],
            )


def in_scope(x: Xplanation, graph: ComputationGraph) -> Xplanation:
    """The explanation with scores of the edges that count, where the model's own scope is another."""
    return replace(
        x, edges=graph.edges, edge_score=None if x.edge_score is None else edge_scores(x, graph)
    )


@dataclass(frozen=True)
class Given:
    """Scores of one side of several explanations of one target, or why there are none.  scores (R, n, F) or (R, E_rel)"""

    side: str
    status: str
    scores: Tensor
    is_target: Tensor  #: (n,) bool; all edges

    @staticmethod
    def of(xs: Sequence[Xplanation], side: str) -> "Given":
        """Put together once."""
        found = [score for x in xs if (score := getattr(x, f"{side}_score")) is not None]
        own = torch.ones_like(xs[0].edges, dtype=torch.bool) if side == "edge" else is_target(xs[0])
        if side == "edge" and len(xs[0].edges) == 0:
            return Given(side, EMPTY, torch.zeros(0), own)
        if len(found) < len(xs):
            return Given(side, NO_SCORES, torch.zeros(0), own)
        scores = torch.stack(found)
        return Given(side, "" if all_finite(scores) else NAN, scores, own)

    @property
    def seen(self) -> Seen:
        """What people should know of these scores."""
        if self.status:
            return Seen()
        zero = int((self.scores == 0).flatten(1).all(1).sum())
        return Seen(len(self.scores), zero, self.side == "feature" and bool(self.is_target.all()))

    def likeness(self, first: Tensor, second: Tensor) -> Tensor:
        """How alike two stacks of scores are.  (R,)"""
        return (
            edge_stability(first, second)
            if self.side == "edge"
            else feature_stability(first, second, self.is_target)
        )

    def chance(self, first: Tensor, second: Tensor, permutations: int, seed: int) -> float:
        """Mean likeness of pairs after permuting one of each, ``permutations`` times, over all
        pairs in turn.
        """
        number = permutations if len(first) == 1 else 1
        pairs = torch.arange(permutations // number, device=first.device) % len(first)
        first, second = first[pairs], second[pairs]
        if not any(
            bool(can_move(first[:, part].flatten(1), second[:, part].flatten(1)))
            for part in blocks(self.is_target)
        ):
            return 1.0
        if self.side == "edge":
            return float(edge_chance(first, second, generator(seed), number).double().mean())
        return float(
            feature_chance(first, second, self.is_target, generator(seed), number).double().mean()
        )


def is_target(x: Xplanation) -> Tensor:
    """Which nodes are the target's own.  (n,) bool"""
    ends = torch.tensor(x.target_nodes, dtype=torch.int64, device=x.nodes.device)
    return torch.isin(x.nodes, ends)


def chance_seed(seed: int, target: Target, side: str) -> int:
    """For the permutations."""
    return derive_seed(seed, "permuted scores", target, side)


def side_cells(
    side: str,
    status: str,
    mean: float,
    chance: float,
    settings: Settings,
    trials: int = 0,
    stop: str = "",
    error: float | None = None,
    message: str | None = None,
) -> dict[str, Cell]:
    """The paper's number and its twin."""
    names = [f"{side}_stability", *([f"{side}_stability_corrected"] if settings.twins else [])]
    if status:
        return dict.fromkeys(names, missing(status))
    cells = {names[0]: Cell(mean, trials=(trials,), stop=(stop,), error=error, message=message)}
    if settings.twins:
        value = float(
            corrected(
                torch.tensor(mean, dtype=torch.float64), torch.tensor(chance, dtype=torch.float64)
            )
        )
        cells[names[1]] = (
            Cell(value, trials=(trials,), stop=(stop,)) if value == value else missing("constant")
        )
    return cells
