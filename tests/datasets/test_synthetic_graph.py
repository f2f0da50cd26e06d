"""The synthetic labels against their definition, node by node, and random pairs against sets."""

import math

import pytest
import torch

from graphgauge.core.errors import BadSetting
from graphgauge.core.seeds import make_generator
from graphgauge.datasets import synthetic
from graphgauge.datasets.node_pairs import random_pairs


def literal_labels(data):
    """The docstring of the module, in plain Python."""
    nodes, weight = range(data.num_nodes), [(-0.75) ** f for f in range(16)]
    near = {v: {s for s, t in data.edge_index.t().tolist() if t == v} for v in nodes}
    far = {v: {w for u in near[v] for w in near[u]} - near[v] - {v} for v in nodes}
    signal = [
        sum(w * value for w, value in zip(weight, row, strict=True)) for row in data.x.tolist()
    ]
    raw = [
        signal[v] + sum(signal[u] for u in near[v]) / 4 + sum(signal[u] for u in far[v]) / 16
        for v in nodes
    ]
    mean = sum(raw) / len(raw)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in raw) / len(raw))
    return [value / deviation for value in raw], deviation


@pytest.mark.parametrize(
    ("num_nodes", "num_edges"), [(30, 45), (12, 50), (40, 20), (5, 10), (3, 0)]
)
def test_labels_equal_their_definition(num_nodes, num_edges):
    data = synthetic(3, num_nodes, num_edges)
    labels, deviation = literal_labels(data)
    assert data.y.tolist() == pytest.approx(labels, rel=1e-5, abs=1e-6)
    assert data.label_scale.item() == pytest.approx(deviation, rel=1e-6)


def test_the_rule_is_kept_with_the_data(loaded):
    for level in ("node", "link"):
        data = loaded("Synthetic", level)
        assert data.hop_weights.tolist() == [1.0, 0.25, 0.0625]
        assert data.label_weights.tolist() == pytest.approx(
            [(-0.75) ** f for f in range(16)], rel=1e-6
        )
    assert loaded("Synthetic", "node").y.std(correction=0).item() == pytest.approx(1.0, abs=1e-5)


def test_features_are_standard_normal(loaded):
    x = loaded("Synthetic", "node").x
    assert abs(x.mean()) < 4 / x.numel() ** 0.5
    assert abs(x.var() - 1) < 4 * (2 / x.numel()) ** 0.5


def test_link_labels_are_sums_of_node_labels(loaded):
    node, link = loaded("Synthetic", "node"), loaded("Synthetic", "link")
    y = node.y.tolist()
    for row in range(0, 75162, 1501):
        u, v = link.edge_label_index[:, row].tolist()
        assert link.edge_label[row].item() == pytest.approx(y[u] + y[v], abs=1e-6)


def test_another_seed_makes_another_graph():
    one, same, other = synthetic(1, 50, 80), synthetic(1, 50, 80), synthetic(2, 50, 80)
    assert one.edge_index.equal(same.edge_index)
    assert one.y.equal(same.y)
    assert not one.edge_index.equal(other.edge_index)
    assert not one.x.equal(other.x)


def test_pairs_are_different_and_none_is_forbidden():
    forbidden = torch.tensor([[1, 3, 0], [0, 2, 4]])
    pairs = random_pairs(5, 7, make_generator(0), without=forbidden)  # all that are left
    assert sorted(map(tuple, pairs.t().tolist())) == [
        (0, 2),
        (0, 3),
        (1, 2),
        (1, 3),
        (1, 4),
        (2, 4),
        (3, 4),
    ]
    with pytest.raises(BadSetting, match="8 pairs of 5 nodes were requested, but only 7 are free"):
        random_pairs(5, 8, make_generator(0), without=forbidden)


def test_all_pairs_are_equally_likely():
    random, counts = make_generator(0), torch.zeros(16, 16)
    for _ in range(2000):
        low, high = random_pairs(4, 2, random)
        counts[low, high] += 1
    # each of 6 pairs is in with probability 1/3
    shares = counts[:4, :4][torch.ones(4, 4).triu(1).bool()] / 2000
    assert ((shares - 1 / 3).abs() < 4 * (2 / 9 / 2000) ** 0.5).all()
