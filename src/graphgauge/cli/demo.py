"""The demo: from a generated graph to predictions, what decides them, which explainer says so best,
and the report.
"""

import json
import time
from typing import Annotated, Any

import typer
from torch import Tensor
from torch_geometric.data import Data

from graphgauge.core import JsonObject, Xplanation
from graphgauge.datasets import accuracy, ba_shapes, trained_gcn
from graphgauge.evaluation import Evaluator, Results
from graphgauge.explainers import GNNExplainer, InputXGradient, IntegratedGradients, RandomExplainer
from graphgauge.guidelines import Requirements, recommend
from graphgauge.models import NodeClassificationModel
from graphgauge.subgraphs import ComputationGraph, parse_targets

_EMPTY_COMPARISON: JsonObject = {
    "explainers": {},
    "measured_on": 0,
    "recommendation": None,
    "report": None,
}
_DEMO_REQUIREMENTS = Requirements("node_classification")
_DEMO_EXPLAINERS = (
    InputXGradient(),
    IntegratedGradients(),
    GNNExplainer(epochs=50),
    RandomExplainer(),
)
_SHOWN_METRICS = {
    "feature_pertinence": "pertinence of features",
    "edge_pertinence": "of edges",
    "feature_ec": "features to a change",
    "edge_ec": "edges",
    "feature_stability": "stability of features",
    "edge_stability": "of edges",
}


def _run_demo(
    targets: list[Any], seed: int, report: str = "report.html", number: int = 20
) -> JsonObject:
    """Make the graph, train, wrap, show ``targets``, and measure explainers on them and on others,
    ``number`` in all.
    """
    data = ba_shapes(seed)
    parse_targets(targets, "node", data.num_nodes)  # a wrong target is told before the training
    start = time.perf_counter()
    net = trained_gcn(data, seed=seed)
    seconds = time.perf_counter() - start
    model = NodeClassificationModel(net, data)
    graphs, prob = model.computation_graphs(targets), model.pred_continuous(targets)
    gap = (prob - model.pred_copies(graphs)).abs()
    score = {part: accuracy(net, data, data[f"{part}_mask"]) for part in ("train", "val", "test")}
    return {
        "nodes": data.num_nodes,
        "edges": data.num_edges,
        "accuracy": score,
        "training_seconds": seconds,
        "model": model.record(),
        "largest_difference": float(gap.max()) if len(targets) else None,
        "targets": [
            _describe_target(graph, row, data) | _strongest_edge(x, data)
            for graph, row, x in zip(
                graphs, prob, IntegratedGradients().explain(model, targets), strict=True
            )
        ],
        **(
            _summarise_comparison(_measure_explainers(model, targets, seed, number), report)
            if len(targets)
            else _EMPTY_COMPARISON
        ),
    }


def _summarise_comparison(results: Results, report: str) -> JsonObject:
    """The means of each explainer, which one to use and why, and where the report is."""
    means = results.summary()["mean"]
    chosen = recommend(results, _DEMO_REQUIREMENTS)[0]
    return {
        "explainers": {
            name: {
                metric: round(float(means[name, metric]), 6)
                for metric in _SHOWN_METRICS
                if means[name, metric] == means[name, metric]
            }
            for name in dict.fromkeys(row.explainer for row in results.rows)
        },
        "measured_on": len({row.target for row in results.rows}),
        "recommendation": {
            "chosen": chosen.chosen,
            "reason": chosen.reason,
            "others": chosen.others,
        },
        "report": _write_report(results, report),
    }


def _write_report(results: Results, path: str) -> str:
    """The path of the report."""
    results.report(title="The demo: a GCN on BA-Shapes").save(path)
    return path


def _measure_explainers(
    model: NodeClassificationModel, targets: list[Any], seed: int, number: int
) -> Results:
    """All seven metrics of four explainers."""
    evaluator = Evaluator(
        model, seed=seed, trials=(30, 30), early_stop="none", stability="binomial", timed=2
    )
    others = [target for target in evaluator.sample(number) if target not in targets]
    return evaluator.compare(
        list(_DEMO_EXPLAINERS), [*targets, *others[: max(0, number - len(targets))]]
    )


def _describe_target(graph: ComputationGraph, prob: Tensor, data: Data) -> JsonObject:
    """One target: what is predicted, and what can have an influence on it."""
    return {
        "target": graph.target,
        "label": data.class_names[int(data.y[graph.target])],
        "prediction": data.class_names[int(prob.argmax())],
        "probability": float(prob.max()),
        "nodes": len(graph.nodes),
        "relevant_edges": len(graph.edges),
        "halo_edges": len(graph.all_edges) - len(graph.edges),
    }


def _strongest_edge(x: Xplanation, data: Data) -> JsonObject:
    """The edge whose messages raise the probability most, by integrated gradients; None for a
    target without edges.
    """
    if not len(x.edges):
        return {"strongest_edge": None}
    return {"strongest_edge": data.edge_index[:, x.edges[x.need("edge_score").argmax()]].tolist()}


def _demo_json(shown: JsonObject) -> str:
    """The result for programs."""
    return json.dumps(shown, indent=2, allow_nan=False)


def _edge_text(edge: list[int] | None) -> str:
    """An edge for people: '304 -> 302', or a dash."""
    return "-" if edge is None else f"{edge[0]} -> {edge[1]}"


def _demo_text(shown: JsonObject) -> str:
    """The result for people."""
    score, model = shown["accuracy"], shown["model"]
    lines = [
        f"BA-Shapes: {shown['nodes']} nodes, {shown['edges']} directed edges, 4 classes",
        f"GCN trained in {shown['training_seconds']:.1f} s: accuracy {score['train']:.2f} train, "
        f"{score['val']:.2f} validation, {score['test']:.2f} test",
        (
            f"Messages travel {model['hops']} hops; extracted graphs carry the halo "
            f"{model['halo']!r}; copies run {model['copies']}"
        ),
        "",
        "target  label   predicted  probability  nodes  relevant edges  halo edges  strongest edge",
    ]
    lines += [
        f"{row['target']:>6}  {row['label']:<6}  {row['prediction']:<9}  "
        f"{row['probability']:>11.3f}  {row['nodes']:>5}  {row['relevant_edges']:>14}  "
        f"{row['halo_edges']:>10}  {_edge_text(row['strongest_edge']):>14}"
        for row in shown["targets"]
    ]
    if shown["largest_difference"] is not None:
        gap = shown["largest_difference"]
        lines += [
            "",
            (
                f"Extracted graphs and the whole graph differ by {gap:.1e} of a probability at "
                "most (allowed: 1e-5)"
            ),
        ]
    if shown["explainers"]:
        lines += [
            "",
            (
                f"Measured on {shown['measured_on']} targets (pertinence: chance is about 0.4, 1 "
                "is best)"
            ),
            "",
        ]
        lines += ["explainer             " + "  ".join(_SHOWN_METRICS.values())]
        lines += [
            f"{name:<22}"
            + "  ".join(
                _number_cell(row.get(metric), len(title))
                for metric, title in _SHOWN_METRICS.items()
            )
            for name, row in shown["explainers"].items()
        ]
    return "\n".join([*lines, *_recommendation_lines(shown)])


def _number_cell(value: float | None, width: int) -> str:
    """A number under its title; a dash where there is none."""
    return f"{'-' if value is None else f'{value:.2f}':>{width}}"


def _recommendation_lines(shown: JsonObject) -> list[str]:
    """Which explainer, why, and where to read on."""
    chosen = shown["recommendation"]
    if chosen is None:
        return []
    lines = ["", f"Recommended: {chosen['chosen']}", f"  because {chosen['reason']}"]
    lines += [f"  not {other}: {why}" for other, why in chosen["others"].items()]
    return [*lines, "", f"Report: {shown['report']}"]


def _parse_node_list(text: str) -> list[int | str]:
    """Comma-separated numbers; what is no number stays text, so that the library can refuse it by
    name.
    """
    return [_parse_node(part.strip()) for part in text.split(",") if part.strip()]


def _parse_node(text: str) -> int | str:
    """A whole number, or the text as it is."""
    try:
        return int(text)
    except ValueError:
        return text


def demo_command(
    targets: Annotated[
        str, typer.Option(help="Nodes to look at, such as 0,302,510.")
    ] = "0,302,510,604,699",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the graph and of the training.")] = 1,
    report: Annotated[str, typer.Option(help="Where the report goes.")] = "report.html",
    number: Annotated[int, typer.Option(min=1, help="Targets to measure explainers on.")] = 20,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Train a small GCN on a generated BA-Shapes graph, show what decides its predictions, and
    which explainer says so best.
    """
    shown = _run_demo(_parse_node_list(targets), seed, report, number)
    typer.echo(_demo_json(shown) if json else _demo_text(shown))
