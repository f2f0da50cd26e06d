"""The name of a network is one everywhere it is shown, and explanations of another network are not
scored as if of this one.
"""

from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GINEConv, SAGEConv

import graphgauge as gg
from graphgauge.core.errors import BadExplanation
from graphgauge.models.fingerprints import digest_of_network, is_same_network, model_identity
from graphgauge.monitor.scoring import _facts_from_evaluator
from graphgauge.serve.digests import model_and_data_digests

QUICK = {"trials": (3, 3), "cap": 3, "stability": "none", "timed": 0, "early_stop": "none"}


class Sage(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = SAGEConv(3, 2)

    def forward(self, x, edge_index):
        return self.layer(x, edge_index)


class Gine(Sage):
    def __init__(self):
        super().__init__()
        self.layer = GINEConv(torch.nn.Linear(3, 2), edge_dim=2)

    def forward(self, x, edge_index, edge_attr):
        return self.layer(x, edge_index, edge_attr)


def model_of(make=Sage, seed=0):
    torch.manual_seed(seed)
    net, edges = make(), torch.tensor([[1, 2, 3, 0, 4], [0, 0, 1, 2, 3]])
    draw = torch.Generator().manual_seed(1)
    edge_attr = torch.randn(5, 2, generator=draw) if make is Gine else None
    return gg.NodeClassificationModel(
        net, Data(x=torch.randn(5, 3, generator=draw), edge_index=edges, edge_attr=edge_attr)
    )


@pytest.mark.parametrize("make", [Sage, Gine])
def test_one_network_has_one_name_everywhere(make):
    model = model_of(make)
    name = digest_of_network(model)
    (x,) = gg.Saliency().explain(model, [0])
    evaluator = gg.Evaluator(model, **QUICK)
    made = evaluator.compare(gg.Saliency(), [0]).made["identity"]
    facts = _facts_from_evaluator(evaluator, gg.Saliency())
    assert len(name) == 24
    assert {x.network, made["network"], model_and_data_digests(model)["model"], facts.model} == {
        name
    }
    assert {made["data"], model_and_data_digests(model)["data"], facts.data} == {
        model_identity(model)["data"]
    }
    assert name == digest_of_network(model_of(make)) != digest_of_network(model_of(make, seed=1))


def test_names_in_older_baselines_of_the_monitor_are_still_told_apart():
    name, other = (digest_of_network(model_of(seed=seed)) for seed in (0, 1))
    assert is_same_network(name, name[8:])
    assert is_same_network(name[8:], name)
    assert not is_same_network(name, other[8:])
    assert not is_same_network(name, other)


def test_an_explanation_of_another_network_is_refused_unless_it_is_wanted(tmp_path):
    model, retrained = model_of(), model_of(seed=1)
    (x,) = gg.Saliency().explain(retrained, [0])
    evaluator = gg.Evaluator(model, **QUICK)
    with pytest.raises(
        BadExplanation,
        match=r"1 of 1 explanations, .* explain another network .*check_network=False",
    ):
        evaluator.evaluate(x)
    x.save(tmp_path / "x.safetensors")
    with pytest.raises(BadExplanation, match="another network"):
        evaluator.evaluate(gg.Xplanation.load(tmp_path / "x.safetensors"))
    values = [
        list(evaluator.evaluate(own, check_network=False).values("edge_pertinence"))
        for own in (x, replace(x, network=""))
    ]
    assert (
        values[0]
        == values[1]
        == list(evaluator.evaluate(replace(x, network="")).values("edge_pertinence"))
    )


def test_training_on_makes_older_explanations_those_of_another_network():
    model = model_of()
    (x,) = gg.Saliency().explain(model, [0])
    gg.Evaluator(model, **QUICK).evaluate(x)
    with torch.no_grad():
        next(model.net.parameters())[0] += 1e-3
    with pytest.raises(BadExplanation, match="trained on"):
        gg.Evaluator(model, **QUICK).evaluate(x)


def test_explanations_from_elsewhere_that_do_not_say_their_network_pass():
    model = model_of()
    (x,) = gg.Saliency().explain(model_of(seed=1), [0])
    back = gg.Xplanation.from_pyg(x.to_pyg(), 0)
    assert back.network == ""
    assert len(gg.Evaluator(model, **QUICK).evaluate(back).rows)
