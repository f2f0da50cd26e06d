"""The table of thirty kinds of networks in docs/models.md: what graphgauge makes of each, found out
by trying.

    PYTHONPATH=tests python bench/network_table.py           print the table
    PYTHONPATH=tests python bench/network_table.py --write   put it into docs/models.md

Everything but the cost is the same on every machine, and a test compares it with the page. The cost
is measured: how much processor time it takes to explain four targets and to evaluate them, over the
same for a GCN of the same size on the same graphs.
"""

import argparse
import re
import time
import warnings
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
HEADING = (
    "network",
    "predictions",
    "copies",
    "sides that can be scored and evaluated",
    "explainers",
    "cost",
)
QUICK: dict[str, dict[str, Any]] = {
    "gnn_explainer": {"epochs": 1},
    "graphmask": {"epochs": 1},
    "integrated_gradients": {"steps": 2},
}
SETTINGS: dict[str, Any] = {"preset": "paper", "cap": 4, "stability": "none", "timed": 0}
EDGES, FEATURES, PLAIN = "edges", "features", "plain gradient"
REPEATS = 3  #: the fastest of so many counts


@dataclass(frozen=True)
class Found:
    """What was found out about one kind: the cells of its row, the cost apart."""

    name: str
    predictions: str
    copies: str
    sides: str
    explainers: str

    @property
    def cells(self) -> tuple[str, ...]:
        """As they stand in the table."""
        return self.name, self.predictions, self.copies, self.sides, self.explainers


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
            sides(model, kind),
            explainers(model, kind),
        )


def heading_of(kind: Kind) -> str:
    """The first cell of a row."""
    return f"{kind.name} ({kind.note})" if kind.note else kind.name


def predictions(model: Any, record: dict[str, Any]) -> str:
    """Whether extracted graphs give the network's own predictions, and on how much of the graph."""
    if model.level == "graph":
        return "exact"
    if record["halo"] == "whole graph":
        return (
            f"exact on the whole graph; edges beyond {record['hops']} hops act, but are not scored"
        )
    return f"exact, halo {record['halo']}"


def sides(model: Any, kind: Kind) -> str:
    """Which sides have scores and a count, and how edges are removed."""
    told: list[str] = []
    if not model.uses_edges:
        return f"{FEATURES} (edges of the data change nothing)"
    if has_count(model, kind, FEATURES, "mask"):
        told.append(FEATURES)
    removals: tuple[EdgeRemoval, ...] = ("mask", "drop")
    ways = [way for way in removals if has_count(model, kind, EDGES, way)]
    doubt = re.search(r"can win in (\w+)", model.mask_support) if "mask" not in ways else None
    why = f" (a silenced message can win in {doubt[1]})" if doubt else ""
    return ", ".join([*told, f"edges by {' and '.join(ways)}{why}" if ways else "no edges"])


def has_count(model: Any, kind: Kind, side: str, removal: EdgeRemoval) -> bool:
    """Whether a target has an Effective Compactness on this side."""
    results = gg.Evaluator(model, **SETTINGS, edge_removal=removal).compare(
        [RandomExplainer()], kind.targets[:2]
    )
    metric = {EDGES: "edge_ec", FEATURES: "feature_ec"}[side]
    return any(row.cell.value is not None for row in results.rows if row.metric == metric)


def explainers(model: Any, kind: Kind) -> str:
    """Which explainers work: all, or those that do not and why."""
    refused, lacking, plain = {}, [], []
    for name, make in EXPLAINERS.items():
        outcome = tried(make(**QUICK.get(name, {})), model, kind)
        if outcome == EDGES:
            lacking.append(name)
        elif outcome == PLAIN:
            plain.append(name)
        elif outcome:
            refused[name] = outcome
    without = " and ".join(f"{name} ({why})" for name, why in refused.items())
    told = [f"all but {without}" if without else "all"]
    scored = [name for name in EXPLAINERS if name not in {*refused, *lacking, *plain}]
    if lacking:
        told.append(f"edge scores only from {' and '.join(scored)}")
    if plain:
        told.append(f"{' and '.join(plain)} are the plain gradient")
    return "; ".join(told)


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
        (r"no rule for (batch norm without running statistics)", "no rule for {}"),
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


def markdown() -> str:
    """The whole table."""
    rows = [(*found(kind).cells, cost(kind)) for kind in KINDS.values()]
    return "\n".join(
        f"| {' | '.join(cells)} |" for cells in (HEADING, ["---"] * len(HEADING), *rows)
    )


def stored() -> dict[str, tuple[str, ...]]:
    """The rows of the page without their costs, by their first cell."""
    text = PAGE.read_text().split(START)[1].split(END)[0]
    rows = [
        tuple(cell.strip() for cell in line.strip("| ").split(" | "))
        for line in text.strip().splitlines()[2:]
    ]
    return {row[0]: row[:-1] for row in rows}


def write() -> None:
    """Put the table into the page."""
    before, rest = PAGE.read_text().split(START)
    PAGE.write_text(f"{before}{START}\n{markdown()}\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="put the table into docs/models.md")
    if parser.parse_args().write:
        write()
    else:
        print(markdown())
