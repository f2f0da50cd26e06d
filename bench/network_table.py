"""The two tables of thirty kinds of networks in docs/models.md: how graphgauge treats each of them,
found out by running it.

    PYTHONPATH=tests python bench/network_table.py           print the tables
    PYTHONPATH=tests python bench/network_table.py --write   put them into docs/models.md

The first table says how a network is run and what that costs, the second one what can be scored.
Everything but the cost is the same on every machine, and a test compares it with the page. The cost
is measured: it is the processor time for explaining and evaluating four targets, divided by that of
a GCN of the same size on the same graphs.
"""

import argparse
import re
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from support.network_kinds import BASES, KINDS, Kind

import graphgauge as gg
from graphgauge.core import GraphgaugeError
from graphgauge.evaluation import EdgeRemoval
from graphgauge.explainers import EXPLAINERS, Occlusion, RandomExplainer, Saliency

PAGE = Path(__file__).parents[1] / "docs" / "models.md"
START, END = (
    "<!-- network table: bench/network_table.py --write -->",
    "<!-- end of the network table -->",
)
SCORES_START, SCORES_END = (
    "<!-- table of scores: bench/network_table.py --write -->",
    "<!-- end of the table of scores -->",
)
HEADING = ("network", "predictions", "copies", "cost")
SCORES_HEADING = ("network", "edges removed by", "refused", "edge scores", "guided")
QUICK: dict[str, dict[str, Any]] = {
    "gnn_explainer": {"epochs": 1},
    "graphmask": {"epochs": 1},
    "integrated_gradients": {"steps": 2},
}
SETTINGS: dict[str, Any] = {"preset": "paper", "cap": 4, "stability": "none", "timed": 0}
EDGES, FEATURES, PLAIN = "edges", "features", "plain gradient"
GUIDED = ("guided_backprop", "deconvolution")
REPEATS = 3  #: the fastest of so many counts


@dataclass(frozen=True)
class Found:
    """What was found out about one kind: the cells of its rows, without the cost."""

    name: str
    predictions: str
    copies: str
    removals: str
    refused: str
    edge_scores: str
    guided: str

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells of both tables."""
        return self.name, self.predictions, self.copies, *self.score_cells

    @property
    def score_cells(self) -> tuple[str, ...]:
        """The cells of the second table, without the name."""
        return self.removals, self.refused, self.edge_scores, self.guided


def found(kind: Kind) -> Found:
    """Wrap, predict, explain by every explainer, and evaluate, by mask and by drop."""
    model = kind.model()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        record = model.record()
        return Found(
            heading_of(kind),
            predictions(model, record),
            record["copies"],
            removals(model, kind),
            *explainers(model, kind),
        )


def heading_of(kind: Kind) -> str:
    """The first cell of a row in the first table: the name, and how the network is wrapped."""
    return f"{kind.name} ({kind.note})" if kind.note else kind.name


def predictions(model: Any, record: dict[str, Any]) -> str:
    """Whether extracted graphs give the network's own predictions, and on how much of the graph."""
    if model.level == "graph":
        return "exact"
    if record["halo"] == "whole graph":
        return f"exact, whole graph ({record['hops']} hops scored)"
    return f"exact, halo {record['halo']}"


def removals(model: Any, kind: Kind) -> str:
    """How edges may be removed such that a target has a count, and whether features have none."""
    missing = "" if has_count(model, kind, FEATURES, "mask") else "no features; "
    if not model.uses_edges:
        return f"{missing}edges change nothing"
    both: tuple[EdgeRemoval, ...] = ("mask", "drop")
    ways = [way for way in both if has_count(model, kind, EDGES, way)]
    doubt = re.search(r"can win in (\w+)", model.mask_support) if "mask" not in ways else None
    why = f" (a silenced message can win in {doubt[1]})" if doubt else ""
    return f"{missing}{', '.join(ways)}{why}" if ways else f"{missing}no way"


def has_count(model: Any, kind: Kind, side: str, removal: EdgeRemoval) -> bool:
    """Whether a target has an Effective Compactness on this side."""
    results = gg.Evaluator(model, **SETTINGS, edge_removal=removal).compare(
        [RandomExplainer()], kind.targets[:2]
    )
    metric = {EDGES: "edge_ec", FEATURES: "feature_ec"}[side]
    return any(row.cell.value is not None for row in results.rows if row.metric == metric)


def explainers(model: Any, kind: Kind) -> tuple[str, str, str]:
    """Which explainers are refused, which ones score edges, and whether guided ones are guided."""
    refused, lacking, plain = {}, [], []
    for name, make in EXPLAINERS.items():
        outcome = tried(make(**QUICK.get(name, {})), model, kind)
        if outcome == EDGES:
            lacking.append(name)
        elif outcome == PLAIN:
            plain.append(name)
        elif outcome:
            refused[name] = outcome
    if not set(plain) <= set(GUIDED):
        raise AssertionError(f"{', '.join(plain)} give the plain gradient for {kind.name}")
    reasons = ", ".join(f"{name} ({why})" for name, why in refused.items())
    scoring = [name for name in EXPLAINERS if name not in {*refused, *lacking, *plain}]
    return (
        reasons or "none",
        ", ".join(scoring) if lacking else "all",
        PLAIN if plain else "yes",
    )


def tried(explainer: Any, model: Any, kind: Kind) -> str:
    """'' if both sides have finite scores, 'edges' if edges have none, or why it is refused."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            xs = explainer.explain(model, kind.targets[:2])
        except GraphgaugeError as error:
            return reason(str(error))
    for x in xs:
        for score in (x.feature_score, x.edge_score):
            if score is not None and not bool(score.isfinite().all()):
                raise AssertionError(
                    f"{explainer.name} gives scores that are no numbers for {kind.name}"
                )
    if any(x.feature_score is None for x in xs) and explainer.name != "random":
        raise AssertionError(f"{explainer.name} gives no feature scores for {kind.name}")
    if any(PLAIN in str(warning.message) for warning in told):
        return PLAIN
    return EDGES if any(x.edge_score is None for x in xs) else ""


def reason(message: str) -> str:
    """Why an explainer is refused, in a few words."""
    for pattern, words in (
        (r"no rule for (batch norm without running stat)istics", "no rule for {}s"),
        (r"no rule for (\w+)", "no rule for {}"),
        (r"calls an operation (without a rule)", "operations {}"),
        (r"torch\.(jit) hides", "torch.{} hides the layers"),
        (r"computes in (\w+)", "computes in {}"),
    ):
        match = re.search(pattern, message)
        if match:
            return words.format(match[1])
    return message.split(". ")[0]


# --- cost -----------------------------------------------------------------------------------------


def seconds(kind: Kind) -> float:
    """Explaining four targets by two explainers and evaluating them, once the network is known; the
    fastest of a few.
    """
    model, times = kind.model(), []
    evaluator = gg.Evaluator(model, **{**SETTINGS, "cap": 10}, edge_removal="drop")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(REPEATS + 1):
            start = time.process_time()
            evaluator.compare([Saliency(), Occlusion()], kind.targets)
            times.append(time.process_time() - start)
    return min(times[1:])


def cost(kind: Kind) -> str:
    """Seconds of a kind over those of a GCN on the same graphs."""
    base = BASES[kind.is_of_graphs]
    ratio = seconds(kind) / seconds(
        base if kind.is_of_graphs else replace(base, data=kind.data, make=own_precision(kind, base))
    )
    return f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}"


def own_precision(kind: Kind, base: Kind) -> Any:
    """The base in the precision of the features."""
    return (lambda: base.make().double()) if kind.data().x.dtype == torch.float64 else base.make


# --- the table ------------------------------------------------------------------------------------


def format_table(heading: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = (heading, ("---",) * len(heading), *rows)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def markdown() -> tuple[str, str]:
    """Both tables."""
    known = {name: found(kind) for name, kind in KINDS.items()}
    runs = [
        (own.name, own.predictions, own.copies, cost(KINDS[name])) for name, own in known.items()
    ]
    scores = [(KINDS[name].name, *own.score_cells) for name, own in known.items()]
    return format_table(HEADING, runs), format_table(SCORES_HEADING, scores)


def stored_rows(start: str, end: str) -> list[tuple[str, ...]]:
    """The rows of one table of the page."""
    lines = PAGE.read_text().split(start)[1].split(end)[0].strip().splitlines()[2:]
    return [tuple(cell.strip() for cell in line.strip("| ").split(" | ")) for line in lines]


def stored() -> dict[str, tuple[str, ...]]:
    """The cells of both tables of the page without the costs, by the first cell of a row."""
    scores = {row[0]: row[1:] for row in stored_rows(SCORES_START, SCORES_END)}
    names = {heading_of(kind): kind.name for kind in KINDS.values()}
    return {
        row[0]: (*row[:-1], *scores.get(names.get(row[0], ""), ()))
        for row in stored_rows(START, END)
    }


def write() -> None:
    """Put the tables into the page."""
    runs, scores = markdown()
    for table, start, end in ((runs, START, END), (scores, SCORES_START, SCORES_END)):
        before, rest = PAGE.read_text().split(start)
        PAGE.write_text(f"{before}{start}\n{table}\n{end}{rest.split(end)[1]}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="put the tables into docs/models.md")
    if parser.parse_args().write:
        write()
    else:
        print(*markdown(), sep="\n\n")
