"""Packed comparison of repeated explanations against the definition, target by target."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.small_networks import EncodeDecode, Pooled, Stack, build, random_graph
from torch_geometric.nn import GCNConv

import graphgauge as gg
from graphgauge.core import make_generator
from graphgauge.evaluation import repeated_scores
from graphgauge.evaluation.repeated_scores import RepeatedScores, _next_power_of_two
from graphgauge.metrics import edge_stability, feature_stability

REPEATS = 4


def explanation(target, nodes, edges, scores, dtype=torch.float64):
    """An explanation whose scores come from a stream."""
    return gg.Xplanation(
        target=target,
        nodes=torch.arange(target, target + nodes),
        edges=torch.arange(edges),
        num_nodes=1000,
        num_edges=1000,
        feature_score=torch.randn(nodes, 3, generator=scores, dtype=dtype),
        edge_score=torch.randn(edges, generator=scores, dtype=dtype),
    )


def literal_similarity(xs, side, first, second):
    """The similarity of two explanations of a target, from the metrics' functions."""
    one, two = xs[first], xs[second]
    if side == "edge":
        if not len(one.edges):
            return math.nan
        return float(edge_stability(one.edge_score[None], two.edge_score[None]))
    own = one.nodes == one.target
    return float(feature_stability(one.feature_score[None], two.feature_score[None], own))


@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 9)), min_size=1, max_size=6),
    st.integers(0, 99),
    st.booleans(),
    st.integers(1, 2**12),
)
def test_similarities_are_those_of_the_definition(sizes, seed, fills_up, cells):
    stream = make_generator(seed)
    groups = [
        [explanation(10 * k, nodes, edges, stream) for _ in range(REPEATS)]
        for k, (nodes, edges) in enumerate(sizes)
    ]
    first, second = torch.tensor([0, 2, 1]), torch.tensor([1, 3, 3])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repeated_scores, "_CELLS_AT_ONCE", cells)
        if fills_up:  # as on a GPU
            patch.setattr(repeated_scores, "_filled_lengths", _next_power_of_two)
        for side in ("feature", "edge"):
            packed = RepeatedScores.from_list([x for xs in groups for x in xs], REPEATS, side)
            found = packed.similarity(first, second)
            for row, xs in zip(found.tolist(), groups, strict=True):
                pairs = zip(first.tolist(), second.tolist(), strict=True)
                wanted = [literal_similarity(xs, side, *pair) for pair in pairs]
                assert row == pytest.approx(wanted, abs=1e-12, nan_ok=True)
            wanted = ["empty" if side == "edge" and not edges else "" for _, edges in sizes]
            assert packed.status == wanted
            assert packed.num_zero == [REPEATS if why else 0 for why in wanted]
            lonely = [side == "feature" and nodes == 1 for nodes, _ in sizes]
            assert packed.is_lonely == lonely


def models():
    data = random_graph(30, 80)
    yield gg.NodeClassificationModel(build(Stack, GCNConv), data, output="logits"), [3, 8, 20]
    links = build(EncodeDecode, GCNConv)
    yield gg.LinkClassificationModel(links, data, output="logits"), [(0, 5), (3, 8)]
    many = [random_graph(nodes, 20, seed=nodes) for nodes in (8, 12)]
    yield gg.GraphClassificationModel(build(Pooled, GCNConv), many), [0, 1]


def test_packed_explanations_are_compared_as_listed_ones():
    for model, targets in models():
        xs = gg.RandomExplainer().explain(model, [t for t in targets for _ in range(REPEATS)])
        every = torch.arange(REPEATS)
        for side in ("feature", "edge"):
            packed = RepeatedScores.from_packed(xs, REPEATS, side)
            listed = RepeatedScores.from_list(list(xs), REPEATS, side)
            assert torch.equal(packed.is_own, listed.is_own)
            assert packed.status == listed.status
            assert packed.is_lonely == listed.is_lonely
            found = packed.similarity(every, every.roll(1))
            assert torch.equal(found, listed.similarity(every, every.roll(1)))
            for k in range(len(targets)):
                for mine, other in zip(packed.of_target(k), listed.of_target(k), strict=True):
                    assert torch.equal(mine, other)


def test_scores_that_are_missing_or_no_numbers_are_told_target_by_target():
    stream = make_generator(0)
    xs = [explanation(10 * (k // 2), 3, 4, stream) for k in range(8)]
    xs[1].feature_score = None
    xs[2].feature_score[0, 0] = math.nan
    xs[5].feature_score.zero_()
    packed = RepeatedScores.from_list(xs, 2, "feature")
    assert packed.status == ["no_scores", "nan_attribution", "", ""]
    assert packed.num_zero == [1, 0, 1, 0]
    alike = packed.similarity(torch.tensor([0]), torch.tensor([1]))[:, 0]
    assert alike.isnan().tolist() == [True, True, False, False]
    assert RepeatedScores.from_list(xs, 2, "edge").status == [""] * 4
    for x in xs:
        x.edge_score = None
    assert RepeatedScores.from_list(xs, 2, "edge").status == ["no_scores"] * 4


def test_lengths_are_rounded_up_to_powers_of_two():
    count = torch.tensor([0, 1, 2, 3, 4, 5, 1023, 1024, 1025])
    assert _next_power_of_two(count).tolist() == [0, 1, 2, 4, 4, 8, 1024, 1024, 2048]
