"""Models of every kind, settings that are quick, and how results are compared, for several files of
tests.
"""

import torch
from torch_geometric.nn import GATConv, GCNConv

import graphgauge as gg
from support.small_networks import EncodeDecode, Pooled, Stack, build, random_graph

QUICK = {"trials": (4, 12), "twin_trials": 5, "timed": 0, "permutations": 3}
EXPLAINERS = [gg.Saliency(), gg.RandomExplainer(), gg.GNNExplainer(epochs=2)]


def node_model(**options):
    return gg.NodeClassificationModel(
        build(Stack, GCNConv, seed=4), random_graph(undirected=True), **options
    )


def values_model(**options):
    return gg.NodeRegressionModel(build(Stack, GATConv, out=1), random_graph(), **options)


def link_model(**options):
    return gg.LinkClassificationModel(
        build(EncodeDecode, seed=2), random_graph(undirected=True), **options
    )


def graph_model(**options):
    net, data = build(Pooled), [random_graph(12 + k, 24, seed=k) for k in range(6)]
    with torch.no_grad():
        # so that classes differ
        net.lin.bias -= torch.stack([net(g.x, g.edge_index)[0] for g in data]).mean(0)
    return gg.GraphClassificationModel(net, data, **options)


MODELS = {
    "nodes": (node_model, [3, 20, 41]),
    "values": (values_model, [3, 20, 41]),
    "links": (link_model, [(3, 20), (41, 5)]),
    "graphs": (graph_model, [4, 0, 2]),
}


def numbers(results, metrics=None):
    """Everything but clocks, by (explainer, target, occurrence, metric)."""
    return {
        (row.explainer, row.target, row.occurrence, row.metric): row.cell
        for row in results.rows
        if not row.metric.startswith("time") and (metrics is None or row.metric in metrics)
    }


def shared(first, second):
    """The numbers that two evaluations both have, twice; there must be some."""
    keys = first.keys() & second.keys()
    assert keys
    return {key: first[key] for key in keys}, {key: second[key] for key in keys}


def cells_of(results):
    """Cells of one explanation by metric."""
    return {row.metric: row.cell for row in results.rows}


def constant_scores(model, target):
    graph = model.computation_graphs([target])[0]
    return torch.ones(len(graph.nodes), 6), torch.ones(len(graph.edges))
