"""PyG's algorithms through the adapter are PyG's algorithms, on every kind of model, and leave no
trace; so does any function.
"""

from functools import partial

import numpy as np
import pytest
import torch
from support.small_networks import EncodeDecode, LinkForward, Pooled, Stack, build, random_graph
from torch import nn
from torch_geometric.explain import (
    CaptumExplainer,
    Explainer,
    ExplainerAlgorithm,
    GNNExplainer,
    GraphMaskExplainer,
    PGExplainer,
)
from torch_geometric.nn import GATConv, GCNConv, GraphConv

import graphgauge as gg
from graphgauge.checks.model_checks import fail_if_network_changes
from graphgauge.core.errors import BadExplanation, BadModel, BadSetting, UnknownName
from graphgauge.core.rng_state import temporary_global_seed
from graphgauge.core.seeds import derive_seed
from graphgauge.explainers.pyg_adapter import PyGNetwork, copy_network_adapter, pyg_algorithms

QUICK = {
    "GNNExplainer": {"epochs": 3},
    "GraphMaskExplainer": {"epochs": 2},
    "DummyExplainer": {},
    "CaptumExplainer": {"attribution_method": "GuidedBackprop"},
}


def plain_graph(num_nodes=40, seed=0):
    """Without stored self-loops."""
    data = random_graph(num_nodes, 2 * num_nodes, seed=seed)
    data.edge_index = data.edge_index[:, data.edge_index[0] != data.edge_index[1]]
    return data


# GraphMask counts the loops that a layer drops
MANY = [plain_graph(5 + seed, seed) for seed in range(4)]


class Weighted(nn.Module):
    """Takes edge weights by keyword, behind an argument that data does not have."""

    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([GraphConv(6, 5), GraphConv(5, 4)])

    def forward(self, x, edge_index, scale=None, edge_weight=None):
        return self.convs[1](
            self.convs[0](x, edge_index, edge_weight).relu(), edge_index, edge_weight
        )


def weighted_graph():
    data = random_graph()
    data.edge_weight = torch.rand(data.num_edges, generator=torch.Generator().manual_seed(1))
    return data


MODELS = {
    "node": lambda: (gg.NodeClassificationModel(build(Stack, GCNConv), random_graph()), [3, 59]),
    "one column": lambda: (
        gg.NodeClassificationModel(build(Stack, GCNConv, out=1), random_graph(), output="logits"),
        [3, 59],
    ),
    "log-probabilities": lambda: (
        gg.NodeClassificationModel(build(Stack, GCNConv, final=nn.LogSoftmax(-1)), random_graph()),
        [3, 59],
    ),
    "regression": lambda: (
        gg.NodeRegressionModel(build(Stack, GATConv, out=1), random_graph()),
        [3, 59],
    ),
    "weights": lambda: (gg.NodeClassificationModel(build(Weighted), weighted_graph()), [3, 59]),
    "custom": lambda: (
        gg.NodeClassificationModel(
            build(Stack, GCNConv), random_graph(), forward=lambda net, g: net(g.x, g.edge_index)
        ),
        [3, 59],
    ),
    "encode and decode": lambda: (
        gg.LinkClassificationModel(build(EncodeDecode), random_graph(), output="logits"),
        [(0, 1)],
    ),
    "link": lambda: (
        gg.LinkClassificationModel(build(LinkForward), random_graph()),
        [(0, 1), (59, 58)],
    ),
    "link regression": lambda: (
        gg.LinkRegressionModel(build(LinkForward, out=1), random_graph()),
        [(0, 1)],
    ),
    "graph": lambda: (gg.GraphClassificationModel(build(Pooled), MANY), [0, 3]),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("algorithm", QUICK)
def test_every_algorithm_runs_on_every_kind_of_model_and_leaves_no_trace(algorithm, make):
    model, targets = make()
    explainer = gg.PyGExplainer(algorithm, QUICK[algorithm])
    explainer.explain(model, targets)
    with fail_if_network_changes(model):
        xs = explainer.explain(model, targets, seed=1)
    for x, graph in zip(xs, model.computation_graphs(targets), strict=True):
        assert x.feature_score.shape == (len(graph.nodes), 6)
        assert x.edge_score.shape == (len(graph.edges),)
        assert x.feature_score.isfinite().all()
        assert x.edge_score.isfinite().all()
        assert x.explainer == f"pyg:{algorithm}"


def test_the_adapter_gives_what_pyg_gives():
    data, net = plain_graph(), build(Stack, GCNConv)
    model = gg.NodeClassificationModel(net, data)
    (x,) = gg.PyGExplainer("GNNExplainer", {"epochs": 5}).explain(model, [3], seed=4)
    with temporary_global_seed(derive_seed(x.seed, x.explainer, x.target, x.occurrence)):
        peer = Explainer(
            net,
            algorithm=GNNExplainer(epochs=5),
            explanation_type="model",
            node_mask_type="attributes",
            edge_mask_type="object",
            model_config={
                "mode": "multiclass_classification",
                "task_level": "node",
                "return_type": "raw",
            },
        )(data.x, data.edge_index, index=3)
    assert x.feature_score.equal(peer.node_mask[x.nodes])
    assert x.edge_score.equal(peer.edge_mask[x.edges])


def test_stored_loops_on_every_node_move_no_score():
    data, net = plain_graph(), build(Stack, GCNConv)
    looped = data.clone()
    looped.edge_index = torch.cat([torch.arange(40).repeat(2, 1), data.edge_index], dim=1)
    explainer = gg.PyGExplainer("CaptumExplainer", {"attribution_method": "InputXGradient"})
    (plain,), (with_loops,) = (
        explainer.explain(gg.NodeClassificationModel(net, graph), [3]) for graph in (data, looped)
    )
    assert (with_loops.edge_vector()[40:] - plain.edge_vector()).abs().max() <= 1e-7


@pytest.mark.parametrize("out", [4, 1], ids=["logits", "one column"])
def test_captum_through_the_adapter_equals_our_gradients(out):
    model = gg.NodeClassificationModel(
        build(Stack, GCNConv, out=out), random_graph(), output="logits"
    )
    theirs = gg.PyGExplainer("CaptumExplainer", {"attribution_method": "InputXGradient"}).explain(
        model, range(8)
    )
    ours = gg.InputXGradient(explain_output="logit" if out > 1 else "prob").explain(model, range(8))
    for x, y in zip(theirs, ours, strict=True):
        assert torch.allclose(x.feature_score, y.feature_score, atol=1e-7)
        assert torch.allclose(x.edge_score, y.edge_score, atol=1e-7)


def test_log_probabilities_in_one_column_are_handed_over_as_probabilities():
    net = build(Stack, GCNConv, out=1, final=nn.LogSigmoid())
    model = gg.NodeClassificationModel(net, random_graph(), output="log_probs")
    called = PyGNetwork(copy_network_adapter(model.call), model.whole_data(), model, as_probs=False)
    assert (called.mode, called.kind) == ("binary_classification", "probs")
    rows = called(model.source.x, model.source.edge_index)
    assert torch.allclose(rows[:5, 0], model.pred_continuous(range(5))[:, 1])


def test_names_classes_and_objects_are_taken():
    model = gg.NodeClassificationModel(build(Stack, GCNConv), random_graph())
    by_name, by_class = (
        gg.PyGExplainer(made, {"epochs": 2}) for made in ("GNNExplainer", GNNExplainer)
    )
    by_object = gg.PyGExplainer(GNNExplainer(epochs=2))
    assert by_name == by_class
    assert hash(by_name) == hash(by_class)
    first, second = (
        explainer.explain(model, [3])[0].feature_score for explainer in (by_name, by_object)
    )
    assert first.equal(second)
    assert by_object.algorithm.node_mask is None
    by_function = gg.PyGExplainer(lambda epochs: GNNExplainer(epochs=epochs), {"epochs": 2})
    assert by_function.explain(model, [3])[0].feature_score.isfinite().all()
    assert gg.PyGExplainer(**by_name.params) == by_name
    with pytest.raises(BadSetting, match="hand over the object again"):
        gg.PyGExplainer(**by_object.params)


def test_what_an_algorithm_is_can_be_known_or_said():
    saliency, shapley = (
        gg.PyGExplainer("CaptumExplainer", {"attribution_method": name})
        for name in ("Saliency", "ShapleyValueSampling")
    )
    assert (saliency.signed, saliency.deterministic) == (False, True)
    assert (shapley.signed, shapley.deterministic) == (True, False)
    assert gg.PyGExplainer(CaptumExplainer("Saliency")).signed is False
    said = gg.PyGExplainer("GNNExplainer", is_signed=True, is_deterministic=True)
    assert (said.signed, said.deterministic) == (True, True)

    class Own(ExplainerAlgorithm):
        def forward(self, model, x, edge_index, **kwargs):
            """Nothing."""

        def supports(self):
            return True

    assert gg.PyGExplainer(Own).name == "pyg:Own"
    assert gg.PyGExplainer(Own).signed is False


def test_attention_gives_edges_only():
    model = gg.NodeClassificationModel(build(Stack, GATConv), random_graph())
    (x,) = gg.PyGExplainer("AttentionExplainer").explain(model, [3])
    assert x.feature_score is None
    assert x.edge_score.max() > 0
    with pytest.raises(
        BadSetting, match=r"cannot explain target 3 of .*Could not collect any attention"
    ):
        gg.PyGExplainer("AttentionExplainer").explain(
            gg.NodeClassificationModel(build(Stack, GCNConv), random_graph()), [3]
        )


@pytest.mark.filterwarnings(
    "ignore:Converting a tensor with requires_grad=True to a scalar"
)  # PyG's training loop
def test_an_algorithm_that_needs_training_is_taken_trained():
    data, net = random_graph(), build(Stack, GCNConv)
    model = gg.NodeClassificationModel(net, data)
    with pytest.raises(
        BadSetting, match=r"has to be trained before it explains.*PyGExplainer\(algorithm\)"
    ):
        gg.PyGExplainer("PGExplainer", {"epochs": 2}).explain(model, [3])
    with torch.random.fork_rng():
        torch.manual_seed(0)
        algorithm = PGExplainer(epochs=2)
        peer = Explainer(
            net,
            algorithm=algorithm,
            explanation_type="phenomenon",
            edge_mask_type="object",
            model_config={
                "mode": "multiclass_classification",
                "task_level": "node",
                "return_type": "raw",
            },
        )
        label = net(data.x, data.edge_index).argmax(1)
        for epoch in range(2):
            for index in range(3, 6):
                algorithm.train(epoch, net, data.x, data.edge_index, target=label, index=index)
    (x,) = gg.PyGExplainer(algorithm).explain(model, [3])
    expected = peer(data.x, data.edge_index, target=label, index=3).edge_mask.detach()
    assert torch.allclose(x.edge_score, expected[x.edges])


def test_options_of_one_graphmask_do_not_leak_into_another():
    before = dict(GraphMaskExplainer.coeffs)
    built = gg.PyGExplainer("GraphMaskExplainer", {"node_feat_size": 7.0}).built(
        build(Stack, GCNConv, 3)
    )
    assert built.num_layers == 3
    assert built.coeffs["node_feat_size"] == 7.0
    assert GraphMaskExplainer.coeffs == before
    assert built.log is False


def test_impossible_algorithms_are_refused():
    with pytest.raises(UnknownName, match="Did you mean 'GNNExplainer'"):
        gg.PyGExplainer("GNNExplayner")
    with pytest.raises(BadSetting, match="must be the name, the class or an object"):
        gg.PyGExplainer(3)
    with pytest.raises(BadSetting, match="is built: leave them out"):
        gg.PyGExplainer(GNNExplainer(), {"epochs": 3})
    model = gg.NodeClassificationModel(build(Stack, GCNConv), random_graph())
    with pytest.raises(
        BadSetting, match=r"AttentionExplainer cannot be built with {'heads': 2}: .*'heads'"
    ):
        gg.PyGExplainer("AttentionExplainer", {"heads": 2}).explain(model, [3])
    with pytest.raises(BadSetting, match="with node_mask='object'"):
        gg.PyGExplainer(
            "CaptumExplainer", {"attribution_method": "Saliency"}, node_mask="object"
        ).explain(model, [3])
    assert "ExplainerAlgorithm" not in pyg_algorithms()


def test_a_network_that_writes_into_its_input_gets_copies():
    class Writes(Stack):
        def forward(self, x, edge_index):
            x.mul_(0.5)
            return super().forward(2 * x, edge_index)

    data, explainer = (
        random_graph(),
        gg.PyGExplainer("CaptumExplainer", {"attribution_method": "IntegratedGradients"}),
    )
    models = [gg.NodeClassificationModel(build(make, GCNConv), data) for make in (Stack, Writes)]
    (plain,), (careless,) = (explainer.explain(model, [3]) for model in models)
    assert torch.allclose(plain.feature_score, careless.feature_score, atol=1e-7)


def test_a_network_that_cannot_be_copied_is_told_so():
    net = build(Stack, GCNConv)
    net.kept = net.convs[0].lin.weight * 2  # has a history
    model = gg.NodeClassificationModel(net, random_graph())
    with pytest.raises(BadModel, match=r"Stack cannot be copied: .*Detach the tensors it keeps"):
        gg.PyGExplainer("GNNExplainer").explain(model, [3])


# --- any function ---------------------------------------------------------------------------------


def good():
    return gg.NodeClassificationModel(build(Stack, GCNConv), random_graph())


def on_the_computation_graph(model, target):
    graph = model.computation_graphs([target])[0]
    return graph.nodes[:, None].expand(-1, 6).double(), graph.edges.numpy()


def on_the_whole_graph(model, target):
    return np.arange(60)[:, None].repeat(6, 1), torch.arange(model.source.num_edges)


@pytest.mark.parametrize("function", [on_the_computation_graph, on_the_whole_graph])
def test_scores_of_both_scopes_are_taken(function):
    explainer = gg.CallableExplainer(function, deterministic=True)
    for x in explainer.explain(good(), [3, 59, 17]):
        assert x.feature_score.equal(x.nodes[:, None].expand(-1, 6).float())
        assert x.edge_score.equal(x.edges.float())
        assert x.explainer == function.__name__


def test_one_side_may_be_missing():
    read_only = np.arange(164)[::-1] * 0 + 1
    read_only.setflags(write=False)
    (x,) = gg.CallableExplainer(lambda model, target: (None, read_only[::-1]), name="ones").explain(
        good(), [3]
    )
    assert x.feature_score is None
    assert x.edge_score.sum() == len(x.edges)
    with pytest.raises(BadExplanation, match="neither feature nor edge scores for target 3"):
        gg.CallableExplainer(lambda model, target: (None, None), name="none").explain(good(), [3])
    with pytest.raises(BadExplanation, match="target 5 has scores of other kinds"):
        some = gg.CallableExplainer(
            lambda model, target: (None if target == 5 else np.ones((60, 6)), np.ones(164))
        )
        some.explain(good(), [3, 5])


def test_wrong_shapes_are_refused_with_both_that_fit():
    wrong = gg.CallableExplainer(
        lambda model, target: (np.ones((7, 6)), np.ones(164)), name="wrong"
    )
    expected = (
        r"wrong gave scores of shape \(7, 6\) and \(164,\) for target 3. "
        r"Accepted: \(\d+, 6\) and \(\d+,\) for the computation "
    )
    with pytest.raises(
        BadExplanation, match=expected + r"graph, or \(60, 6\) and \(164,\) for the whole graph"
    ):
        wrong.explain(good(), [3])
    for given, message in ((3, "must return"), (("a", None), "as tensors or arrays, but gave str")):
        with pytest.raises(BadExplanation, match=message):
            gg.CallableExplainer(lambda model, target, given=given: given, name="f").explain(
                good(), [3]
            )


def test_where_both_scopes_have_one_size_the_order_must_be_said():
    data = random_graph(4, 0)
    data.edge_index = torch.tensor([[1, 2, 0], [0, 3, 2]])  # from node 3 back: 2, 0, 1
    model = gg.NodeClassificationModel(build(Stack, GCNConv, 3), data)
    scores = torch.arange(24.0).view(4, 6), None
    with pytest.raises(BadExplanation, match=r"scope='whole graph'\) or scope='computation graph'"):
        gg.CallableExplainer(lambda model, target: scores, name="f").explain(model, [3])
    for scope, expected in (("whole graph", scores[0]), ("computation graph", None)):
        (x,) = gg.CallableExplainer(lambda model, target: scores, name="f", scope=scope).explain(
            model, [3]
        )
        assert x.feature_score.equal(scores[0]) == (expected is None)
        assert x.feature_matrix().equal(scores[0]) == (expected is not None)
    with pytest.raises(BadSetting, match="scope must be"):
        gg.CallableExplainer(lambda model, target: scores, scope="all")


def test_random_draws_are_governed_by_the_seed():
    def draws(model, target):
        return torch.rand(60, 6), np.random.rand(164)

    explainer, model = gg.CallableExplainer(draws), good()
    first, second = explainer.explain(model, [3, 3], seed=1)
    torch.manual_seed(5)
    (again,) = explainer.explain(model, [3], seed=1)
    assert first.feature_score.equal(again.feature_score)
    assert first.edge_score.equal(again.edge_score)
    assert not first.feature_score.equal(second.feature_score)


def test_what_a_function_does_to_the_network_is_undone():
    def careless(model, target):
        model.net.convs[0].bias.data.add_(1.0)
        model.net.requires_grad_(False)
        return None, torch.zeros(164)

    model = good()
    with fail_if_network_changes(model):
        gg.CallableExplainer(careless).explain(model, [3, 4])


def test_params_of_a_function_rebuild_it_where_it_can_be_imported():
    explainer = gg.CallableExplainer("statistics:mean", name="m")
    assert explainer.params["function"] == "statistics:mean"
    assert gg.CallableExplainer(**explainer.params) == explainer
    for function in (
        lambda model, target: None,
        partial(on_the_whole_graph),
        nn.Linear(1, 1),
        "".join,
    ):
        with pytest.raises(BadSetting, match="cannot be imported"):
            gg.CallableExplainer(**gg.CallableExplainer(function).params)
    with pytest.raises(BadSetting, match="must be callable as function"):
        gg.CallableExplainer(3)
