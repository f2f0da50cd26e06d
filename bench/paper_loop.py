"""The paper's evaluation loop as the paper writes it (algorithms 1 to 7), with a clock: the slow
peer of batched evaluation.

    python bench/paper_loop.py [--targets 1] [--explainers input_x_gradient ...] [--device cuda]
                               [--trials 30] [--full 1]

One target, one explainer, one explainer call and one forward pass at a time, on the target's
computation graph (see `paper_algorithms` for the steps). To the loop's favour graphs and the maps φ
are made once per (target, explainer), not once per algorithm.

The loop is long, but its length is known once a few numbers are (K = EC, k_r the EC with reference
r, n trials, n_r per reference):

    explainer calls   1 + 2 pairs
    edge forwards     1 + K                  (EC)     K (1 + n)                   (pertinence)
    feature forwards  1 + Σ_r k_r            (EC)     Σ_r K (1 + n_r),  K = min k_r

so seconds are scaled from a sample: a few pairs of calls, and a thousand forwards along random
curves of the same K. Without ``--full`` EC is run and the trials are taken to be ``--trials`` (30:
the least the stopping rule allows). ``--full N`` runs the first N (target, explainer) pairs to the
end and prints what the sample says about them beside the truth.
"""

import argparse
import math
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from statistics import fmean

import torch
from cora import cora, sampled_targets
from paper_algorithms import (
    CAP,
    LEAST,
    Curve,
    Substitutes,
    class_medoids,
    compactness,
    computation_graph,
    descending,
    pertinence,
    prediction,
    priorities,
    removals,
    shuffled,
    stability,
    substitutes,
    substitutions,
)
from pyg_peers import ALGORITHMS, LEARNED, explained
from torch import Tensor, nn
from torch_geometric.data import Data

from graphgauge.core import derive_seed, temporary_global_seed

PARTS = (
    "graphs",
    "time",
    "stability",
    "ec_edges",
    "ec_features",
    "pertinence_edges",
    "pertinence_features",
)


@dataclass(frozen=True)
class Setting:
    """What all targets and explainers share; ``references`` are the medoids of the predicted
    classes (class -> node).
    """

    net: nn.Module
    data: Data
    references: Mapping[int, int]


@dataclass(frozen=True)
class Trials:
    """What decides how long the loop of one (target, explainer) is."""

    pairs: int
    edge_ec: int
    edge_trials: int
    reference_ec: tuple[int, ...]  #: EC with each reference
    feature_trials: tuple[int, ...]  #: of each reference


@dataclass(frozen=True)
class Units:
    """Seconds, from a sample."""

    graphs: float
    call: float
    pair: float
    edge_forward: float
    feature_forward: float


@dataclass(frozen=True)
class Measured:
    """One (target, explainer): the metrics, the seconds of each part, and what the loop's length
    was.
    """

    target: int
    explainer: str
    values: dict[str, float]
    seconds: dict[str, float]
    trials: Trials


@dataclass
class Clock:
    """Seconds of each part."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Time what happens inside, the device synchronised."""
        start = now()
        yield
        self.seconds[name] = now() - start


def now() -> float:
    """Wall clock, after the device has done its work."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return time.perf_counter()


class Case:
    """One target and one explainer: its graph, what references put into it, and the pieces of the
    loop.
    """

    def __init__(self, setting: Setting, explainer: str, target: int) -> None:
        self.net, self.explainer, self.local = (
            setting.net,
            explainer,
            computation_graph(setting.data, target),
        )
        first = prediction(self.net, self.local, self.local.x)
        self.label = first.index(max(first))
        others = [node for label, node in setting.references.items() if label != self.label]
        self.given = [substitutes(setting.data, self.local, node) for node in others]
        self.edge_bound = min(CAP, len(self.local.relevant))
        self.feature_bound = min(CAP, 2 * self.local.x.size(1))

    def explain(self) -> tuple[Tensor, Tensor]:
        """One call."""
        return explained(
            self.net, self.explainer, self.local.x, self.local.edge_index, self.local.row
        )

    def edge_order(self, score: Tensor) -> list[int]:
        """Relevant edges, as columns of edge_index, by score (E,)."""
        return self.local.relevant[descending(score[self.local.relevant])].tolist()

    def feature_order(self, score: Tensor) -> list[int]:
        """Places in the priority vector by score (n, F)."""
        return descending(priorities(score, self.local))

    def removals(self, order: Sequence[int]) -> Iterator[list[float]]:
        """See `removals`."""
        return removals(self.net, self.local, order)

    def substitutions(self, given: Substitutes) -> Curve:
        """See `substitutions`."""
        return lambda order: substitutions(self.net, self.local, order, given)

    def edge_ec(self, order: list[int]) -> int:
        """Algorithm 4."""
        prediction(self.net, self.local, self.local.x)  # M(t, G_target)
        return compactness(self.removals(order), self.label, self.edge_bound)

    def reference_ec(self, order: list[int]) -> tuple[int, ...]:
        """Algorithm 5, one number per reference."""
        prediction(self.net, self.local, self.local.x)  # M(t, G_target)
        return tuple(
            compactness(self.substitutions(given)(order), self.label, self.feature_bound)
            for given in self.given
        )


def loop_metrics(
    net: nn.Module,
    data: Data,
    explainer: str,
    targets: Sequence[int],
    references: Mapping[int, int],
    seed: int = 0,
) -> list[Measured]:
    """The whole loop for each target; ``references`` are the medoids of the predicted classes
    (class -> node).
    """
    setting = Setting(net, data, references)
    return [one_target(setting, explainer, target, seed) for target in targets]


def one_target(setting: Setting, explainer: str, target: int, seed: int = 0) -> Measured:
    """The whole loop for one target."""
    clock = Clock()
    with temporary_global_seed(derive_seed(seed, "paper loop", explainer, target)):
        with clock.part("graphs"):
            case = Case(setting, explainer, target)
        with clock.part("time"):
            feature_score, edge_score = case.explain()
        edge_order, feature_order = case.edge_order(edge_score), case.feature_order(feature_score)
        with clock.part("stability"):
            feature_pairs, edge_pairs = stability(case.explain, case.local)
        with clock.part("ec_edges"):
            edge_ec = case.edge_ec(edge_order)
        with clock.part("ec_features"):
            reference_ec = case.reference_ec(feature_order)
        with clock.part("pertinence_edges"):
            edge_shares = pertinence(case.removals, edge_order, edge_ec, case.label)
        feature_ec = min(reference_ec, default=CAP)
        with clock.part("pertinence_features"):
            feature_shares = [
                pertinence(case.substitutions(g), feature_order, feature_ec, case.label)
                for g in case.given
            ]
    values = {
        "time": clock.seconds["time"],
        "edge_stability": fmean(edge_pairs),
        "feature_stability": fmean(feature_pairs),
        "edge_ec": float(edge_ec),
        "feature_ec": float(feature_ec),
        "edge_pertinence": fmean(edge_shares),
        "feature_pertinence": fmean(map(fmean, feature_shares)) if feature_shares else math.nan,
    }
    trials = Trials(
        len(edge_pairs), edge_ec, len(edge_shares), reference_ec, tuple(map(len, feature_shares))
    )
    return Measured(target, explainer, values, clock.seconds, trials)


def loop_counts(trials: Trials) -> dict[str, int]:
    """Explainer calls (time, stability) and forward passes (the rest) of each part."""
    length = min(trials.reference_ec, default=0)
    return {
        "time": 1,
        "stability": 2 * trials.pairs,
        "ec_edges": 1 + trials.edge_ec,
        "ec_features": 1 + sum(trials.reference_ec),
        "pertinence_edges": trials.edge_ec * (1 + trials.edge_trials),
        "pertinence_features": sum(length * (1 + count) for count in trials.feature_trials),
    }


def forwards(counts: Mapping[str, int]) -> int:
    """Forward passes of a loop, those inside explainers left out."""
    return sum(number for part, number in counts.items() if part not in ("time", "stability"))


def scaled_seconds(counts: Mapping[str, int], units: Units) -> dict[str, float]:
    """Seconds of each part."""
    cost = {"time": units.call, "stability": units.pair / 2}
    cost |= {
        part: units.edge_forward if part.endswith("edges") else units.feature_forward
        for part in PARTS[3:]
    }
    return {
        "graphs": units.graphs,
        **{part: number * cost[part] for part, number in counts.items()},
    }


def sampled_units(
    setting: Setting, explainer: str, target: int, lengths: tuple[int, int], least: int = 1000
) -> Units:
    """Seconds per call, pair and forward on a target's graph, the latter along random curves of K
    edges and K features.
    """
    clock, pairs = Clock(), 1 if explainer in LEARNED else 5
    with temporary_global_seed(derive_seed(0, "sample", explainer, target)):
        with clock.part("graphs"):
            case = Case(setting, explainer, target)
        case.explain()  # to warm up
        with clock.part("calls"):
            for _ in range(pairs):
                case.explain()
        with clock.part("pairs"):
            stability(case.explain, case.local, most=pairs)
        edges = curve_seconds([case.removals], case.local.relevant.tolist(), lengths[0], least)
        curves = [case.substitutions(given) for given in case.given]
        features = curve_seconds(curves, list(range(2 * case.local.x.size(1))), lengths[1], least)
    spent = clock.seconds
    return Units(spent["graphs"], spent["calls"] / pairs, spent["pairs"] / pairs, edges, features)


def curve_seconds(curves: Sequence[Curve], order: list[int], length: int, least: int) -> float:
    """Measure the seconds per point of random curves.

    Curves are taken in turn until there are at least ``least`` points.
    """
    if not curves:
        return 0.0
    number = math.ceil(least / length)
    start = now()
    for turn in range(number):
        for _ in islice(curves[turn % len(curves)](shuffled(order, length)), length):
            pass
    return (now() - start) / (number * length)


def assumed_trials(
    setting: Setting, explainer: str, target: int, trials: int, seed: int = 0
) -> Trials:
    """The loop's length with EC as it is and an assumed number of trials."""
    with temporary_global_seed(derive_seed(seed, "paper loop", explainer, target)):
        case = Case(setting, explainer, target)
        feature_score, edge_score = case.explain()
        edge_ec = case.edge_ec(case.edge_order(edge_score))
        reference_ec = case.reference_ec(case.feature_order(feature_score))
    return Trials(LEAST, edge_ec, trials, reference_ec, (trials,) * len(reference_ec))


def row(name: str, call: float, counts: Mapping[str, int], seconds: Mapping[str, float]) -> str:
    """One line of the table."""
    calls, total = counts["time"] + counts["stability"], sum(seconds.values())
    return (
        f"{name:<36}{call:9.4f}{calls:7d}{forwards(counts):10d}"
        + "".join(f"{seconds[p]:11.3f}" for p in PARTS)
        + f"{total:10.2f}"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--targets", type=int, default=1)
    parser.add_argument("--explainers", nargs="+", choices=ALGORITHMS, default=list(ALGORITHMS))
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--trials", type=int, default=LEAST, help="assumed where a loop is not run to its end"
    )
    parser.add_argument(
        "--full",
        type=int,
        default=0,
        metavar="N",
        help="run the first N (target, explainer) pairs to their end",
    )
    options = parser.parse_args()
    # Captum
    warnings.filterwarnings("ignore", message="Input Tensor . did not already require gradients")
    warnings.filterwarnings("ignore", message="Setting backward hooks on ReLU")  # Captum
    net, data = cora(options.device)
    setting = Setting(net, data, class_medoids(net, data))
    where = (
        torch.cuda.get_device_name(0)
        if options.device.startswith("cuda")
        else f"{torch.get_num_threads()} threads"
    )
    kind = "Cora" if "y" in data else "random graph"
    print(
        f"{kind}: {data.num_nodes} nodes, {data.num_edges} edges; {where}, torch "
        f"{torch.__version__}"
    )
    print(
        f"{'seconds':<36}{'per call':>9}{'calls':>7}{'forwards':>10}"
        + "".join(f"{short(p):>11}" for p in PARTS)
        + f"{'total':>10}"
    )
    cases = [
        (target, name)
        for target in sampled_targets(data, options.targets)
        for name in options.explainers
    ]
    total = 0.0
    for number, (target, name) in enumerate(cases):
        explained_once(net, name, data)
        total += show(setting, name, target, options.trials, number < options.full)
    print(f"{len(cases)} pairs of target and explainer, scaled: {total:.1f} s")


def explained_once(net: nn.Module, name: str, data: Data) -> None:
    """A call to warm up, on the smallest graph there is."""
    explained(net, name, data.x[:2], torch.tensor([[0, 1], [1, 0]], device=data.x.device), 0)


def short(part: str) -> str:
    """A part's name in the table's head."""
    return (
        part.replace("pertinence", "pert").replace("features", "feat").replace("stability", "stab")
    )


def show(setting: Setting, name: str, target: int, trials: int, is_full: bool) -> float:
    """The lines of one target and explainer; its scaled seconds."""
    measured = one_target(setting, name, target) if is_full else None
    length = measured.trials if measured else assumed_trials(setting, name, target, trials)
    units = sampled_units(
        setting, name, target, (length.edge_ec, min(length.reference_ec, default=CAP))
    )
    counts = loop_counts(length)
    scaled = scaled_seconds(counts, units)
    print(row(f"{name}, {target}, scaled", units.call, counts, scaled), flush=True)
    if measured:
        print(
            row(f"{name}, {target}, run", measured.values["time"], counts, measured.seconds),
            flush=True,
        )
        print(
            f"  scaled / run {sum(scaled.values()) / sum(measured.seconds.values()):.2f}; {length}"
        )
        print(
            "  " + ", ".join(f"{key} {value:.4g}" for key, value in measured.values.items()),
            flush=True,
        )
    return sum(scaled.values())


if __name__ == "__main__":
    main()
