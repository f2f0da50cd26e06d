"""Measuring the cheap way: which settings, which targets, which features lead, what the data of a
target are.
"""

import numpy as np
import pytest
import torch
from support.quick_evaluation import MODELS, node_model
from support.small_networks import build
from torch_geometric.data import Data
from torch_geometric.nn import GATConv

import graphgauge as gg
from graphgauge.core.errors import BadSetting
from graphgauge.evaluation import PRESETS, Settings
from graphgauge.models.fingerprints import digest_of_network
from graphgauge.monitor import sample_recent, score_targets
from graphgauge.monitor.scoring import _cheap_settings, facts_from_results

FAST = {"trials": (4, 12), "timed": 0}


def test_the_cheap_forms_change_what_they_must_and_no_more():
    found = _cheap_settings(PRESETS["calibrated"]).record()
    changed = {
        name for name, value in PRESETS["calibrated"].record().items() if found[name] != value
    }
    assert changed == {"trials", "early_stop", "twins", "headline"}
    assert (found["stability"], found["early_stop"], found["trials"]) == (
        "binomial",
        "paper",
        [30, 100],
    )
    assert _cheap_settings(Settings(early_stop="betting", trials=(5, 9))).early_stop == "betting"
    assert _cheap_settings(_cheap_settings(Settings())) == _cheap_settings(Settings())


@pytest.mark.parametrize("kind", MODELS)
def test_a_sample_holds_the_numbers_of_the_evaluator_and_the_data_of_its_targets(kind):
    make, targets = MODELS[kind]
    model = make()
    sample, facts = score_targets(gg.Evaluator(model, **FAST), gg.InputXGradient(), targets, top=2)
    own = gg.Evaluator(model, stability="binomial", twins=False, **FAST)
    results = own.compare([gg.InputXGradient()], targets)
    for metric in ("edge_ec", "feature_pertinence", "feature_stability"):
        rows = [row for row in results.rows if row.metric == metric]
        assert [row.target for row in rows] == list(sample.targets)
        assert sample.values[metric].tolist() == [row.cell.value for row in rows]
    x = model.source.x.double()
    rows = {
        "nodes": lambda t: x[[t]],
        "values": lambda t: x[[t]],
        "links": lambda t: x[list(t)],
    }.get(kind, lambda t: model.data[t].x.double())
    width = x.size(1)
    assert sample.data[:, :width] == pytest.approx(
        torch.stack([rows(t).mean(0) for t in targets]).numpy(), abs=1e-12
    )
    graphs = model.computation_graphs(targets)
    assert sample.data[:, width].tolist() == graphs.num_nodes.tolist()
    assert sample.data[:, width + 1].tolist() == graphs.num_edges.tolist()
    assert sample.data[:, width + 2 :] == pytest.approx(
        model.pred_continuous(targets).reshape(len(targets), -1).numpy(), abs=1e-6
    )
    assert len(facts.columns) == sample.data.shape[1]


def test_the_leading_features_are_those_with_the_highest_scores():
    model = node_model()
    sample, _ = score_targets(gg.Evaluator(model, **FAST), gg.InputXGradient(), [3, 20], top=3)
    for target, found in zip([3, 20], sample.top, strict=True):
        (x,) = gg.InputXGradient().explain(model, [target], seed=0)
        others = [k for k, node in enumerate(x.nodes.tolist()) if node != target]
        own = x.feature_score[x.nodes.tolist().index(target)]
        strength = torch.maximum(own, x.feature_score[others].amax(0)).tolist()
        expected = [
            k for k in sorted(range(len(strength)), key=lambda k: -strength[k]) if strength[k] > 0
        ][:2]  # a third of 6
        assert list(found) == expected


def test_measuring_leaves_the_network_as_it_was():
    model = node_model()
    before = {name: value.clone() for name, value in model.net.state_dict().items()}
    score_targets(gg.Evaluator(model, **FAST), gg.GNNExplainer(epochs=2), [3, 20])
    assert all(torch.equal(before[name], value) for name, value in model.net.state_dict().items())
    assert all(parameter.grad is None for parameter in model.net.parameters())


def test_the_digest_of_weights_sees_one_bit_and_nothing_else():
    model = node_model()
    before = digest_of_network(model)
    model.data.x[0, 0] += 1
    assert digest_of_network(model) == before
    with torch.no_grad():
        next(model.net.parameters()).view(-1)[0] += 1e-6
    assert digest_of_network(model) != before


def test_recent_targets_are_drawn_evenly_and_by_seed():
    model = node_model()
    pool = list(range(10, 20))
    draws = [sample_recent(model, 3, pool, seed) for seed in range(400)]
    counts = np.bincount([t for draw in draws for t in draw], minlength=20)[10:]
    assert counts.sum() == 1200
    assert np.abs(counts - 120).max() < 4 * np.sqrt(120 * 0.7)
    assert sample_recent(model, 3, pool, 7) == draws[7]
    assert sample_recent(model, 99, [4, 4, 2]) == [2, 4]


def test_what_cannot_be_measured_is_refused():
    with pytest.raises(BadSetting, match="number must be a number of targets"):
        sample_recent(node_model(), 0)
    with pytest.raises(BadSetting, match="an explainer that gives scores"):
        score_targets(gg.Evaluator(node_model()), "saliency", [3])


def test_results_with_other_noise_cannot_be_a_baseline():
    results = gg.Evaluator(node_model(), **FAST).compare([gg.Saliency()], [3])
    with pytest.raises(BadSetting, match="stability='pairs', not 'binomial'"):
        facts_from_results(results, "saliency")
    fitting = gg.Evaluator(node_model(), stability="binomial", **FAST).compare([gg.Saliency()], [3])
    facts = facts_from_results(fitting, "saliency")
    assert (facts.explainer, facts.params, facts.is_whole) == ("saliency", None, False)


def literal_edge_means(model, target):
    """Attributes of the edges that bring a message to the target, one by one; one layer, which
    drops loops.
    """
    own = (target,) if isinstance(target, int) else target
    near = [
        e
        for e, (start, end) in enumerate(model.data.edge_index.T.tolist())
        if end in own and start != end
    ]
    rows = [[*model.data.edge_attr[e].tolist(), model.data.edge_weight[e].item()] for e in near]
    return (
        [sum(column) / len(rows) for column in zip(*rows, strict=True)] if rows else [0.0, 0.0, 0.0]
    )


@pytest.mark.parametrize("kind", [gg.NodeClassificationModel, gg.LinkClassificationModel])
def test_the_attributes_of_the_edges_at_a_target_are_watched(kind):
    model = attributed(kind)
    targets = [3, 5, 11] if kind is gg.NodeClassificationModel else [(3, 4), (5, 11)]
    sample, facts = score_targets(gg.Evaluator(model, **FAST), gg.InputXGradient(), targets)
    assert facts.columns[-3:] == tuple(
        f"{name} (mean over its edges)" for name in ("amount", "at night", "edge_weight")
    )
    for row, target in zip(sample.data, targets, strict=True):
        assert row[-3:] == pytest.approx(literal_edge_means(model, target), abs=1e-6)
    assert sample.data[0, -3:].tolist() != [0.0, 0.0, 0.0]
    # node 11 has no edges
    assert (
        sample.data[-1, -3:].tolist() == [0.0, 0.0, 0.0] or kind is not gg.NodeClassificationModel
    )


class Attributed(torch.nn.Module):
    """A network that reads attributes and weights of edges, for nodes and for links."""

    def __init__(self):
        super().__init__()
        self.conv = GATConv(4, 2, edge_dim=3)

    def forward(self, x, edge_index, edge_attr, edge_weight, edge_label_index=None):
        rows = self.conv(x, edge_index, torch.cat([edge_attr, edge_weight[:, None]], 1))
        return (
            rows
            if edge_label_index is None
            else rows[edge_label_index[0]] + rows[edge_label_index[1]]
        )


def attributed(kind):
    draw = torch.Generator().manual_seed(0)
    data = Data(
        x=torch.randn(12, 4, generator=draw),
        edge_index=torch.randint(11, (2, 40), generator=draw),  # node 11 stands alone
        edge_attr=torch.randn(40, 2, generator=draw),
        edge_weight=torch.rand(40, generator=draw),
        edge_attr_names=["amount", "at night"],
    )
    return kind(build(Attributed), data)
