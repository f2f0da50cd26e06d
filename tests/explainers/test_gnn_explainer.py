"""GNNExplainer is PyG's, started from the same masks, for every instance of a batch."""

import pytest
import torch
from support.planted_networks import decisive
from support.small_networks import LinkForward, Pooled, Stack, build, mlp, random_graph
from torch import nn
from torch_geometric.explain import Explainer
from torch_geometric.explain import GNNExplainer as PyGExplainer
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv

import graphgauge as gg
from graphgauge.core.counter_rng import normal_at, random_streams
from graphgauge.core.errors import BadSetting
from graphgauge.core.seeds import derive_seed

LAYERS = {"GCN": GCNConv, "GAT": GATConv, "SAGE": SAGEConv, "GIN": lambda a, b: GINConv(mlp(a, b))}


class StartedPeer(PyGExplainer):
    """PyG's own, with the masks' start given."""

    def __init__(self, node_mask, edge_mask, **kwargs):
        super().__init__(**kwargs)
        self.start = node_mask, edge_mask

    def _initialize_masks(self, x, edge_index):
        self.node_mask, self.edge_mask = (nn.Parameter(start.clone()) for start in self.start)


def bag_of_words(seed=0, num_nodes=40):
    """Features that are mostly 0, and no stored self-loops (whose masks PyG keeps)."""
    data = random_graph(num_nodes, 2 * num_nodes, seed=seed, dtype=torch.float64)
    data.edge_index = data.edge_index[:, data.edge_index[0] != data.edge_index[1]]
    data.x = data.x * (data.x > 0.3)
    return data


def start_of(x, data):
    """The random start as it is documented: normal numbers for the features that are not 0, node by
    node, and for the edges.
    """
    features, edges = torch.zeros_like(data.x), torch.zeros(data.num_edges, dtype=torch.float64)
    seed = derive_seed(x.seed, x.explainer, x.target, x.occurrence)
    drawn = iter(randn(seed, "features", int((data.x[x.nodes] != 0).sum())))
    for node in x.nodes.tolist():
        for column in range(data.x.size(1)):
            if data.x[node, column] != 0:
                features[node, column] = 0.1 * next(drawn)
    edges[x.edges] = randn(seed, "edges", len(x.edges)) * (2 / data.num_nodes) ** 0.5
    return features, edges


def randn(seed, purpose, count):
    return normal_at(
        random_streams(torch.full((count,), derive_seed(seed, purpose)), torch.arange(count)), 0
    )


def peer_for(net, x, data, level, mode="multiclass_classification", **kwargs):
    return Explainer(
        net,
        algorithm=StartedPeer(*start_of(x, data), **kwargs),
        explanation_type="model",
        node_mask_type="attributes",
        edge_mask_type="object",
        model_config={"mode": mode, "task_level": level, "return_type": "raw"},
    )


def assert_equal(x, reference, tolerance=1e-9):
    assert (x.feature_matrix() - reference.node_mask).abs().max() <= tolerance
    assert (x.edge_vector() - reference.edge_mask).abs().max() <= tolerance


@pytest.mark.numeric
@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_every_node_of_a_batch_gets_pygs_masks(layer):
    data, net = bag_of_words(), build(Stack, layer, dtype=torch.float64)
    for x in gg.GNNExplainer().explain(
        gg.NodeClassificationModel(net, data), [0, 3, 3, 7, 21, 30], seed=5
    ):
        assert_equal(x, peer_for(net, x, data, "node")(data.x, data.edge_index, index=x.target))


@pytest.mark.numeric
def test_links_get_pygs_masks():
    data, net = bag_of_words(), build(LinkForward, dtype=torch.float64)
    for x in gg.GNNExplainer(epochs=30).explain(
        gg.LinkClassificationModel(net, data), [(0, 5), (7, 3), (21, 2)]
    ):
        pair = torch.tensor([x.target]).t()
        assert_equal(
            x,
            peer_for(net, x, data, "edge", epochs=30)(
                data.x, data.edge_index, edge_label_index=pair
            ),
        )


@pytest.mark.numeric
def test_graphs_get_pygs_masks():
    data, net = (
        [bag_of_words(seed, 6 + seed) for seed in range(4)],
        build(Pooled, dtype=torch.float64),
    )
    for graph, x in zip(
        data,
        gg.GNNExplainer(epochs=30).explain(gg.GraphClassificationModel(net, data), range(4)),
        strict=True,
    ):
        assert_equal(x, peer_for(net, x, graph, "graph", epochs=30)(graph.x, graph.edge_index))


@pytest.mark.numeric
def test_regression_gets_pygs_masks():
    data, net = bag_of_words(), build(Stack, GCNConv, out=1, dtype=torch.float64)
    for x in gg.GNNExplainer(epochs=30).explain(gg.NodeRegressionModel(net, data), range(6)):
        assert_equal(
            x,
            peer_for(net, x, data, "node", "regression", epochs=30)(
                data.x, data.edge_index, index=x.target
            ),
        )


@pytest.mark.numeric
def test_one_logit_gets_pygs_masks():
    data, net = bag_of_words(), build(Stack, GCNConv, out=1, dtype=torch.float64)
    model = gg.NodeClassificationModel(net, data, output="logits")
    for x in gg.GNNExplainer(epochs=30).explain(model, range(6)):
        assert_equal(
            x,
            peer_for(net, x, data, "node", "binary_classification", epochs=30)(
                data.x, data.edge_index, index=x.target
            ),
        )


@pytest.mark.numeric
def test_other_coefficients_are_pygs_too():
    data, net = bag_of_words(), build(Stack, GCNConv, dtype=torch.float64)
    other = {
        "edge_size": 0.3,
        "edge_ent": 0.2,
        "node_feat_size": 0.4,
        "node_feat_ent": 0.7,
        "lr": 0.05,
        "epochs": 40,
    }
    for x in gg.GNNExplainer(**other).explain(gg.NodeClassificationModel(net, data), range(6)):
        assert_equal(
            x, peer_for(net, x, data, "node", **other)(data.x, data.edge_index, index=x.target)
        )


def test_features_that_are_zero_and_paths_that_are_dead_score_exactly_zero():
    """PyG leaves them at their random start; here they tie at 0."""
    data = bag_of_words()
    for x in gg.GNNExplainer(epochs=5).explain(
        gg.NodeClassificationModel(build(Stack, GCNConv, dtype=torch.float64), data), range(10)
    ):
        assert (x.feature_score[data.x[x.nodes] == 0] == 0).all()
        assert ((x.feature_score >= 0) & (x.feature_score < 1)).all()


@pytest.mark.numeric
def test_a_decisive_edge_and_a_decisive_feature_come_out_on_top():
    planted = decisive()
    for x in gg.GNNExplainer().explain(planted.model, [planted.target] * 20):
        planted.assert_on_top(x)


def test_impossible_epochs_are_refused():
    for epochs in (0, 1.5, True):
        with pytest.raises(BadSetting, match="epochs must be a whole number"):
            gg.GNNExplainer(epochs=epochs)
