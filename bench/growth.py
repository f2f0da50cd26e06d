"""How the seconds of `Evaluator.compare` grow with targets, edges of the graph, trials and
explainers.

    python bench/growth.py [--device cuda] [--quick] [--write FOLDER] [--targets 10 100 1000]
                           [--edges 100000 1000000] [--trials 10 30] [--explainers 1 2]

Each series changes one size and keeps the others. Graph and network are those of
`large_graph`: power-law degrees, 10 edges a node, 64 dense features, a GraphSAGE of two layers.

    targets      Targets that no earlier call has seen. Seconds should grow in proportion.
    edges        A new graph for each size, so seconds should stay the same. To wrap the network and
                 sort the edges, and the first call, which computes the predictions of all nodes,
                 grow with the graph. They are done once for each model and listed beside it.
    trials       Random curves of each kind, and pairs of explanations, without early stopping.
    explainers   The random explainer under several names, each of which draws for itself.

There are two configurations:

    paper   The preset "paper" with InputXGradient and the random explainer (in the series of trials
            and explainers with the random explainer alone).
    short   The same two explainers, but no Stability, no Time, no calibrated twins, 10 random
            curves and at most 20 edits. It exists for many targets, where "paper" takes long.

A call of each configuration on two targets warms up. The picture has seconds for each item at the
ends of its lines. Without ``--device cuda``, numbers of targets are smaller in all series but the
first. ``--write`` saves a table, `growth.csv`, and a picture,
`growth.png`.
"""

import argparse
import csv
import gc
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from large_graph import compare, power_law_graph, synchronise, wrapped_sage

import graphgauge as gg
from graphgauge.core import make_generator
from graphgauge.evaluation import SettingChanges

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EDGES_PER_NODE = 10
PAIR: Mapping[str, gg.BaseExplainer] = {
    "input_x_gradient": gg.InputXGradient(),
    "random": gg.RandomExplainer(),
}
SHORT: SettingChanges = {
    "stability": "none",
    "timed": 0,
    "twins": False,
    "trials": (10, 10),
    "early_stop": "none",
    "cap": 20,
}
SERIES_TITLES = {
    "targets": "Targets",
    "edges": "Edges of the graph",
    "trials": "Trials",
    "explainers": "Explainers",
}


@dataclass(frozen=True)
class Sizes:
    """The sizes of one run.

    Args:
        targets: Numbers of targets of the first series.
        paper_targets: The largest of them that is also measured by the configuration "paper".
        edges: Sizes of graphs of the second series.
        trials: Numbers of random curves of the third series.
        explainers: Numbers of explainers of the fourth series.
        base_edges: Edges of the graph in all series but the second.
        base_targets: Targets in all series but the first.
    """

    targets: tuple[int, ...]
    paper_targets: int
    edges: tuple[int, ...]
    trials: tuple[int, ...] = (10, 30, 100)
    explainers: tuple[int, ...] = (1, 2, 4, 8)
    base_edges: int = 1_000_000
    base_targets: int = 100


MANY_TARGETS = (10, 30, 100, 300, 1_000, 3_000, 10_000)
FULL = {
    "cuda": Sizes(MANY_TARGETS, 1_000, (10**5, 10**6, 10**7, 10**8)),
    "cpu": Sizes(MANY_TARGETS, 30, (10**5, 10**6, 10**7), base_targets=20),
}
QUICK = Sizes((10, 30, 100), 10, (10**4, 10**5, 10**6), (10, 30), (1, 2, 4), 10**5, 5)


@dataclass(frozen=True)
class Measurement:
    """One call of `compare`.

    Args:
        series: The size that is changed: "targets", "edges", "trials" or "explainers".
        size: The number of them.
        configuration: "paper" or "short".
        num_targets: Number of targets.
        num_edges: Edges of the whole graph.
        mean_edges: Edges in the computation graph of a target, mean over the targets.
        seconds: Seconds of the call.
        wrapping: Seconds to wrap the network and to sort the edges of this graph.
        first_call: Seconds of the first call on this graph: "short", two targets.
    """

    series: str
    size: int
    configuration: str
    num_targets: int
    num_edges: int
    mean_edges: float
    seconds: float
    wrapping: float
    first_call: float

    @property
    def seconds_per_item(self) -> float:
        """Seconds for each target, or for each trial or explainer where these are changed."""
        return self.seconds / (self.num_targets if self.series == "edges" else self.size)


class Graph:
    """A wrapped network on a graph of a given size, warmed up, and targets in random order.

    Args:
        num_edges: Edges of the graph.
        device: Where the graph lies.
    """

    def __init__(self, num_edges: int, device: str) -> None:
        data = power_law_graph(num_edges // EDGES_PER_NODE, num_edges).to(device)
        order = torch.randperm(data.num_nodes or 0, generator=make_generator(1))
        self.num_edges, self._order, self._used = num_edges, order, 0
        synchronise()
        start = time.perf_counter()
        self.model = wrapped_sage(data)
        self.model.computation_graphs(self.draw(1))
        synchronise()
        self.wrapping = time.perf_counter() - start
        self.first_call = compare(self.model, PAIR, self.draw(2), **SHORT)
        compare(self.model, PAIR, self.draw(2))

    def draw(self, count: int) -> list[int]:
        """Targets that were not drawn before."""
        first, self._used = self._used, self._used + count
        if self._used > len(self._order):
            raise SystemExit(
                f"{self._used} targets were asked for, but the graph has {len(self._order)} nodes. "
                "Choose a larger --base-edges or fewer --targets."
            )
        return self._order[first : self._used].tolist()

    def measure(
        self,
        series: str,
        size: int,
        configuration: str,
        targets: list[int],
        settings: SettingChanges,
        explainers: Mapping[str, gg.BaseExplainer] = PAIR,
    ) -> Measurement:
        """Time one call of `compare`."""
        seconds = compare(self.model, explainers, targets, **settings)
        return Measurement(
            series,
            size,
            configuration,
            len(targets),
            self.num_edges,
            float(self.model.computation_graphs(targets).num_edges.double().mean()),
            seconds,
            self.wrapping,
            self.first_call,
        )


def measure_all(sizes: Sizes, device: str) -> Iterator[Measurement]:
    """All series, one call after another."""
    for num_edges in sizes.edges:
        release_memory()
        graph = Graph(num_edges, device)
        targets = graph.draw(sizes.base_targets)
        yield graph.measure("edges", num_edges, "paper", targets, {})
        del graph
    release_memory()
    graph = Graph(sizes.base_edges, device)
    for count in sizes.targets:
        yield graph.measure("targets", count, "short", graph.draw(count), SHORT)
    for count in sizes.targets:
        if count <= sizes.paper_targets:
            yield graph.measure("targets", count, "paper", graph.draw(count), {})
    targets = graph.draw(sizes.base_targets)
    many = {f"random {number}": gg.RandomExplainer() for number in range(max(sizes.explainers))}
    one = dict(list(many.items())[:1])
    compare(graph.model, one, targets, **SHORT)  # all calls below find the same graphs extracted
    for count in sizes.trials:
        fixed: SettingChanges = {
            "trials": (count, count),
            "twin_trials": count,
            "feature_trials": count,
            "early_stop": "none",
        }
        yield graph.measure("trials", count, "paper", targets, fixed, one)
    for count in sizes.explainers:
        chosen = dict(list(many.items())[:count])
        yield graph.measure("explainers", count, "paper", targets, {}, chosen)


def release_memory() -> None:
    """Give back what the last graph held."""
    gc.collect()
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def table_row(point: Measurement) -> str:
    """One line of the table that is printed."""
    cells = [
        point.series,
        f"{point.size:,}",
        point.configuration,
        f"{point.num_targets:,}",
        f"{point.num_edges:,}",
        f"{point.mean_edges:.0f}",
        f"{point.seconds:.2f}",
        f"{point.seconds_per_item:.4f}",
        f"{point.wrapping:.2f}",
        f"{point.first_call:.2f}",
    ]
    return f"| {' | '.join(cells)} |"


TABLE_HEAD = (
    "| series | size | configuration | targets | edges | edges in a computation graph | seconds "
    "| seconds per item | wrapping | first call |\n" + "|---" * 10 + "|"
)


def write_csv(points: list[Measurement], path: Path) -> None:
    """One row for each call."""
    names = [field.name for field in fields(Measurement)]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*names, "seconds_per_item"])
        writer.writeheader()
        writer.writerows(
            {**asdict(point), "seconds_per_item": point.seconds_per_item} for point in points
        )


def draw_picture(points: list[Measurement], title: str, path: Path) -> None:
    """Four panels, one for each series; both axes are logarithmic."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 6.4), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, series in zip(figure.subplots(2, 2).ravel(), SERIES_TITLES, strict=True):
        _draw_panel(axes, series, [point for point in points if point.series == series])
    figure.suptitle(title, fontsize=10)
    figure.savefig(path, dpi=150)


def _draw_panel(axes: "Axes", series: str, points: list[Measurement]) -> None:
    """The seconds of one series, and what is to be compared with them."""
    from graphgauge.plots.colours import BLUE, GREEN, GREY, VERMILION

    for name, colour, marker in (("paper", BLUE, "o"), ("short", VERMILION, "s")):
        own = [point for point in points if point.configuration == name]
        if own:
            sizes, seconds = [point.size for point in own], [point.seconds for point in own]
            axes.plot(sizes, seconds, color=colour, marker=marker, label=f'compare, "{name}"')
            expected = [seconds[0] * size / sizes[0] for size in sizes]
            if series != "edges":
                axes.plot(sizes, expected, color=GREY, linestyle=":", zorder=1)
                _write_seconds_per_item(axes, own, colour)
    sizes = [point.size for point in points]
    if series == "edges":
        wrapping, first_call = [p.wrapping for p in points], [p.first_call for p in points]
        axes.plot(sizes, wrapping, color=GREEN, marker="^", linestyle="--", label="wrapping, once")
        axes.plot(sizes, first_call, color=GREY, marker="D", linestyle="--", label="first call")
    else:
        axes.plot([], [], color=GREY, linestyle=":", label="in proportion")
    _draw_axes(axes, series, sorted(set(sizes)))
    axes.legend(frameon=False, fontsize=8, loc="best")


def _write_seconds_per_item(axes: "Axes", points: list[Measurement], colour: str) -> None:
    """Write the seconds for each item beside the first and the last point of a line."""
    for point, offset, side in ((points[0], (8, -4), "left"), (points[-1], (-8, 2), "right")):
        milliseconds = 1000 * point.seconds_per_item
        axes.annotate(
            f"{milliseconds:,.0f} ms each" if milliseconds > 100 else f"{milliseconds:.3g} ms each",
            (point.size, point.seconds),
            xytext=offset,
            textcoords="offset points",
            horizontalalignment=side,
            verticalalignment="top" if side == "left" else "bottom",
            fontsize=8,
            color=colour,
        )
        if len(points) == 1:
            return


def _draw_axes(axes: "Axes", series: str, sizes: list[int]) -> None:
    """Logarithmic axes with plain numbers; the upright one spans a factor of 10 at least."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    axes.set(xscale="log", yscale="log", xlabel=SERIES_TITLES[series], ylabel="seconds")
    low, high = axes.get_ylim()
    middle = (low * high) ** 0.5
    axes.set_ylim(min(low / 1.3, middle / 10**0.5), max(high * 1.2, middle * 10**0.5))
    plain = FuncFormatter(lambda value, _: f"{value:,.10g}")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(plain)
    axes.set_xticks(sizes)
    axes.minorticks_off()
    if series != "edges":
        axes.xaxis.set_major_formatter(plain)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#DDDDDD", linewidth=0.5)
    axes.set_axisbelow(True)


def chosen_sizes(options: argparse.Namespace) -> Sizes:
    """The sizes of this device, with those that were asked for."""
    sizes = QUICK if options.quick else FULL["cuda" if options.device != "cpu" else "cpu"]
    asked = {
        field.name: getattr(options, field.name)
        for field in fields(Sizes)
        if getattr(options, field.name) is not None
    }
    return Sizes(**{**asdict(sizes), **asked})


def parse_options(arguments: list[str] | None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--quick", action="store_true", help="small sizes, about a minute")
    parser.add_argument("--targets", type=int, nargs="+")
    parser.add_argument("--paper-targets", type=int, help='most targets of "paper"')
    parser.add_argument("--edges", type=int, nargs="+")
    parser.add_argument("--trials", type=int, nargs="+")
    parser.add_argument("--explainers", type=int, nargs="+")
    parser.add_argument("--base-edges", type=int, help="edges where another size is changed")
    parser.add_argument("--base-targets", type=int, help="targets where another size is changed")
    parser.add_argument("--write", type=Path, metavar="FOLDER")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    """Measure, print and write."""
    options = parse_options(arguments)
    warnings.simplefilter("ignore")
    start = time.perf_counter()
    is_gpu = options.device != "cpu"
    machine = (
        torch.cuda.get_device_name(0) if is_gpu else f"CPU (threads: {torch.get_num_threads()})"
    )
    title = f"Evaluator.compare on {machine}, torch {torch.__version__}"
    print(f"{title}\n\n{TABLE_HEAD}", flush=True)
    points = []
    for point in measure_all(chosen_sizes(options), options.device):
        points.append(point)
        print(table_row(point), flush=True)
    print(f"\n{time.perf_counter() - start:.0f} s in all")
    if is_gpu:
        print(f"peak memory {torch.cuda.max_memory_allocated() / 2**30:.2f} GiB")
    if options.write:
        options.write.mkdir(parents=True, exist_ok=True)
        write_csv(points, options.write / "growth.csv")
        draw_picture(points, title, options.write / "growth.png")


if __name__ == "__main__":
    main()
