"""Memory of packed explanations and of Stability, counted in live bytes.

Counted is what is allocated while a call runs and not freed: unions of copies, computation graphs
and their ids, packed scores, random numbers, temporaries. Not counted are the model and its data,
which exist before.
"""

import gc

import pytest
import torch
from support.live_memory import Live
from support.small_networks import FEATURES, Stack, build, random_graph
from torch_geometric.data import Data
from torch_geometric.nn import GCN, SAGEConv

import graphgauge as gg
from graphgauge.evaluation import stability
from graphgauge.evaluation.repeated_scores import RepeatedScores
from graphgauge.evaluation.settings import settings_from_preset

BUDGET = 16 * 2**20
EXPLAINERS = [gg.RandomExplainer(), gg.GNNExplainer(epochs=2)]


def model_with_hub():
    """300 nodes with 50 features. Node 7 receives from half of them, so that many computation
    graphs hold most of the graph.
    """
    random = torch.Generator().manual_seed(0)
    edges = torch.randint(300, (2, 900), generator=random)
    edges[1, :150] = 7
    data = Data(x=torch.rand(300, 50, generator=random), edge_index=edges)
    net = build(lambda: GCN(50, 16, 2, 4))
    return gg.NodeClassificationModel(net, data, output="logits", memory_budget=BUDGET)


@pytest.fixture
def calls(monkeypatch):
    """How many explanations each call of `explain` in Stability makes."""
    sizes = []
    pack = stability._pack_sides

    def counted(xs, graphs, count):
        sizes.append(len(xs))
        return pack(xs, graphs, count)

    monkeypatch.setattr(stability, "_pack_sides", counted)
    return sizes


@pytest.mark.parametrize("explainer", EXPLAINERS, ids=lambda explainer: explainer.name)
@pytest.mark.parametrize("form", ["pairs", "binomial"])
def test_stability_stays_inside_the_budget(explainer, form, calls):
    """It hands back a few numbers for each target, so there is nothing beside the budget.

    The explanations of all 60 targets would take more than the budget, had they one call.
    """
    model = model_with_hub()
    settings = settings_from_preset("paper", trials=(30, 30), calls=40, stability=form)
    with model.session():
        explainer.explain(model, [8, 9])  # what is found out about a network once
        with Live() as live:
            found = stability.measure_stability(explainer, model, list(range(60)), settings, 0)
    assert len(found) == 60
    assert len(calls) > 1, "a budget that forces several calls must be tested"
    assert max(calls) > 200, "a budget that allows many targets in a call must be used"
    assert BUDGET / 4 < live.peak <= BUDGET


@pytest.mark.parametrize("explainer", EXPLAINERS, ids=lambda explainer: explainer.name)
def test_explaining_takes_the_budget_and_what_is_handed_back(explainer):
    """Graphs and scores are handed back; while they are packed, there is a second copy of them."""
    model = model_with_hub()
    explainer.explain(model, [8, 9])
    with Live() as live:
        xs = explainer.explain(model, list(range(300)) * 10)
    assert live.peak <= BUDGET + 2 * bytes_of(tensors_of(xs))


def tensors_of(xs):
    """All tensors of packed explanations."""
    held = [xs.packed.feature, xs.packed.edge, xs._prediction, *vars(xs.graphs).values()]
    return [tensor for tensor in held if isinstance(tensor, torch.Tensor)]


def bytes_of(tensors):
    """Bytes of what tensors are stored in, each storage once."""
    storages = [tensor.untyped_storage() for tensor in tensors]
    return sum({storage._cdata: storage.nbytes() for storage in storages}.values())


@pytest.mark.parametrize("explainer", EXPLAINERS, ids=lambda explainer: explainer.name)
def test_packed_scores_are_stored_once(explainer):
    """What stays alive of a call is the tensors of its explanations, beside the network's weights,
    which are counted when they are read. Nothing is held for each target, and Stability reads
    features where they are, because this network needs no halo.
    """
    model = gg.NodeClassificationModel(build(Stack, SAGEConv), random_graph(200, 600))
    targets = list(range(200)) * 4
    explainer.explain(model, targets)  # graphs of the latest targets are cached
    with Live() as live:
        xs = explainer.explain(model, targets)
        gc.collect()
        held = live.now
        features = RepeatedScores.from_packed(xs, 1, "feature")
    assert held == bytes_of([*tensors_of(xs), *model.net.parameters()])
    assert xs.packed.feature.nbytes == 4 * FEATURES * len(xs.graphs.node)
    assert xs.packed.edge.nbytes == 4 * len(xs.graphs.edge)
    assert features.value.data_ptr() == xs.packed.feature.data_ptr()
    assert not xs._made
