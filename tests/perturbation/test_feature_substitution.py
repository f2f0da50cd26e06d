"""The linear map of substituted features against the definition, on a CPU and on a GPU."""

import pytest
import torch
from support.small_networks import FEATURES, Stack, build, random_graph
from torch_geometric.nn import GCNConv, SAGEConv

import graphgauge as gg
from graphgauge.core import make_generator
from graphgauge.execution import build_batch
from graphgauge.perturbation import CurveLines, FeatureEdits
from graphgauge.perturbation.feature_substitution import SubstitutedFeatures

TARGETS = [3, 8, 20, 29]


def substituted(device, dtype, layer=GCNConv, steps=(0, 1, 2, 5, 6)):
    """Features of a union in which each line of edits comes with several numbers of steps."""
    data = random_graph(30, 80, dtype=dtype).to(device)
    model = gg.NodeClassificationModel(
        build(Stack, layer, dtype=dtype).to(device), data, output="logits"
    )
    graphs = model.computation_graphs(TARGETS)
    stream = make_generator(0)
    sizes = graphs.num_nodes
    donor = (graphs.node[graphs.hop <= 2] + 7) % 30  # never the node itself
    ptr = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
    edits = FeatureEdits(graphs, torch.arange(len(TARGETS), device=device), donor, ptr)
    order = torch.stack(
        [torch.randperm(2 * FEATURES, generator=stream) for _ in range(2 * len(TARGETS))]
    ).to(device)
    case = torch.arange(len(TARGETS), device=device).repeat_interleave(2)
    order = torch.where(order < edits.candidates[case][:, None], order, -1)
    lines = CurveLines(case, order.sort(1, descending=True).values.flip(1).flip(1))
    line = torch.arange(len(lines), device=device).repeat_interleave(len(steps))
    step = torch.tensor(steps, device=device).repeat(len(lines))
    of = lines.case[line]
    union = build_batch(graphs, of, torch.arange(len(of), device=device), align=1)
    return SubstitutedFeatures.from_edits(edits, union, lines, line, step)


@pytest.mark.numeric
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [1, 3, 32, 100])
@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("layer", [GCNConv, SAGEConv])  # with nodes that only set degrees, without
def test_the_linear_map_is_that_of_the_written_features(layer, dtype, width, has_bias, device):
    features = substituted(device, dtype, layer)
    assert features.has_all_rows == (layer is SAGEConv)
    weight = torch.randn(width, FEATURES, generator=make_generator(1), dtype=dtype).to(device)
    bias = torch.randn(width, generator=make_generator(2), dtype=dtype).to(device)
    found = features.linear(weight, bias if has_bias else None)
    wanted = torch.nn.functional.linear(
        features.written.double(), weight.double(), bias.double() if has_bias else None
    )
    assert features.order.size(1) > 5
    close = 1e-12 if dtype == torch.float64 else 1e-5
    assert (found.double() - wanted).abs().max() <= close


@pytest.mark.numeric
def test_copies_that_end_at_the_same_step_are_both_right(device):
    features = substituted(device, torch.float64, steps=(4, 4, 7))
    assert not features.copies_differ
    weight = torch.randn(3, FEATURES, generator=make_generator(1), dtype=torch.float64).to(device)
    wanted = torch.nn.functional.linear(features.written, weight)
    assert (features.linear(weight, None) - wanted).abs().max() <= 1e-12


@pytest.mark.numeric
def test_each_row_is_found_under_its_pair_and_step(device):
    features = substituted(device, torch.float64)
    row_of = features.row_of_steps
    assert features.copies_differ
    for at, pair, step in zip(
        features.at.tolist(), features.pair.tolist(), features.step.tolist(), strict=True
    ):
        assert int(row_of[pair, step]) == at
    assert int((row_of >= 0).sum()) == len(features.step)


@pytest.mark.numeric
@pytest.mark.parametrize("layer", [GCNConv, SAGEConv])
def test_feature_curves_are_the_same_on_a_device_and_on_a_cpu(layer, device):
    values = []
    for place in ("cpu", device):
        data = random_graph(30, 80, dtype=torch.float64).to(place)
        net = build(Stack, layer, dtype=torch.float64).to(place)
        model = gg.NodeClassificationModel(net, data, output="logits")
        evaluator = gg.Evaluator(model, timed=0, stability="none", trials=(5, 5), twin_trials=5)
        results = evaluator.compare([gg.InputXGradient(), gg.RandomExplainer()], TARGETS)
        values.append({key: results.values(key).tolist() for key in FEATURE_METRICS})
    for key in FEATURE_METRICS:
        assert values[0][key] == pytest.approx(values[1][key], abs=1e-9)


FEATURE_METRICS = ("feature_ec", "feature_pertinence", "feature_pertinence_tied")
