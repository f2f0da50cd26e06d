"""Computation graphs equal their definition, edge by edge, on any graph."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.literal_models import computation_graph
from support.small_networks import graphs, random_graph
from torch_geometric.utils import k_hop_subgraph

from graphgauge.subgraphs.adjacency import (
    incoming_arcs,
    outgoing_arcs,
    pointers_from_counts,
    ragged_ranges,
)
from graphgauge.subgraphs.computation_graph import HALOS, ComputationGraphs
from graphgauge.subgraphs.extraction import EDGE_SCOPES, Extractor
from graphgauge.subgraphs.input_data import read_single_graph

FLOWS = ("source_to_target", "target_to_source", "both")


def assert_is(graph, data, expected):
    """One extracted graph has exactly the expected nodes, hops and edges, in the promised order."""
    assert dict(zip(graph.nodes.tolist(), graph.hops.tolist(), strict=True)) == expected["distance"]
    assert graph.hops.tolist() == sorted(graph.hops.tolist())
    assert graph.edges.tolist() == expected["relevant"]
    assert graph.all_edges.tolist() == expected["relevant"] + expected["others"]
    assert set(graph.all_nodes.tolist()) == expected["nodes"]
    assert len(graph.all_nodes) == len(expected["nodes"])
    assert graph.all_nodes[: len(graph.nodes)].equal(graph.nodes)
    assert graph.all_nodes[graph.edge_index].t().tolist() == expected["ends"]
    assert graph.x.equal(data.x[graph.all_nodes])
    wanted = graph.target if isinstance(graph.target, tuple) else (graph.target,)
    assert tuple(graph.nodes[graph.target_rows].tolist()) == wanted


@given(
    graphs(),
    st.integers(0, 3),
    st.sampled_from(range(len(HALOS))),
    st.sampled_from(EDGE_SCOPES),
    st.sampled_from(FLOWS),
    st.data(),
)
def test_extracted_graphs_equal_their_definition(data, hops, halo, scope, flow, draw):
    """The edges among neighbours are not those that carry messages; both sets are defined."""
    targets = draw.draw(st.lists(st.integers(0, data.num_nodes - 1), max_size=6))
    batch = Extractor(read_single_graph(data, set()), flow).extract(
        torch.tensor(targets, dtype=torch.int64)[:, None], hops, halo, scope
    )
    assert len(batch) == len(targets)
    for graph, target in zip(batch, targets, strict=True):
        assert graph.target == target
        assert_is(graph, data, computation_graph(data, target, hops, HALOS[halo], scope, flow))


@given(
    graphs(),
    st.integers(0, 3),
    st.sampled_from(range(len(HALOS))),
    st.sampled_from(EDGE_SCOPES),
    st.data(),
)
def test_the_graph_of_a_link_is_the_union_over_both_ends(data, hops, halo, scope, draw):
    node = st.integers(0, data.num_nodes - 1)
    targets = draw.draw(st.lists(st.tuples(node, node), min_size=1, max_size=5))
    batch = Extractor(read_single_graph(data, set())).extract(
        torch.tensor(targets), hops, halo, scope
    )
    for graph, target in zip(batch, targets, strict=True):
        assert_is(graph, data, computation_graph(data, target, hops, HALOS[halo], scope))


def test_induced_edges_are_those_of_k_hop_subgraph():
    data = random_graph(200, 500)
    batch = Extractor(read_single_graph(data, set())).extract(
        torch.arange(50)[:, None], 2, 0, "induced"
    )
    for graph in batch:
        nodes, _, _, mask = k_hop_subgraph(graph.target, 2, data.edge_index, num_nodes=200)
        assert sorted(graph.nodes.tolist()) == sorted(nodes.tolist())
        links = mask & (data.edge_index[0] != data.edge_index[1])
        assert graph.edges.tolist() == links.nonzero().flatten().tolist()


@given(graphs(), st.lists(st.integers(0, 5), max_size=7), st.sampled_from((0, 1, 4)))
def test_taking_and_joining_keep_each_graph(data, picks, halo):
    extractor = Extractor(read_single_graph(data, set()))
    batch = extractor.extract(torch.arange(min(6, data.num_nodes))[:, None], 2, halo)
    picks = [pick % len(batch) for pick in picks]
    taken = ComputationGraphs.join([batch, batch]).take(
        torch.tensor([len(batch) + pick for pick in picks], dtype=torch.int64)
    )
    assert len(taken) == len(picks)
    for graph, pick in zip(taken, picks, strict=True):
        other = batch[pick]
        assert graph.target == other.target
        for name in (
            "nodes",
            "edges",
            "all_nodes",
            "all_edges",
            "hops",
            "x",
            "edge_index",
            "target_rows",
        ):
            assert getattr(graph, name).equal(getattr(other, name))
        assert graph.halo == other.halo == HALOS[halo]


@given(graphs())
def test_arcs_list_each_edge_at_its_two_ends(data):
    for flow in FLOWS:
        for build, ends in (
            (incoming_arcs, {"source_to_target": [1], "target_to_source": [0], "both": [0, 1]}),
            (outgoing_arcs, {"source_to_target": [0], "target_to_source": [1], "both": [0, 1]}),
        ):
            arcs = build(data.edge_index, data.num_nodes, flow)
            owner, other, edge = arcs.at_nodes(torch.arange(data.num_nodes))
            found = sorted(zip(owner.tolist(), other.tolist(), edge.tolist(), strict=True))
            pairs = data.edge_index.t().tolist()
            assert found == sorted(
                (pair[end], pair[1 - end], number)
                for number, pair in enumerate(pairs)
                for end in ends[flow]
            )


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 4)), max_size=8))
def test_ragged_ranges_are_ranges(runs):
    start, count = torch.tensor(runs, dtype=torch.int64).reshape(-1, 2).t()
    owner, value = ragged_ranges(start, count)
    expected = [(k, first + i) for k, (first, number) in enumerate(runs) for i in range(number)]
    assert list(zip(owner.tolist(), value.tolist(), strict=True)) == expected
    assert pointers_from_counts(count).tolist() == [
        sum(number for _, number in runs[:k]) for k in range(len(runs) + 1)
    ]


def test_a_number_beyond_the_batch_is_an_index_error():
    batch = Extractor(read_single_graph(random_graph(), set())).extract(torch.tensor([[0], [1]]), 1)
    assert batch[-1].target == 1
    with pytest.raises(IndexError, match="computation graph 2 was asked for, but there are 2"):
        batch[2]


def test_the_cost_of_cutting_does_not_grow_with_the_graph():
    """Counted in bytes, not seconds: ten copies of a graph side by side cost as much as one."""
    from graphgauge.execution.memory_cost import AllocationCounter

    data = random_graph(300, 900)
    one = Extractor(read_single_graph(data, set()))
    many = data.clone()
    many.x = data.x.repeat(10, 1)
    many.edge_index = torch.cat([data.edge_index + 300 * copy for copy in range(10)], dim=1)
    ten = Extractor(read_single_graph(many, set()))
    target, spent = torch.arange(0, 300, 10)[:, None], []
    for extractor in (one, ten):
        extractor.extract(target, 2, 2)
        with AllocationCounter() as counted:
            extractor.extract(target, 2, 2)
        spent.append(counted.bytes)
    assert spent[0] == spent[1]
