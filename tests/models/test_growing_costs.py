"""Networks whose memory grows faster than their input: the budget still holds, and others are
planned as ever.
"""

import pytest
import torch
from support.live_memory import Live
from support.small_networks import CLASSES, FEATURES, Stack, build, random_graph
from torch_geometric.nn import GATConv, GCNConv
from torch_geometric.utils import to_dense_adj

import graphgauge as gg
from graphgauge.execution.executor import Executor
from graphgauge.execution.memory_cost import AllocationCounter, CopyCost

LAYERS = {"GCN": GCNConv, "GAT": GATConv}


class DenseGCN(torch.nn.Module):
    """A GCN that writes out the adjacency matrix of its input: n times the nodes take n * n times
    the bytes.
    """

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(FEATURES, 8), torch.nn.Linear(8, CLASSES)

    def forward(self, x, edge_index):
        adjacency = to_dense_adj(edge_index, max_num_nodes=len(x))[0].t() + torch.eye(len(x))
        adjacency = adjacency / adjacency.sum(1, keepdim=True)
        return adjacency @ self.second((adjacency @ self.first(x)).relu())


def dense_model(budget, num_edges=800):
    torch.manual_seed(0)
    return gg.NodeClassificationModel(
        DenseGCN(), random_graph(200, num_edges), num_hops=2, memory_budget=budget
    )


def counted_unions(model, of):
    """Rows of copies, and the number of copies and the bytes of every union, probes included."""
    seen = []

    def work(union):
        with AllocationCounter() as counted:
            rows = model.executor.outputs(union)
        seen.append((len(union), counted.bytes))
        return rows

    graphs = model.computation_graphs(list(range(40)))
    with torch.no_grad():
        return model.map(work, graphs, of), seen


@pytest.mark.parametrize("num_edges", [200, 800], ids=["small copies", "large copies"])
@pytest.mark.parametrize("budget", [4_000_000, 20_000_000, 100_000_000])
def test_unions_of_a_network_with_a_dense_adjacency_stay_inside_the_budget(budget, num_edges):
    """If bytes grow with squares, unions that were not counted take at most four budgets of all
    that they allocate in turn.
    """
    model = dense_model(budget, num_edges)
    rows, seen = counted_unions(model, torch.arange(400) % 40)
    assert len(rows) == 400
    assert max(taken for _, taken in seen) <= 4 * budget
    assert max(count for count, _ in seen) > 1, "a budget that allows a union must be used"


def test_what_is_held_at_one_time_stays_inside_the_budget():
    model, of = dense_model("20MB"), torch.arange(400) % 40
    graphs = model.computation_graphs(list(range(40)))
    with torch.no_grad(), Live() as live:
        rows = model.map(model.executor.outputs, graphs, of, kind="held")
    assert live.peak <= 20_000_000 + rows.nbytes + 12 * of.nbytes


def test_the_rows_do_not_depend_on_the_budget():
    of = torch.arange(100) % 40
    small, large = (counted_unions(dense_model(budget), of)[0] for budget in ("1MB", "50MB"))
    assert small.equal(large)


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
@pytest.mark.parametrize("budget", [1_000_000, 4_000_000, 16_000_000])
def test_networks_that_do_not_grow_are_planned_as_if_only_one_copy_had_been_counted(
    layer, budget, monkeypatch
):
    def planned(model):
        sizes = []

        def work(union):
            sizes.append(len(union))
            return model.executor.outputs(union)

        graphs, of = model.computation_graphs(list(range(150))), torch.arange(3000) % 150
        with model.session(), torch.no_grad():
            model.executor.map(work, graphs, of, "counted")
            sizes.clear()
            model.executor.map(work, graphs, of, "counted")
        return sizes

    def fresh():
        return gg.NodeClassificationModel(
            build(Stack, layer), random_graph(200, 500), memory_budget=budget
        )

    found = planned(fresh())
    monkeypatch.setattr(
        Executor, "_joint_cost", lambda self, work, copies, cost, each, budget: cost
    )
    assert found == planned(fresh())
    assert max(found) > 8


def test_unions_are_counted_once_per_network():
    """A second kind of work on copies of the same size counts one copy of its own, and no union."""
    model = gg.NodeClassificationModel(
        build(Stack, GCNConv), random_graph(200, 500), memory_budget="4MB"
    )
    graphs, of, sizes = model.computation_graphs(list(range(150))), torch.arange(3000) % 150, {}
    model.executor.costs.clear()  # of cutting out the graphs
    with torch.no_grad():
        for kind in ("first", "second"):
            seen = sizes[kind] = []
            model.map(
                lambda union, seen=seen: (seen.append(len(union)), model.executor.outputs(union))[
                    1
                ],
                graphs,
                of,
                kind,
            )
    assert sum(sizes["first"]) > 3001, "a union was counted before it was planned"
    assert sum(sizes["second"]) == 3001


def test_one_large_copy_says_nothing_about_unions():
    model = dense_model(20_000_000)
    model.computation_graphs([0])  # the first use of a model forgets costs
    model.executor.costs["large"] = CopyCost(10**9, 10**5, 10**5, 10**5)
    assert (
        max(taken for _, taken in counted_unions(model, torch.arange(400) % 40)[1])
        <= 4 * 20_000_000
    )


def test_work_that_allocates_nothing_is_planned():
    model = gg.NodeClassificationModel(
        build(Stack, GCNConv), random_graph(20, 50), memory_budget="4MB"
    )
    one = torch.zeros(1, 1)
    assert (
        len(model.map(lambda union: one.expand(len(union), 1), model.computation_graphs([0, 1, 2])))
        == 3
    )
