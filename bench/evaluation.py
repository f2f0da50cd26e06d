"""All seven metrics of the paper for eight explainers: `Evaluator.compare` against the loop as the
paper writes it.

    python bench/evaluation.py [--targets 10] [--device cuda] [--growth] [--full 2] [--ours]

Cora (where GRAPHGAUGE_DATA holds it, else a random graph of its size), a GCN of two layers with 16
hidden units. Ours is the median of three calls, each after a short one on one target to warm up;
for Time one target is explained alone, three times. The loop takes long: its explainer calls and
forwards are counted exactly from what was measured (EC, trials, references of each target and
explainer), and multiplied by the seconds of one, sampled on the same machine in the same run (see
`paper_loop`). ``--full N`` runs N of its (target, explainer) pairs to the end and prints the ratio
to the estimate.
"""

import argparse
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

import torch
from cora import CLASSES, HIDDEN, cora, sampled_targets
from paper_loop import Setting, Trials, loop_counts, one_target, sampled_units, scaled_seconds
from pyg_peers import LEARNED

import graphgauge as gg
from graphgauge.execution import Executor

EXPLAINERS = {
    explainer.name: explainer
    for explainer in (
        gg.Saliency(),
        gg.InputXGradient(),
        gg.IntegratedGradients(),
        gg.GuidedBackprop(),
        gg.Deconvolution(),
        gg.LRP(),
        gg.GNNExplainer(),
        gg.GraphMask(),
    )
}
LEAST_PAIRS = 30
ROUNDS = 3
Cells = dict[tuple[str, int], dict[str, Any]]  #: of each explainer and target


def seconds(call: Any) -> tuple[float, Any]:
    """Wall clock of one call, until the device has finished, and its result."""
    synchronise()
    start = time.perf_counter()
    result = call()
    synchronise()
    return time.perf_counter() - start, result


def synchronise() -> None:
    """Wait for a GPU, if one is used."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


def trials_of(cells: Mapping[str, Any], is_learned: bool) -> Trials:
    """How long the loop of one (target, explainer) is, from what was measured."""
    pairs = cells["feature_stability"].trials[0] if is_learned else LEAST_PAIRS
    return Trials(
        pairs=pairs,
        edge_ec=int(cells["edge_ec"].value or 0),
        edge_trials=cells["edge_pertinence"].trials[0],
        reference_ec=tuple(map(int, cells["feature_ec"].per_reference)),
        feature_trials=cells["feature_pertinence"].trials,
    )


def compared(net: Any, data: Any, targets: list[int]) -> tuple[list[float], Cells]:
    """Seconds of `compare`, each time with the network wrapped anew, and the cells of each
    explainer and target.
    """
    took, cells = [], Cells()
    for _ in range(ROUNDS):
        model = gg.NodeClassificationModel(net, data)
        gg.Evaluator(model, trials=(2, 2), twin_trials=2, cap=2, timed=0).compare(
            EXPLAINERS, targets[-1:]
        )
        spent, results = seconds(
            lambda model=model: gg.Evaluator(model, timed=1).compare(EXPLAINERS, targets)
        )
        took.append(spent)
    for row in results.rows:
        cells.setdefault((row.explainer, row.target), {})[row.metric] = row.cell
    return took, cells


def loop_seconds(
    setting: Setting, cells: Mapping[tuple[str, int], Mapping[str, Any]], name: str, samples: int
) -> tuple[float, float]:
    """Seconds that the loop takes for one explainer, and those of one of its calls."""
    own = {
        target: trials_of(found, name in LEARNED)
        for (explainer, target), found in cells.items()
        if explainer == name
    }
    units = [
        sampled_units(setting, name, target, (trials.edge_ec, min(trials.reference_ec)))
        for target, trials in list(own.items())[:samples]
    ]
    total = fmean(
        sum(sum(scaled_seconds(loop_counts(trials), unit).values()) for trials in own.values())
        for unit in units
    )
    return total, fmean(unit.call for unit in units)


def growth(model: gg.BaseModel, targets: list[int]) -> None:
    """How the cost of EC and Pertinence grows with trials, steps, the size of graphs, and the
    number of explainers.
    """
    many = {f"random {number}": gg.RandomExplainer() for number in range(8)}

    def cost(explainers: Any, chosen: list[int], **settings: Any) -> float:
        fixed = {"stability": "none", "timed": 0, "early_stop": "none", **settings}
        return min(
            seconds(lambda: gg.Evaluator(model, **fixed).compare(explainers, chosen))[0]
            for _ in range(3)
        )

    one = dict(list(many.items())[:1])
    base = {"trials": (30, 30), "twin_trials": 30}
    for trials in (10, 30, 100):
        took = cost(one, targets, trials=(trials, trials), twin_trials=trials)
        print(f"trials {trials:4d}: {took:8.3f} s")
    for cap in (10, 30, 100):
        print(f"steps  {cap:4d}: {cost(one, targets, cap=cap, **base):8.3f} s")
    by_size = sorted(
        targets, key=lambda target: int(model.computation_graphs([target]).num_edges[0])
    )
    for target in (by_size[0], by_size[len(by_size) // 2], by_size[-1]):
        edges = int(model.computation_graphs([target]).num_edges[0])
        print(f"edges  {edges:4d}: {cost(one, [target], **base):8.3f} s")
    for number in (1, 2, 4, 8):
        chosen = dict(list(many.items())[:number])
        print(f"explainers {number}: {cost(chosen, targets, **base):6.3f} s")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--targets", type=int, default=10)
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--samples",
        type=int,
        default=2,
        help="targets on which calls and forwards of the loop are timed",
    )
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--full", type=int, default=0)
    parser.add_argument("--ours", action="store_true", help="leave the loop out")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")  # Captum's advice
    net, data = cora(options.device)
    model = gg.NodeClassificationModel(net, data)
    targets = sampled_targets(data, options.targets)
    where = (
        torch.cuda.get_device_name(0)
        if options.device.startswith("cuda")
        else f"{torch.get_num_threads()} threads"
    )
    print(
        f"{data.num_nodes} nodes, {data.num_edges} edges, {data.x.size(1)} features; {where}, "
        f"torch {torch.__version__}"
    )
    rounds, cells = compared(net, data, targets)
    ours = median(rounds)
    print(
        f"compare, 8 explainers x {len(targets)} targets: "
        f"{', '.join(f'{each:.2f}' for each in rounds)} s"
    )
    references = class_references(model, targets)
    setting = Setting(net, data, references)
    total = 0.0
    for name in () if options.ours else EXPLAINERS:
        took, call = loop_seconds(setting, cells, name, options.samples)
        total += took
        print(f"loop, {name:<22}{took:10.1f} s   ({call * 1000:8.1f} ms a call)", flush=True)
    if total:
        print(f"loop in all: {total:.0f} s; ratio {total / ours:.1f}")
    for name, target in list(cells)[: options.full]:
        took, measured = seconds(lambda name=name, target=target: one_target(setting, name, target))
        units = sampled_units(
            setting, name, target, (measured.trials.edge_ec, min(measured.trials.reference_ec))
        )
        scaled = sum(scaled_seconds(loop_counts(measured.trials), units).values())
        print(f"full loop, {name} on {target}: {took:.1f} s, {scaled / took:.2f} of it estimated")
    if options.growth:
        growth(model, targets)
        floor(model, targets)


def floor(model: gg.BaseModel, targets: list[int]) -> None:
    """How far the curves are above what their forward passes must at least read, write and
    multiply.

    For each copy and each of the two layers: the mapped rows are written, each message is read,
    written and added up, and sums are written, 4 bytes a number; a message costs a product and a
    sum for each hidden unit. Memory is timed by copying 256 MiB.
    """
    seen = Seen(0, 0, 0)
    outputs = Executor.outputs

    def counted(
        self: Executor,
        union: Any,
        edit: Any = None,
        every_message: bool = False,
        written: bool = False,
    ) -> torch.Tensor:
        seen.copies, seen.nodes, seen.edges = (
            seen.copies + len(union),
            seen.nodes + union.num_nodes,
            seen.edges + union.num_edges,
        )
        return outputs(self, union, edit, every_message, written)

    chosen = {name: EXPLAINERS[name] for name in ("saliency", "input_x_gradient", "lrp")}
    evaluator = gg.Evaluator(model, stability="none", timed=0)
    took = min(seconds(lambda: evaluator.compare(chosen, targets))[0] for _ in range(3))
    Executor.outputs = counted  # type: ignore[method-assign, assignment]
    try:
        evaluator.compare(chosen, targets)
    finally:
        Executor.outputs = outputs  # type: ignore[method-assign]
    block = torch.ones(2**26, device=model.source.device)
    copied = min(seconds(block.clone)[0] for _ in range(5))
    numbers = 2 * HIDDEN * (2 * seen.nodes + 3 * (seen.edges + seen.nodes))
    flops = 2 * HIDDEN * 2 * (seen.edges + seen.nodes) + 2 * seen.nodes * HIDDEN * CLASSES
    least = 4 * numbers / (2 * block.nbytes / copied)
    made = f"{seen.copies} copies, {seen.nodes} nodes, {seen.edges} edges"
    print(f"3 explainers, curves of edges and features: {took:.2f} s for {made}")
    work = f"{4 * numbers / 2**30:.1f} GiB and {flops / 1e9:.1f} GFLOP"
    print(
        f"floor: {work}, {least:.2f} s of memory traffic; we are {took / least:.1f} times above it"
    )


@dataclass
class Seen:
    """What forward passes were made on."""

    copies: int
    nodes: int
    edges: int


def class_references(model: gg.BaseModel, targets: list[int]) -> dict[int, int]:
    """The medoid of each predicted class, as ours are."""
    from graphgauge.perturbation import find_references

    found = find_references(model, targets)
    return dict(zip(found.kind.tolist(), found.reference[:, 0].tolist(), strict=True))


if __name__ == "__main__":
    main()
