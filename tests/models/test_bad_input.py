"""Bad input: every item of the catalogue is refused with a message that names the field, or has a
documented result.
"""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from support.small_networks import (
    CLASSES,
    FEATURES,
    EncodeDecode,
    Pooled,
    Stack,
    build,
    random_graph,
)
from torch import nn
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import BatchNorm, GCNConv
from torch_geometric.nn import Linear as PygLinear
from torch_geometric.transforms import ToSparseTensor

import graphgauge as gg
from graphgauge.core.errors import BadGraph, BadModel, BadSetting, BadTarget

# --- graphs and features: (what is wrong, the message that names it) ------------------------------


def change(**attributes):
    """A graph with some attributes exchanged."""

    def make():
        data = random_graph(20, 40)
        for name, value in attributes.items():
            data[name] = value(data) if callable(value) else value
        return data

    return make


def with_entry(name, row, value):
    def spoiled(data):
        tensor = data[name].clone() if data.get(name) is not None else torch.ones(data.num_edges)
        tensor[row] = value
        return tensor

    return change(**{name: spoiled})


def hetero():
    """Build a heterogeneous graph, which is refused.

    PyG converts the network for such graphs, and so explains another network than the user's.
    """
    data = HeteroData()
    data["a"].x = torch.rand(3, FEATURES)
    return data


def sparse_adjacency():
    return Data(x=torch.rand(20, FEATURES), adj_t=torch.eye(20).to_sparse())


REFUSED = {
    "no nodes": (
        change(x=torch.zeros(0, FEATURES), edge_index=torch.zeros(2, 0, dtype=torch.int64)),
        r"\.x must be .* shape \(0, 6\)",
    ),
    "negative index": (
        with_entry("edge_index", (0, 3), -1),
        r"\.edge_index joins -1 and \d+ in edge 3",
    ),
    "index out of range": (
        with_entry("edge_index", (1, 4), 20),
        r"\.edge_index joins \d+ and 20 in edge 4, but the 20 nodes are 0\.\.19",
    ),
    "float indices": (
        change(edge_index=lambda data: data.edge_index.float()),
        r"\.edge_index must hold whole numbers .*torch.float32",
    ),
    "transposed edge_index": (
        change(edge_index=lambda data: data.edge_index.t()),
        r"\.edge_index must have shape \(2, E\).*use .*edge_index.t",
    ),
    "flat edge_index": (
        change(edge_index=torch.arange(5)),
        r"\.edge_index must have shape \(2, E\), but has \(5,\)",
    ),
    "edge_index as list": (
        change(edge_index=[[0, 1], [1, 2]]),
        r"\.edge_index must be an integer tensor \(2, E\), but is list",
    ),
    "no edge_index": (change(edge_index=None), r"\.edge_index must be an integer tensor"),
    "sparse adjacency": (sparse_adjacency, r"stored as a sparse adj_t"),
    "sparse edge_index": (
        change(edge_index=torch.eye(2).long().to_sparse()),
        r"\.edge_index is stored as torch.sparse_coo",
    ),
    "edge_weight too short": (
        change(edge_weight=torch.ones(3)),
        r"\.edge_weight must have one row for each of the \d+ edges",
    ),
    "edge_weight scalar": (
        change(edge_weight=torch.tensor(1.0)),
        r"\.edge_weight must have one row",
    ),
    "edge_weight NaN": (
        with_entry("edge_weight", 5, torch.nan),
        r"\.edge_weight has 1 entries that are NaN or infinite, the first in row 5",
    ),
    "edge_attr infinite": (
        change(edge_attr=lambda data: torch.full((data.num_edges, 2), torch.inf)),
        r"\.edge_attr has \d+ entries",
    ),
    "hetero data": (hetero, r"is a HeteroData.*to_homogeneous"),
    "not a graph": (
        lambda: {"x": torch.rand(3, 2)},
        r"must be a torch_geometric.data.Data|must be a list or Dataset",
    ),
    "many nodes without features": (
        change(x=torch.zeros(1_000_000, 0)),
        r"\.x must be .* shape \(1000000, 0\)",
    ),
    "NaN features": (
        with_entry("x", (7, 2), torch.nan),
        r"\.x has 1 entries that are NaN or infinite, the first in row 7",
    ),
    "infinite features": (with_entry("x", (3, 0), -torch.inf), r"\.x has 1 entries .* row 3"),
    "int features": (
        change(x=torch.ones(20, FEATURES, dtype=torch.int64)),
        r"\.x is torch.int64; .*use .*\.float",
    ),
    "bool features": (change(x=torch.ones(20, FEATURES, dtype=torch.bool)), r"\.x is torch.bool"),
    "half features": (
        change(x=torch.ones(20, FEATURES, dtype=torch.float16)),
        r"\.x is torch.float16",
    ),
    "bfloat features": (
        change(x=torch.ones(20, FEATURES, dtype=torch.bfloat16)),
        r"\.x is torch.bfloat16",
    ),
    "complex features": (
        change(x=torch.ones(20, FEATURES, dtype=torch.complex64)),
        r"\.x is torch.complex64",
    ),
    "object features": (
        change(x=np.array([["a"] * FEATURES] * 20, dtype=object)),
        r"\.x must be a tensor of node features \(N, F\), but is ndarray",
    ),
    "no features": (
        change(x=None),
        r"\.x must be a tensor of node features \(N, F\), but is NoneType",
    ),
    "sparse features": (
        change(x=torch.eye(20, FEATURES).to_sparse()),
        r"\.x is stored as torch.sparse_coo: use .*to_dense",
    ),
    "flat features": (change(x=torch.ones(20)), r"\.x must be \(N, F\)"),
    "other device": (
        change(x=torch.ones(20, FEATURES, device="meta")),
        r"\.x is on meta and .*edge_index on cpu",
    ),
}

WRAPPERS = {
    "node": lambda data: gg.NodeClassificationModel(build(Stack, GCNConv), data),
    "node regression": lambda data: gg.NodeRegressionModel(build(Stack, GCNConv, out=1), data),
    "link": lambda data: gg.LinkClassificationModel(build(EncodeDecode), data),
    "graph": lambda data: gg.GraphClassificationModel(build(Pooled), [random_graph(), data]),
}


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
@pytest.mark.parametrize(("make", "message"), REFUSED.values(), ids=REFUSED)
def test_refused_graphs(make, message, wrap):
    with pytest.raises(BadGraph, match=message):
        wrap(make())


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_a_real_sparse_transform_is_refused_with_its_name():
    with pytest.raises(BadGraph, match="leave out the ToSparseTensor transform"):
        WRAPPERS["node"](ToSparseTensor(layout=torch.sparse_coo)(random_graph(20, 40)))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (random_graph(), "must be a list or Dataset of Data, but is Data: write"),
        ([], "at least one graph, but the list is empty"),
        (7, "must be a list or Dataset of Data, but is int"),
        (
            [
                random_graph(),
                Data(
                    x=torch.rand(3, FEATURES),
                    edge_index=torch.zeros(2, 0, dtype=torch.int64),
                    y=torch.ones(1),
                ),
            ],
            "differ in: y",
        ),
        (
            [
                random_graph(),
                Data(x=torch.rand(3, 2), edge_index=torch.zeros(2, 0, dtype=torch.int64)),
            ],
            r"data\[1\].x has rows of \(2,\)",
        ),
    ],
)
def test_refused_lists_of_graphs(data, message):
    with pytest.raises(BadGraph, match=message):
        gg.GraphClassificationModel(build(Pooled), data)


NO_EDGES = torch.zeros(2, 0, dtype=torch.int64)
LOOPS = torch.arange(20).repeat(2, 1)

#: graphs and features that are used, and what is done with them
ACCEPTED = {
    "no edges": change(edge_index=NO_EDGES),
    "one node": change(x=torch.ones(1, FEATURES), edge_index=NO_EDGES),
    "self-loops on some": change(
        edge_index=lambda data: torch.cat([data.edge_index, LOOPS[:, :5]], 1)
    ),
    "self-loops on all": change(edge_index=lambda data: torch.cat([data.edge_index, LOOPS], 1)),
    "only self-loops": change(edge_index=LOOPS),
    "duplicates": change(edge_index=lambda data: data.edge_index.repeat(1, 2)),
    "int32 indices": change(edge_index=lambda data: data.edge_index.int()),
    "not contiguous": change(
        edge_index=lambda data: data.edge_index.t().contiguous().t(),
        x=lambda data: data.x.t().contiguous().t(),
    ),
    "symmetric": change(
        edge_index=lambda data: torch.cat([data.edge_index, data.edge_index.flip(0)], 1)
    ),
    "negative weights": change(edge_weight=lambda data: -torch.ones(data.num_edges)),
    "all zero features": change(x=torch.zeros(20, FEATURES)),
    "constant features": change(x=torch.ones(20, FEATURES)),
    "one-hot features": change(x=lambda data: torch.eye(20, FEATURES)),
    "features with gradient": change(x=lambda data: data.x.clone().requires_grad_(True)),
}


@pytest.mark.parametrize("make", ACCEPTED.values(), ids=ACCEPTED)
def test_accepted_graphs_are_exact(make):
    data = make()
    net = build(Stack, GCNConv)
    model = gg.NodeClassificationModel(net, data)
    nodes = list(range(data.num_nodes))
    whole = net(data.x.detach(), data.edge_index.long()).softmax(1).detach()
    batch = model.computation_graphs(nodes)
    pred = model.pred_copies(batch)
    assert (pred - whole).abs().max() <= 1e-6
    assert not pred.requires_grad
    is_loop = data.edge_index[0] == data.edge_index[1]
    assert all(not is_loop[graph.edges].any() for graph in batch)


def test_a_read_only_memory_map_is_never_written(tmp_path):
    numbers = np.lib.format.open_memmap(
        tmp_path / "x.npy", mode="w+", dtype=np.float32, shape=(20, FEATURES)
    )
    numbers[:] = 1
    numbers.flush()
    data = random_graph(20, 40)
    data.x = torch.frombuffer(np.load(tmp_path / "x.npy", mmap_mode="c"), dtype=torch.float32).view(
        20, FEATURES
    )
    gg.check_model(gg.NodeClassificationModel(build(Stack, GCNConv), data))


# --- names ----------------------------------------------------------------------------------------

NAMES = [f"feature {number}" for number in range(FEATURES)]


def test_names_are_kept_and_taken_from_the_data():
    assert gg.NodeClassificationModel(
        build(Stack, GCNConv), random_graph(), feature_names=NAMES
    ).feature_names == tuple(NAMES)
    data = random_graph()
    data.feature_names = NAMES
    assert gg.NodeClassificationModel(build(Stack, GCNConv), data).feature_names == tuple(NAMES)
    assert gg.NodeClassificationModel(build(Stack, GCNConv), random_graph()).feature_names is None


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (NAMES[:-1], "feature_names must name each of the 6 features once, but 5 were given"),
        ("abcdef", "feature_names must name each of the 6 features"),
        (
            [*NAMES[:-1], NAMES[0]],
            "feature_names must differ, but 'feature 0' is given more than once",
        ),
        ([*NAMES[:-1], ""], r"feature_names\[5\] must be a text of 1 to 500 characters, but is ''"),
        ([*NAMES[:-1], "  "], r"feature_names\[5\] must be a text"),
        ([*NAMES[:-1], "x" * 10_000], r"feature_names\[5\] must be .*, but is 10000 characters"),
        ([*NAMES[:-1], 5], r"feature_names\[5\] must be .*, but is 5"),
        ([*NAMES[:-1], None], r"feature_names\[5\] must be .*, but is None"),
    ],
)
def test_refused_names(names, message):
    with pytest.raises(BadGraph, match=message):
        gg.NodeClassificationModel(build(Stack, GCNConv), random_graph(), feature_names=names)


# --- targets --------------------------------------------------------------------------------------

WRONG_NODES = {
    "out of range": [60],
    "far out of range": [2**70],
    "negative": [-1],
    "float": [1.0],
    "NaN": [float("nan")],
    "bool": [True],
    "text": ["0"],
    "None": [None],
    "a link": [(0, 1)],
    "nodes and links mixed": [0, (0, 1)],
    "float tensor": torch.tensor([0.0, 1.0]),
    "bool tensor": torch.tensor([True, False]),
    "out of range in a tensor": torch.tensor([0, 60]),
    "negative in an array": np.array([0, -2]),
    "a table": torch.tensor([[0, 1], [2, 3]]),
}
WRONG_LINKS = {
    "out of range": [(0, 60)],
    "negative": [(-1, 0)],
    "float": [(0, 1.5)],
    "to itself": [(3, 3)],
    "a node": [0],
    "links and nodes mixed": [(0, 1), 2],
    "three ends": [(0, 1, 2)],
    "one end": [(0,)],
    "text": ["01"],
    "edge_index instead of pairs": torch.tensor([[0, 1, 2], [1, 2, 3]]),
    "to itself in a tensor": torch.tensor([[0, 1], [2, 2]]),
}
WRONG_LISTS = {
    "one number": 5,
    "a text": "5",
    "a dictionary": {0: 1},
    "nothing": None,
    "a lone tensor": torch.tensor(3),
}
ASK = {
    "pred_continuous": lambda model, targets: model.pred_continuous(targets),
    "pred_discrete": lambda model, targets: model.pred_discrete(targets),
    "computation_graphs": lambda model, targets: model.computation_graphs(targets),
    "embed": lambda model, targets: model.embed(targets),
    "check_model": lambda model, targets: gg.check_model(model, targets),
}


@pytest.mark.parametrize("ask", ASK.values(), ids=ASK)
@pytest.mark.parametrize("targets", WRONG_NODES.values(), ids=WRONG_NODES)
def test_refused_nodes(targets, ask):
    with pytest.raises(
        BadTarget,
        match=r"target .* (is not in this data: its 60 nodes are 0\.\.59|is not a whole number)",
    ):
        ask(gg.NodeClassificationModel(build(Stack, GCNConv), random_graph()), targets)


@pytest.mark.parametrize("ask", ASK.values(), ids=ASK)
@pytest.mark.parametrize("targets", WRONG_LINKS.values(), ids=WRONG_LINKS)
def test_refused_links(targets, ask):
    with pytest.raises(
        BadTarget,
        match=(
            r"target .* (is not in this data|is not a whole number|is not a link|links node \d to "
            r"itself)"
        ),
    ):
        ask(gg.LinkClassificationModel(build(EncodeDecode), random_graph()), targets)


@pytest.mark.parametrize("ask", [ask for name, ask in ASK.items() if name != "check_model"])
@pytest.mark.parametrize("targets", WRONG_LISTS.values(), ids=WRONG_LISTS)
def test_refused_lists_of_targets(targets, ask):
    with pytest.raises(BadTarget, match="targets must be a list of"):
        ask(gg.NodeClassificationModel(build(Stack, GCNConv), random_graph()), targets)


def test_refused_graph_indices():
    model = gg.GraphClassificationModel(
        build(Pooled), [random_graph(seed=seed) for seed in range(3)]
    )
    with pytest.raises(BadTarget, match=r"target 3 is not in this data: its 3 graphs are 0\.\.2"):
        model.computation_graphs([3])


def test_repeated_targets_are_answered_twice():
    model = gg.NodeClassificationModel(build(Stack, GCNConv), random_graph())
    assert [graph.target for graph in model.computation_graphs([4, 4, 2])] == [4, 4, 2]
    assert model.pred_continuous([4, 4]).unique(dim=0).size(0) == 1


# --- networks -------------------------------------------------------------------------------------


class Odd(nn.Module):
    """A GCN whose output goes through a function."""

    def __init__(self, function, layer=None):
        super().__init__()
        self.conv, self.function, self.extra = GCNConv(FEATURES, CLASSES), function, layer

    def forward(self, x, edge_index):
        return self.function(self.conv(x, edge_index))


def spoiled(value):
    def function(z):
        return torch.where(torch.arange(len(z))[:, None] == 5, value, z)

    return function


REFUSED_NETS = {
    "returns a tuple": (lambda z: (z, z), "the net returned a tuple"),
    "returns nothing": (lambda z: None, "the net returned a NoneType"),
    "returns classes": (lambda z: z.argmax(1), "the net returned torch.int64; probabilities"),
    "returns one number": (lambda z: z.sum(), "the net returned a single number"),
    "returns a cube": (lambda z: z[:, :, None], "one row per node"),
    "returns fewer rows": (
        lambda z: z[1:],
        r"one row per node, here \(60, C\), but returned shape \(59, 4\)",
    ),
    "returns no columns": (lambda z: z[:, :0], "one row per node"),
    "NaN output": (spoiled(torch.nan), "NaN or infinity for 1 of 60 nodes, the first is number 5"),
    "infinite output": (spoiled(torch.inf), "NaN or infinity for 1 of 60 nodes"),
    "a row of nothing but minus infinity": (
        spoiled(-torch.inf),
        "NaN or infinity for 1 of 60 nodes",
    ),
    "dropout at evaluation": (
        lambda z: F.dropout(z, 0.5),
        "different outputs for the same input .*F.dropout without training=self.training",
    ),
    "random noise": (lambda z: z + torch.rand_like(z), "different outputs for the same input"),
    "an error of its own": (
        lambda z: z @ torch.rand(3, 3),
        r"Odd could not be run on data: RuntimeError: .*It was given edge_index",
    ),
}


@pytest.mark.parametrize("ask", [name for name in ASK if name not in ("embed", "check_model")])
@pytest.mark.parametrize(("function", "message"), REFUSED_NETS.values(), ids=REFUSED_NETS)
def test_refused_networks(function, message, ask):
    with pytest.raises(BadModel, match=message):
        ASK[ask](gg.NodeClassificationModel(build(Odd, function), random_graph()), [0, 1])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: gg.NodeClassificationModel(
                torch.inference_mode()(build)(Stack, GCNConv), random_graph()
            ),
            "inside torch.inference_mode",
        ),
        (
            lambda: gg.NodeClassificationModel(len, random_graph()),
            "net must be a torch.nn.Module, but is builtin_function",
        ),
        (
            lambda: gg.NodeClassificationModel(Odd(None, PygLinear(-1, 3)), random_graph()),
            r"lazy parameters without a shape yet \(extra.weight\)",
        ),
    ],
)
def test_networks_refused_at_the_door(make, message):
    with pytest.raises(BadModel, match=message):
        make()


def test_a_network_of_another_precision_or_width_is_told_what_it_was_given():
    with pytest.raises(BadModel, match=r"could not be run on data.*x \(60, 6\) torch.float32"):
        gg.NodeClassificationModel(build(Stack, GCNConv).double(), random_graph()).pred_continuous(
            [0]
        )
    narrow = random_graph()
    narrow.x = narrow.x[:, :2]
    with pytest.raises(BadModel, match=r"could not be run on data.*x \(60, 2\)"):
        gg.NodeClassificationModel(build(Stack, GCNConv), narrow).computation_graphs([0])


def test_a_network_on_another_device_is_refused():
    with pytest.raises(BadModel, match="the net is on meta and data on cpu"):
        gg.NodeClassificationModel(build(Stack, GCNConv).to("meta"), random_graph())


def test_a_network_out_of_memory_on_the_whole_graph_says_so():
    from graphgauge.core.errors import OutOfMemory

    def hungry(z):
        raise RuntimeError(
            "DefaultCPUAllocator: can't allocate memory: you tried to allocate 99 bytes"
        )

    with pytest.raises(OutOfMemory, match="one pass over the whole graph does not fit"):
        gg.NodeClassificationModel(build(Odd, hungry), random_graph()).pred_continuous([0])


class Normalised(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.norm, self.drop, self.two = (
            GCNConv(FEATURES, 8),
            BatchNorm(8),
            nn.Dropout(0.5),
            GCNConv(8, CLASSES),
        )

    def forward(self, x, edge_index):
        return self.two(self.drop(self.norm(self.one(x, edge_index)).relu()), edge_index)


def trained_mode():
    net = build(Normalised)
    with torch.no_grad():
        net.norm.module.running_mean.fill_(0.3)
    return net.train()


ACCEPTED_NETS = {
    "train mode with dropout and batch norm": trained_mode,
    "constant output": lambda: build(Odd, lambda z: 0 * z + torch.tensor([1.0, 2.0, 3.0, 4.0])),
    "ties everywhere": lambda: build(Odd, lambda z: 0 * z),
    "one class ever": lambda: build(Odd, lambda z: z + 100 * torch.tensor([1.0, 0, 0, 0])),
    "masked class": lambda: build(Odd, lambda z: z.masked_fill(torch.arange(4) == 2, -torch.inf)),
    "frozen parameters": lambda: build(Stack, GCNConv).requires_grad_(False),
    "cached layers": lambda: build(Stack, lambda a, b: GCNConv(a, b, cached=True)),
    "compiled": lambda: torch.compile(build(Stack, GCNConv)),
    "changes its input": lambda: build(Odd, lambda z: z.add_(1.0)),
}


@pytest.mark.parametrize("make", ACCEPTED_NETS.values(), ids=ACCEPTED_NETS)
def test_accepted_networks_pass_all_checks(make):
    net, data = make(), random_graph()
    model = gg.NodeClassificationModel(net, data)
    gg.check_model(model)
    plain = model.net
    mode = plain.training
    expected = plain.eval()(data.x.clone(), data.edge_index).softmax(1).detach()
    plain.train(mode)
    assert (model.pred_continuous(range(60)) - expected).abs().max() <= 1e-6


# --- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"edge_scope": "all"}, "edge_scope must be 'messages' or 'induced', but 'all'"),
        ({"num_hops": -1}, "num_hops must be a whole number of hops, but -1"),
        ({"num_hops": 1.5}, "num_hops must be"),
        ({"num_hops": True}, "num_hops must be"),
        ({"memory_budget": "lots"}, "memory_budget must be bytes or a text"),
        ({"embedding": "x"}, "embedding must be a tensor or a function"),
        ({"output": "softmax"}, "output must be one of"),
    ],
)
def test_refused_settings(options, message):
    with pytest.raises(BadSetting, match=message):
        gg.NodeClassificationModel(build(Stack, GCNConv), random_graph(), **options)


def test_refused_arguments_of_calls():
    model = gg.NodeClassificationModel(build(Stack, GCNConv), random_graph())
    batch = model.computation_graphs([0, 1])
    with pytest.raises(BadSetting, match="edge_scope must be"):
        model.computation_graphs([0], edge_scope="everything")
    for of in ([0, 1], torch.tensor([0.0]), torch.tensor([[0]])):
        with pytest.raises(
            BadSetting, match="of must be a list of graph numbers as an int64 tensor"
        ):
            model.pred_copies(batch, of)
    for of in (torch.tensor([2]), torch.tensor([-1])):
        with pytest.raises(BadSetting, match=r"of must name graphs 0\.\.1"):
            model.pred_copies(batch, of)
    with pytest.raises(TypeError, match="use take"):
        batch[0:1]
    for edit in (
        lambda union: union.without_edges(torch.zeros(3, dtype=torch.bool)),
        lambda union: union.without_edges(torch.zeros(union.num_edges)),
        lambda union: union.with_mask(torch.ones(union.num_edges + 1)),
        lambda union: union.with_x(union.x[1:]),
        lambda union: union.with_x(union.x.double()),
    ):
        with pytest.raises(
            BadSetting, match=r"must have shape|must say yes or no|x must be torch.float32"
        ):
            model.pred_copies(batch, edit=edit)
    regression = gg.NodeRegressionModel(build(Stack, GCNConv, out=1), random_graph())
    for options in (
        {"around": "x"},
        {"around": float("nan")},
        {"around": [0.0, float("inf")]},
        {"flip": -1},
        {"flip": float("nan")},
    ):
        with pytest.raises(BadSetting, match=r"around must be|flip must be"):
            regression.pred_discrete([0, 1], **options)
