"""Similarity by chance of all targets together, as on a GPU, against target by target."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.small_networks import Stack, build, random_graph
from torch_geometric.nn import GCNConv

import graphgauge as gg
from graphgauge.core import make_generator
from graphgauge.evaluation import chance_similarity, repeated_scores
from graphgauge.evaluation.chance_similarity import similarities_by_chance
from graphgauge.evaluation.repeated_scores import RepeatedScores, _next_power_of_two

REPEATS = 4


def explanation(target, nodes, edges, stream, filled):
    """An explanation in which a share of the scores is not 0."""

    def scores(*shape):
        is_filled = torch.rand(*shape, generator=stream) < filled
        return torch.randn(*shape, generator=stream, dtype=torch.float64) * is_filled

    return gg.Xplanation(
        target=target,
        nodes=torch.arange(target, target + nodes),
        edges=torch.arange(edges),
        num_nodes=1000,
        num_edges=1000,
        feature_score=scores(nodes, 3),
        edge_score=scores(edges),
    )


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(0, 7)), min_size=1, max_size=5),
    st.integers(0, 99),
    st.sampled_from([0.0, 0.3, 0.8, 1.0]),
    st.booleans(),
    st.sampled_from(["pairs", "one pair", "a ring"]),
)
def test_all_targets_together_give_what_each_gives_alone(sizes, seed, filled, fills_up, form):
    stream = make_generator(seed)
    xs = [
        explanation(10 * k, nodes, edges, stream, filled)
        for k, (nodes, edges) in enumerate(sizes)
        for _ in range(REPEATS)
    ]
    every = torch.arange(REPEATS)
    first, second = {
        "pairs": (every[::2], every[1::2]),
        "one pair": (every[:1], every[:1]),
        "a ring": (every, every.roll(-1)),
    }[form]
    seeds = [100 + k for k in range(len(sizes))]
    for side in ("feature", "edge"):
        scores = RepeatedScores.from_list(xs, REPEATS, side)
        alone = similarities_by_chance(scores, first, second, 6, seeds)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(chance_similarity, "_is_joint", lambda scores: True)
            if fills_up:
                patch.setattr(repeated_scores, "_filled_lengths", _next_power_of_two)
            together = similarities_by_chance(scores, first, second, 6, seeds)
        assert together == pytest.approx(alone, abs=1e-9, nan_ok=True)
        assert [math.isnan(value) for value in alone] == [bool(why) for why in scores.status]


@pytest.mark.numeric
def test_stability_is_the_same_on_a_device_and_on_a_cpu(device):
    found = []
    for place in ("cpu", device):
        data = random_graph(30, 80, dtype=torch.float64).to(place)
        net = build(Stack, GCNConv, dtype=torch.float64).to(place)
        model = gg.NodeClassificationModel(net, data, output="logits")
        results = gg.Evaluator(model, timed=0, trials=(5, 8)).compare(
            [gg.GNNExplainer(epochs=3), gg.RandomExplainer(), gg.Saliency()], [3, 8, 20]
        )
        found.append(results.to_pandas().set_index(["explainer", "target", "metric"])["value"])
    names = ["feature_stability", "edge_stability"]
    for name in [*names, *(f"{name}_corrected" for name in names)]:
        mine, other = (values.xs(name, level="metric").tolist() for values in found)
        assert mine == pytest.approx(other, abs=1e-5, nan_ok=True)
