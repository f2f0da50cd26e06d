"""Steps of learned masks, against Adam written out number by number."""

import math

import pytest
import torch
from support.small_networks import FEATURES, Stack, build
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

import graphgauge as gg
from graphgauge.core.seeds import make_generator
from graphgauge.execution.graph_copies import GraphCopies
from graphgauge.explainers import mask_steps
from graphgauge.explainers.mask_optimisation import LearnedMask, MaskedBatch
from graphgauge.explainers.mask_steps import MaskSteps


def random_model(device, dtype, density):
    random = make_generator(3)
    x = torch.randn(30, FEATURES, generator=random, dtype=dtype)
    x = x * (torch.rand(x.shape, generator=random) < density)
    edges = torch.randint(30, (2, 90), generator=random)
    net = build(Stack, GCNConv, 2, seed=0, dtype=dtype)
    data = Data(x=x, edge_index=edges[:, edges[0] != edges[1]])
    return gg.NodeClassificationModel(net.to(device), data.to(device), output="logits")


def random_steps(model, with_edges, rate=0.05):
    """Masks of two copies of three targets, from random starts."""
    graphs = model.computation_graphs([1, 5, 9])
    union = GraphCopies(graphs, torch.arange(3, device=graphs.node.device).repeat(2)).union(0, 6, 1)
    copies = MaskedBatch(model, union, with_edges)
    entries = [copies.features] + ([copies.edges] if with_edges else [])
    masks = [
        LearnedMask(one, one.drawn([7] * 6, "start", copies.value), 0.7, 0.3, mean_size=k == 0)
        for k, one in enumerate(entries)
    ]
    return MaskSteps(copies, masks, rate)


def random_gradients(steps, number):
    """Gradients for the leaves; of some items they are 0 in the first step."""
    leaves = [steps.copies.leaf, steps.copies.factor][: len(steps.masks)]
    random = make_generator(number)
    found = []
    for leaf in leaves:
        drawn = torch.randn(leaf.shape, generator=random, dtype=torch.float64)
        is_zero = torch.rand(leaf.shape, generator=make_generator(99)) < 0.3
        found.append((drawn * ~(is_zero & (number == 0))).to(leaf))
    return found


class LiteralMask:
    """One mask, number by number, from the formulas of `gnn_explainer` and of Adam."""

    def __init__(self, steps, k):
        mask, self.rate = steps.masks[k], steps.rate
        _, at, slot, value = steps.copies.mask_indices()[k]
        self.at, self.slot = at.tolist(), slot.tolist()
        self.value = [1.0] * len(at) if value is None else value.tolist()
        self.logit = {s: float(mask.logit[s]) for s in self.slot}
        self.owner = {s: int(mask.entries.copy[s]) for s in self.slot}
        self.m, self.v, self.alive = (
            dict.fromkeys(self.slot, 0.0),
            dict.fromkeys(self.slot, 0.0),
            {},
        )
        self.is_mean, self.t = mask.mean_size, 0

    def gate(self, s):
        return 1 / (1 + math.exp(-self.logit[s]))

    def update(self, for_leaf):
        self.t += 1
        flat, slopes = for_leaf.flatten().tolist(), {}
        for at, s, value in zip(self.at, self.slot, self.value, strict=True):
            derivative = self.gate(s) * (1 - self.gate(s))
            slopes[s] = flat[at] * value * derivative
            if self.t > 1 and self.alive[s]:
                number = sum(self.alive[o] for o in self.slot if self.owner[o] == self.owner[s])
                size = 0.7 / number if self.is_mean else 0.7
                slopes[s] += derivative * (size - 0.3 / number * self.logit[s])
        if self.t == 1:
            self.alive = {s: slope != 0 for s, slope in slopes.items()}
        for s, slope in slopes.items():
            self.m[s] = 0.9 * self.m[s] + 0.1 * slope
            self.v[s] = 0.999 * self.v[s] + 0.001 * slope**2
            mean, square = self.m[s] / (1 - 0.9**self.t), self.v[s] / (1 - 0.999**self.t)
            self.logit[s] -= self.rate * mean / (math.sqrt(square) + 1e-8)


@pytest.mark.numeric
@pytest.mark.parametrize("density", [1.0, 0.1], ids=["dense", "sparse"])
@pytest.mark.parametrize("with_edges", [False, True])
def test_ten_steps_are_adam_on_the_penalised_loss(with_edges, density, device):
    steps = random_steps(random_model(device, torch.float64, density), with_edges)
    literal = [LiteralMask(steps, k) for k in range(len(steps.masks))]
    for number in range(10):
        steps.write_gates()
        for k, (leaf, at, _, _) in enumerate(steps.copies.mask_indices()):
            wanted = [
                v * literal[k].gate(s)
                for v, s in zip(literal[k].value, literal[k].slot, strict=True)
            ]
            assert leaf.detach().flatten()[at].tolist() == pytest.approx(wanted, abs=1e-10)
        gradients = random_gradients(steps, number)
        steps.update(gradients)
        for mask, one, for_leaf in zip(steps.masks, literal, gradients, strict=True):
            one.update(for_leaf)
            assert mask.logit[one.slot].tolist() == pytest.approx(
                list(one.logit.values()), abs=1e-9
            )
            assert mask.is_alive[one.slot].tolist() == list(one.alive.values())
            is_padding = torch.ones(mask.entries.size, dtype=torch.bool).index_fill(
                0, torch.tensor(one.slot), False
            )
            assert (mask.logit.cpu()[is_padding] == 0).all()


@pytest.mark.numeric
@pytest.mark.parametrize("explainer", [gg.GNNExplainer, gg.GraphMask])
@pytest.mark.parametrize("density", [1.0, 0.1], ids=["dense", "sparse"])
def test_kernels_and_plain_steps_give_the_same_scores(explainer, density, device, monkeypatch):
    """After 10 steps within 1e-5, after 100 the same order of features. On a CPU both are plain."""
    model = random_model(device, torch.float32, density)
    found = {}
    for way in ("kernels", "plain"):
        if way == "plain":
            monkeypatch.setattr(mask_steps, "can_run_kernels", lambda like: False)
        found[way] = [explainer(epochs=n).explain(model, [1, 5, 9], seed=2) for n in (10, 100)]
    for few, same in zip(found["kernels"][0], found["plain"][0], strict=True):
        torch.testing.assert_close(few.feature_score, same.feature_score, rtol=0, atol=1e-5)
        torch.testing.assert_close(few.edge_score, same.edge_score, rtol=0, atol=1e-5)
    for many, same in zip(found["kernels"][1], found["plain"][1], strict=True):
        # features whose scores differ by less than rounding may change places
        ours, theirs = many.feature_score.flatten(), same.feature_score.flatten()
        order = ours.argsort(descending=True)
        assert (theirs[order].diff() < 1e-3).all()
