"""References and the map φ, against loops over every member of the population."""

import math
import statistics

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.small_networks import (
    FEATURES,
    EncodeDecode,
    LinkForward,
    Pooled,
    Stack,
    build,
    graphs,
    random_graph,
)
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

import graphgauge as gg
from graphgauge.core.errors import BadModel, BadSetting, BadTarget
from graphgauge.core.seeds import make_generator
from graphgauge.perturbation import draw_donors, find_references
from graphgauge.perturbation.references import _has_neighbour

LAYERS = {"GCN": GCNConv, "GAT": GATConv, "SAGE": SAGEConv}
TASKS = ("node", "link", "graph")


# --- the definition, slowly -----------------------------------------------------------------------


def apart(a, b):
    return math.fsum((x - y) ** 2 for x, y in zip(a, b, strict=True))


def literal_nearest(points, rows, allowed, scale):
    """The first of the allowed rows that are nearest to the mean of all rows; what rounding tells
    apart is equal.
    """
    mean = [
        math.fsum(column) / len(rows) for column in zip(*(points[i] for i in rows), strict=True)
    ]
    gap = {i: apart(points[i], mean) for i in rows if i in allowed}
    least = min(gap.values(), default=0)
    return next((i for i in sorted(gap) if gap[i] <= least * (1 + 1e-6) + 1e-12 * scale), None)


def literal_several(points, rows, allowed, number):
    """K-medoids of the rows, step by step."""
    scale = math.fsum(apart(points[i], [0] * len(points[i])) for i in rows) / max(len(rows), 1)
    first = literal_nearest(points, rows, allowed, scale) if rows else None
    chosen = [] if first is None else [first]
    while chosen and len(chosen) < number:
        gap = {i: min(apart(points[i], points[c]) for c in chosen) for i in rows if i in allowed}
        farthest = max(gap, key=lambda i: (gap[i], -i))
        if gap[farthest] <= 1e-12 * scale:
            break
        chosen.append(farthest)
    for _ in range(100 if number > 1 else 0):
        parts = [[] for _ in chosen]
        for i in rows if chosen else []:
            parts[
                min(range(len(chosen)), key=lambda c: (apart(points[i], points[chosen[c]]), c))
            ].append(i)
        update = [literal_nearest(points, part, allowed, scale) for part in parts]
        if update == chosen:
            break
        chosen = update
    return chosen


def literal_references(model, targets, number=1):
    """(number of target, reference, kind, rank), one target, one class or side, and one member
    after another.
    """
    population, cases = [as_typed(member) for member in model.population().tolist()], []
    points, allowed = model.embed(population).tolist(), set()
    for i, graph in enumerate(model.computation_graphs(population)):
        own = {int(row) for row in graph.target_rows}
        if model.level == "graph" or model.hops == 0 or set(range(len(graph.nodes))) - own:
            allowed.add(i)
    for t, target in enumerate(targets):
        if model.task == "classification":
            own, classes = (
                int(model.pred_discrete([target])),
                model.pred_discrete(population).tolist(),
            )
            sets = {
                c: [i for i, label in enumerate(classes) if label == c]
                for c in range(4)
                if c != own
            }
        else:
            own, values = (
                float(model.pred_continuous([target])),
                model.pred_continuous(population).tolist(),
            )
            sd = statistics.pstdev(values)
            sets = {
                -1: [i for i, v in enumerate(values) if v <= own - sd],
                1: [i for i, v in enumerate(values) if v >= own + sd],
            }
        for kind in sorted(sets):
            found = literal_several(points, sets[kind], allowed, number)
            cases += [(t, population[i], kind, rank) for rank, i in enumerate(found)]
    return cases


def as_typed(member):
    return tuple(member) if isinstance(member, list) else member


def cases_of(references):
    return list(
        zip(
            references.target.tolist(),
            references.ids(),
            references.kind.tolist(),
            references.rank.tolist(),
            strict=True,
        )
    )


# --- models ---------------------------------------------------------------------------------------


def model_of(task, kind, layer, data):
    """A model of any task; logits lie around 0, so that no class wins everywhere; graphs: ``data``
    and nine others.
    """
    columns = {"classification": 3, "regression": 1}[kind]
    wrapper = getattr(gg, f"{task.title()}{kind.title()}Model")
    make = {"node": Stack, "link": LinkForward, "graph": Pooled}[task]
    parts = [
        data,
        *(random_graph(3 + seed, 5, seed=seed, dtype=torch.float64) for seed in range(9)),
    ]
    model = wrapper(
        build(make, layer, out=columns, dtype=torch.float64), parts if task == "graph" else data
    )
    if kind == "classification":
        with torch.no_grad():
            bias_of(model.net).sub_(0.97 * model.whole_rows(model.population_rows).mean(0))
    return model


def bias_of(net):
    return next(bias for name, bias in last_layer(net).named_parameters() if name.endswith("bias"))


def last_layer(net):
    return net.convs[-1] if isinstance(net, Stack) else net.lin


def some_targets(model):
    """Members of the population, one of them twice."""
    population = [as_typed(member) for member in model.population().tolist()]
    return [*population[:: max(1, len(population) // 4)], population[0]]


# --- finding references ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["classification", "regression"])
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
@settings(max_examples=4)
@given(data=graphs(max_nodes=9, max_edges=14), number=st.sampled_from([1, 3]))
def test_references_are_found_as_defined(layer, task, kind, data, number):
    assume(data.num_nodes > 1)
    model = model_of(task, kind, layer, data)
    targets = some_targets(model)
    assert cases_of(find_references(model, targets, number)) == literal_references(
        model, targets, number
    )


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("kind", ["classification", "regression"])
@pytest.mark.parametrize("task", TASKS)
def test_references_of_larger_graphs_are_found_as_defined(task, kind, number):
    model = model_of(task, kind, GCNConv, random_graph(30, 40, dtype=torch.float64))
    targets = some_targets(model)
    references = find_references(model, targets, number)
    assert cases_of(references) == literal_references(model, targets, number)
    assert len(references) >= len(targets)
    assert number == 1 or references.rank.max() == number - 1
    for case, ids in enumerate(references.ids()):
        assert references.graphs[int(references.graph[case])].target == ids
    assert len(references.graphs) == len(set(references.ids()))


def test_links_of_encoders_and_decoders_are_too():
    model = gg.LinkClassificationModel(
        build(EncodeDecode, dtype=torch.float64), random_graph(20, 30, dtype=torch.float64)
    )
    targets = [(0, 5), (7, 3), (19, 18)]
    references = find_references(model, targets)
    assert cases_of(references) == literal_references(model, targets)
    assert references.count().tolist() == [1, 1, 1]
    assert (references.kind == 1 - model.pred_discrete(targets)).all()


@settings(max_examples=10)
@given(
    data=graphs(),
    flow=st.sampled_from(
        [("source_to_target",), ("target_to_source",), ("source_to_target", "target_to_source")]
    ),
)
def test_a_neighbour_is_a_node_of_the_computation_graph_that_is_not_the_targets_own(data, flow):
    flows = iter(flow * 2)
    net = build(Stack, lambda a, b: GCNConv(a, b, flow=next(flows)), dtype=torch.float64)
    model = gg.NodeClassificationModel(net, data, output="logits")
    sizes = model.computation_graphs(model.population()).num_nodes
    assert _has_neighbour(model, model.population_rows).tolist() == (sizes > 1).tolist()
    assume(data.num_nodes > 1)
    flows = iter(flow * 2)
    net = build(LinkForward, lambda a, b: GCNConv(a, b, flow=next(flows)), dtype=torch.float64)
    model = gg.LinkClassificationModel(net, data, output="logits")
    pairs = [(u, v) for u in range(data.num_nodes) for v in range(data.num_nodes) if u != v]
    assert (
        _has_neighbour(model, model.parse_targets(torch.tensor(pairs))).tolist()
        == (model.computation_graphs(pairs).num_nodes > 2).tolist()
    )


class Threshold(nn.Module):
    """Class 1 where the first feature is positive; or that feature. The hidden space is x; messages
    count for nothing.
    """

    def __init__(self, weight):
        super().__init__()
        self.conv = SAGEConv(weight.size(1), weight.size(0))
        with torch.no_grad():
            self.conv.lin_r.weight.copy_(weight)
            self.conv.lin_l.weight.mul_(1e-9)
            self.conv.lin_l.bias.zero_()

    def forward(self, x, edge_index):
        return self.conv(x, edge_index)


CLASSES = torch.tensor([[-1.0, 0.0], [1.0, 0.0]])
VALUE = torch.tensor([[1.0, 0.0]])


def cloud(*points, edges=()):
    """Nodes at these places, joined both ways."""
    edge_index = torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).t()
    return Data(
        x=torch.tensor(points, dtype=torch.float64),
        edge_index=torch.cat([edge_index, edge_index.flip(0)], 1),
    )


def test_an_isolated_medoid_is_skipped_but_counts_in_the_mean():
    data = cloud(
        (-1, 0), (-1, 1), (1, 0), (2, 0), (3, 0), (4, 0), (30, 0), edges=[(0, 1), (2, 6), (3, 4)]
    )
    model = gg.NodeClassificationModel(
        build(Threshold, CLASSES, dtype=torch.float64), data, output="logits"
    )
    references = find_references(model, [0, 2])
    # the mean of class 1 is 8: node 5 is nearest, but alone; node 4 follows. Without the lonely
    # node the mean would be 9.
    assert cases_of(references) == [(0, 4, 1, 0), (1, 0, 0, 0)]
    data.edge_index = torch.cat([data.edge_index, torch.tensor([[3], [5]])], 1)
    model = gg.NodeClassificationModel(
        build(Threshold, CLASSES, dtype=torch.float64), data, output="logits"
    )
    assert find_references(model, [0]).ids() == [5]


def test_a_class_without_any_neighbours_gives_no_reference():
    data = cloud((-1, 0), (-1, 1), (1, 0), (2, 0), edges=[(0, 1)])
    model = gg.NodeClassificationModel(
        build(Threshold, CLASSES, dtype=torch.float64), data, output="logits"
    )
    references = find_references(model, [0, 2, 3])
    assert references.count().tolist() == [0, 1, 1]
    assert references.lacks(1).tolist() == [True, True, True]
    assert references.lacks(0).tolist() == [True, False, False]
    model = gg.NodeClassificationModel(
        build(Threshold, CLASSES, dtype=torch.float64), data, output="logits", num_hops=0
    )
    with pytest.warns(UserWarning, match="num_hops=0 was given"):
        references = find_references(model, [0, 2])
    assert references.ids() == [2, 0]  # without messages there are no neighbours to lend anything


def test_the_extremes_of_a_regression_have_one_side():
    # standard deviation: the root of 10, so four steps away or more
    line = [(float(i), 0.0) for i in range(11)]
    data = cloud(*line, edges=[(i, i + 1) for i in range(10)])
    model = gg.NodeRegressionModel(build(Threshold, VALUE, dtype=torch.float64), data)
    references = find_references(model, [0, 5, 10, 2])
    # above 0: 4..10, mean 7; below 5: 0, 1 (a tie, the first); above 5: 9, 10; below 10: 0..6;
    # above 2: 6..10
    assert cases_of(references) == [
        (0, 7, 1, 0),
        (1, 0, -1, 0),
        (1, 9, 1, 0),
        (2, 3, -1, 0),
        (3, 8, 1, 0),
    ]
    assert references.lacks(-1).tolist() == [True, False, False, True]
    assert references.lacks(1).tolist() == [False, False, True, False]


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("kind", ["classification", "regression"])
@pytest.mark.parametrize("task", TASKS)
def test_a_constant_model_has_no_reference(task, kind, number):
    model = model_of(task, kind, GCNConv, random_graph(20, 30, dtype=torch.float64))
    with torch.no_grad():
        for weight in last_layer(model.net).parameters():
            weight.mul_(1e-15)  # not even constant: rounding differs
        bias = bias_of(model.net)
        bias.copy_(torch.linspace(1, 2, len(bias)))
    assert kind == "classification" or 0 < model.spread < 1e-14
    references = find_references(model, some_targets(model), number)
    assert (len(references), len(references.graphs)) == (0, 0)
    assert references.count().tolist() == [0] * len(some_targets(model))
    assert draw_donors(
        model.computation_graphs(some_targets(model)), references, []
    ).ptr.tolist() == [0]


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("kind", ["classification", "regression"])
@pytest.mark.parametrize("task", TASKS)
def test_references_depend_neither_on_the_order_nor_on_the_company_of_targets(task, kind, number):
    model = model_of(task, kind, GATConv, random_graph(30, 50, dtype=torch.float64))
    targets = some_targets(model)
    together, turned = (
        find_references(model, targets, number),
        find_references(model, targets[::-1], number),
    )
    for t, target in enumerate(targets):
        alone = cases_of(find_references(model, [target], number))
        for number_there, found in ((t, together), (len(targets) - 1 - t, turned)):
            assert [(0, *case[1:]) for case in cases_of(found) if case[0] == number_there] == alone
    assert together.target.tolist() == sorted(together.target.tolist())


@pytest.mark.parametrize("task", TASKS)
def test_no_targets_have_no_references(task):
    model = model_of(task, "regression", GCNConv, random_graph(20, 30, dtype=torch.float64))
    references = find_references(model, [])
    assert (len(references), references.num_targets, references.ids()) == (0, 0, [])


def test_the_users_model_is_as_it_was():
    data = random_graph(30, 50)
    net = build(Stack, GCNConv).train()
    model = gg.NodeClassificationModel(net, data)
    before, x, edges = (
        {name: value.clone() for name, value in net.state_dict().items()},
        data.x.clone(),
        data.edge_index.clone(),
    )
    state = torch.get_rng_state()
    references = find_references(model, [0, 1, 2], 3)
    draw_donors(model.computation_graphs([0, 1, 2]), references, list(range(len(references))))
    assert torch.equal(torch.get_rng_state(), state)
    assert net.training
    assert not any(module._forward_pre_hooks or module._forward_hooks for module in net.modules())
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert torch.equal(data.x, x)
    assert torch.equal(data.edge_index, edges)


@pytest.mark.parametrize("number", [0, -1, 1.5, True, "3"])
def test_an_impossible_number_of_references_is_refused(number):
    model = gg.NodeClassificationModel(build(Stack, GCNConv), random_graph())
    with pytest.raises(BadSetting, match="references per class must be a whole number, 1 or more"):
        find_references(model, [0], number)


def test_a_hidden_space_without_distances_is_refused():
    hidden = torch.zeros(60, 2)
    hidden[7, 1] = torch.nan
    model = gg.NodeClassificationModel(build(Stack, GCNConv), random_graph(), embedding=hidden)
    with pytest.raises(BadModel, match="NaN or infinity for 1 of 60 members"):
        find_references(model, [0])


# --- the map φ ------------------------------------------------------------------------------------


def literal_donors(target, reference, seed):
    """Node by node: the ids of who lends, in the target's order."""
    own = [int(row) for row in target.target_rows]
    offset = int(reference.batch.offset[reference.number])
    there = [int(node) + offset for node in reference.nodes]
    lenders = [
        node for row, node in enumerate(there) if row not in [int(r) for r in reference.target_rows]
    ]
    others = [row for row in range(len(target.nodes)) if row not in own]
    random = make_generator(seed)
    if len(lenders) < len(others):
        drawn = torch.randint(len(lenders), (len(others),), generator=random)
    else:
        drawn = torch.randperm(len(lenders), generator=random)
        drawn = drawn[: len(others)]
    found = {row: lenders[k] for row, k in zip(others, drawn.tolist(), strict=True)}
    found |= {row: there[int(reference.target_rows[end])] for end, row in enumerate(own)}
    return [found[row] for row in range(len(target.nodes))]


@pytest.mark.parametrize("kind", ["classification", "regression"])
@pytest.mark.parametrize("task", TASKS)
@settings(max_examples=5)
@given(
    data=graphs(max_nodes=9, max_edges=14),
    seed=st.integers(0, 2**40),
    number=st.sampled_from([1, 2]),
)
def test_donors_are_the_map_as_defined(task, kind, data, seed, number):
    assume(data.num_nodes > 1)
    model = model_of(task, kind, SAGEConv, data)
    targets = some_targets(model)
    batch, references = model.computation_graphs(targets), find_references(model, targets, number)
    seeds = [seed + case for case in range(len(references))]
    found = draw_donors(batch, references, seeds)
    assert len(found) == len(references)
    for case, own_seed in enumerate(seeds):
        target, reference = (
            batch[int(references.target[case])],
            references.graphs[int(references.graph[case])],
        )
        own = found.node[found.ptr[case] : found.ptr[case + 1]].tolist()
        assert own == literal_donors(target, reference, own_seed)
    assert found.ptr[-1] == len(found.node)


def star_and_path():
    """Node 0 has six neighbours and class 1, node 7 has two and class 0; 8 and 9 stand beside 7."""
    points = [(5, 0), *[(5, i) for i in (-4, -3, -2, 2, 3, 4)], (-5, 0), (-5, 1), (-5, -1)]
    data = cloud(*points, edges=[*((0, i) for i in range(1, 7)), (7, 8), (7, 9)])
    return gg.NodeClassificationModel(
        build(Threshold, CLASSES, dtype=torch.float64), data, output="logits"
    )


def test_neighbours_are_lent_once_where_there_are_enough_and_never_by_the_reference_itself():
    model = star_and_path()
    references, batch = find_references(model, [7, 0]), model.computation_graphs([7, 0])
    assert references.ids() == [0, 7]
    seen = set()
    for seed in range(60):
        found = draw_donors(batch, references, [seed, seed])
        few, many = found.node[:3].tolist(), found.node[3:].tolist()
        assert few[0] == 0
        assert len(set(few[1:])) == 2
        assert set(few[1:]) <= set(range(1, 7))
        assert many[0] == 7
        assert set(many[1:]) <= {8, 9}
        seen.add((*few, *many))
        again = draw_donors(batch, references, [seed, seed])
        assert torch.equal(found.node, again.node)
    assert len(seen) > 50
    assert {row[1] for row in seen} == set(range(1, 7))


def test_a_case_is_drawn_from_its_seed_whatever_else_is_in_the_batch():
    model = model_of("link", "classification", GCNConv, random_graph(30, 50, dtype=torch.float64))
    targets = some_targets(model)
    batch, references = model.computation_graphs(targets), find_references(model, targets)
    seeds = [100 + case for case in range(len(references))]
    together = draw_donors(batch, references, seeds)
    for t, target in enumerate(targets):
        alone = find_references(model, [target])
        cases = (references.target == t).nonzero()[:, 0].tolist()
        found = draw_donors(
            model.computation_graphs([target]), alone, [seeds[case] for case in cases]
        )
        there = torch.cat(
            [together.node[together.ptr[case] : together.ptr[case + 1]] for case in cases]
        )
        assert torch.equal(found.node, there)


def test_ends_of_links_lend_to_ends_in_their_order():
    model = model_of("link", "classification", GCNConv, random_graph(30, 50, dtype=torch.float64))
    targets = [(5, 2), (2, 5), (11, 20)]
    batch, references = model.computation_graphs(targets), find_references(model, targets)
    found = draw_donors(batch, references, [0] * len(references))
    assert len(references) > 0
    for case, pair in enumerate(references.ids()):
        rows = batch.target_row[references.target[case]]
        assert tuple(found.node[found.ptr[case] + rows].tolist()) == pair


def test_graphs_lend_their_nodes_under_their_numbers_in_the_whole_list():
    model = model_of("graph", "regression", GCNConv, random_graph(12, 20, dtype=torch.float64))
    batch, references = model.computation_graphs(range(10)), find_references(model, range(10))
    found = draw_donors(batch, references, list(range(len(references))))
    source = model.source
    assert len(references) >= 5
    for case, graph in enumerate(references.ids()):
        own = found.node[found.ptr[case] : found.ptr[case + 1]]
        assert ((own >= source.node_ptr[graph]) & (own < source.node_ptr[graph + 1])).all()
        assert source.x[own].shape == (int(batch.num_nodes[references.target[case]]), FEATURES)


def test_wrong_company_is_refused():
    model, other = star_and_path(), star_and_path()
    references = find_references(model, [7, 0])
    with pytest.raises(BadTarget, match="cut by another model"):
        draw_donors(other.computation_graphs([7, 0]), references, [0, 0])
    with pytest.raises(BadTarget, match="belong to 2 targets, but there are 1"):
        draw_donors(model.computation_graphs([7]), references, [0, 0])
    with pytest.raises(BadSetting, match="one seed for each of the 2 cases, but 1"):
        draw_donors(model.computation_graphs([7, 0]), references, [0])
