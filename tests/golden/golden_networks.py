"""Small networks with seeded weights on generated graphs, one for each level and task."""

import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, SAGEConv, global_add_pool

import graphgauge as gg

FEATURES, HIDDEN = 5, 6


class NodeNet(nn.Module):
    """Two convolutions with a ReLU in between."""

    def __init__(self, conv=GCNConv, out=3):
        super().__init__()
        self.first, self.last = conv(FEATURES, HIDDEN), conv(HIDDEN, out)

    def forward(self, x, edge_index):
        return self.last(self.first(x, edge_index).relu(), edge_index)


class LinkNet(nn.Module):
    """An encoder and the inner product of the two ends."""

    def __init__(self, conv=SAGEConv):
        super().__init__()
        self.encoder = NodeNet(conv, HIDDEN)

    def encode(self, x, edge_index):
        return self.encoder(x, edge_index)

    def decode(self, z, edge_label_index):
        return (z[edge_label_index[0]] * z[edge_label_index[1]]).sum(-1)


class GraphNet(nn.Module):
    """Two convolutions, the sum over nodes, a linear layer."""

    def __init__(self, conv=GATConv, out=3):
        super().__init__()
        self.encoder, self.lin = NodeNet(conv, HIDDEN), nn.Linear(HIDDEN, out)

    def forward(self, x, edge_index, batch=None):
        return self.lin(global_add_pool(self.encoder(x, edge_index), batch))


def build(make, *args, seed=0):
    """A network with weights from a seed, large enough that predictions differ between targets."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = make(*args).eval()
    with torch.no_grad():
        for name, values in net.named_parameters():
            if "bias" not in name:
                values.mul_(1.5)
    return net


def make_graph(seed=0, nodes=14):
    """A ring with chords, both directions stored, and one isolated node."""
    draw = torch.Generator().manual_seed(seed)
    ring = torch.arange(nodes - 1)
    chords = torch.randint(nodes - 1, (2, nodes // 2), generator=draw)
    edges = torch.cat([torch.stack([ring, ring.roll(1)]), chords], 1)
    edges = edges[:, edges[0] != edges[1]]
    edges = torch.cat([edges, edges.flip(0)], 1).unique(dim=1)
    x = torch.randn(nodes, FEATURES, generator=draw)
    return Data(x=x, edge_index=edges, y=torch.arange(nodes) % 3)


def make_graphs():
    """Six graphs, with a label each."""
    graphs = [make_graph(seed, 8 + seed) for seed in range(6)]
    for number, graph in enumerate(graphs):
        graph.y = torch.tensor([number % 3])
    return graphs


def node_classification(**options):
    return gg.NodeClassificationModel(build(NodeNet, GCNConv, 3), make_graph(), **options)


def node_regression(**options):
    return gg.NodeRegressionModel(build(NodeNet, GATConv, 1, seed=1), make_graph(1), **options)


def link_classification(**options):
    return gg.LinkClassificationModel(build(LinkNet, SAGEConv, seed=2), make_graph(2), **options)


def link_regression(**options):
    return gg.LinkRegressionModel(build(LinkNet, GCNConv, seed=3), make_graph(3), **options)


def graph_classification(**options):
    net, graphs = build(GraphNet, GATConv, 3, seed=4), make_graphs()
    with torch.no_grad():  # so that classes differ
        rows = torch.stack([net(graph.x, graph.edge_index)[0] for graph in graphs])
        net.lin.bias.sub_(rows.mean(0))
    return gg.GraphClassificationModel(net, graphs, **options)


def graph_regression(**options):
    return gg.GraphRegressionModel(build(GraphNet, SAGEConv, 1, seed=5), make_graphs(), **options)


#: a maker of each model, and the targets that are explained
MODELS = {
    "node_classification": (node_classification, [1, 4, 9]),
    "node_regression": (node_regression, [0, 5, 9]),
    "link_classification": (link_classification, [(0, 1), (3, 8), (6, 2)]),
    "link_regression": (link_regression, [(0, 1), (4, 9), (7, 2)]),
    "graph_classification": (graph_classification, [0, 2, 5]),
    "graph_regression": (graph_regression, [1, 3, 4]),
}


def write_project(folder, **changes):
    """Write a project about the node classification model; return the path of its project file."""
    import yaml
    from safetensors.torch import save_model

    from graphgauge.datasets import save_graph

    data = make_graph()
    data.class_names, data.feature_names = (
        ["low", "mid", "high"],
        ["income", "age", "debt", "terms", "score"],
    )
    save_model(build(NodeNet, GCNConv, 3), folder / "weights.safetensors")
    save_graph(data, folder / "graph.safetensors")
    keys = {
        "name": "golden",
        "model": "golden_networks:NodeNet",
        "weights": "weights.safetensors",
        "data": "graph.safetensors",
        "level": "node",
        "task": "classification",
        "explainers": [
            "saliency",
            "input_x_gradient",
            {"name": "gnn_explainer", "parameters": {"epochs": 5}},
            "random",
        ],
        "settings": {
            "trials": [5, 20],
            "twin_trials": 8,
            "calls": 4,
            "permutations": 4,
            "timed": 0,
            "cap": 20,
        },
        "targets": list(range(12)),
        "device": "cpu",
    }
    path = folder / "project.yaml"
    path.write_text(yaml.safe_dump({**keys, **changes}))
    return path


def score_by_value(model, target):
    """Scores for `CallableExplainer`: a feature's value, an edge's position."""
    graph = model.computation_graphs([target])[0]
    return model.source.x[graph.nodes], torch.linspace(-1, 1, len(graph.edges))
