"""On another device the same explanations get the same numbers (run with --device cuda; on the CPU
this compares threads).
"""

from dataclasses import replace

import pytest
import torch
from support.small_networks import LinkForward, Stack, build, random_graph
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

import graphgauge as gg
from graphgauge.core.seeds import make_generator

pytestmark = pytest.mark.numeric

LAYERS = {"GCN": GCNConv, "GAT": GATConv, "SAGE": SAGEConv}
EXACT = ("status", "trials", "stop", "flipped")
FEW = {"trials": (10, 20), "twin_trials": 10, "cap": 30, "stability": "none", "timed": 0}


def sparse_graph(dtype):
    """Most features 0, so that most substitutions change nothing; in regression and classification
    alike.
    """
    data = random_graph(80, 240, dtype=dtype)
    data.x = data.x * (torch.rand(data.x.shape, generator=make_generator(3)) < 0.4)
    return data


def models(layer, dtype, device):
    data = sparse_graph(dtype).to(device)
    yield (
        gg.NodeClassificationModel(
            build(Stack, layer, dtype=torch.float64).to(device, dtype), data, output="logits"
        ),
        range(12),
    )
    yield (
        gg.NodeRegressionModel(
            build(Stack, layer, out=1, dtype=torch.float64).to(device, dtype), data
        ),
        range(12),
    )
    net = build(LinkForward, layer, dtype=torch.float64).to(device, dtype)
    yield gg.LinkClassificationModel(net, data, output="logits"), [(0, 5), (7, 3), (9, 30)]


def both(layer, dtype, device):
    """Results for the same explanations on the CPU and on the device."""
    for (here, targets), (there, _) in zip(
        models(layer, dtype, "cpu"), models(layer, dtype, device), strict=True
    ):
        xs = gg.InputXGradient().explain(here, targets) + gg.RandomExplainer().explain(
            here, targets, seed=1
        )
        moved = [replace(x.to(device), metrics={}) for x in xs]
        yield gg.Evaluator(here, **FEW).evaluate(xs), gg.Evaluator(there, **FEW).evaluate(moved)


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_in_double_precision_all_numbers_are_equal(layer, device):
    for here, there in both(layer, torch.float64, device):
        for one, other in zip(here.rows, there.rows, strict=True):
            if one.metric.startswith("time"):
                continue
            assert [getattr(one.cell, name) for name in EXACT] == [
                getattr(other.cell, name) for name in EXACT
            ]
            assert one.cell.value == pytest.approx(other.cell.value, abs=1e-12)


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_in_single_precision_curves_are_close_and_verdicts_hardly_change(layer, device):
    changed = total = 0
    for here, there in both(layer, torch.float32, device):
        for key, tell in here.stories.items():
            for one, other in zip(tell().cases, there.stories[key]().cases, strict=True):
                scale = max(1.0, float(one.random.nan_to_num().abs().max()))
                assert torch.allclose(one.curve, other.curve, rtol=0, atol=1e-5 * scale)
                assert torch.allclose(
                    one.random.nan_to_num(), other.random.nan_to_num(), rtol=0, atol=1e-5 * scale
                )
                total, changed = total + 1, changed + (one.ec != other.ec)
    assert changed <= total // 100, f"{changed} of {total} ECs changed"
