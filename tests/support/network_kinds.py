"""Thirty kinds of networks, tiny: what the table in docs/models.md is made from.

Each kind says how to make the network, which graphs it works on and how it is wrapped. What
graphgauge makes of it is not said here but found out by bench/network_table.py.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import (
    ASAPooling,
    AttentiveFP,
    FastRGCNConv,
    GCNConv,
    GINConv,
    GINEConv,
    GPSConv,
    GraphNorm,
    JumpingKnowledge,
    NNConv,
    PNAConv,
    RGCNConv,
    SAGEConv,
    SAGPooling,
    SchNet,
    SortAggregation,
    TopKPooling,
    TransformerConv,
    dense_diff_pool,
    global_add_pool,
    global_mean_pool,
)
from torch_geometric.utils import to_dense_adj, to_dense_batch

import graphgauge as gg

FEATURES, HIDDEN, CLASSES, EDGE_FEATURES, RELATIONS = 6, 8, 3, 2, 2
NUM_NODES, NUM_EDGES, NUM_GRAPHS, GRAPH_NODES, GRAPH_EDGES = 24, 44, 8, 9, 14


# --- graphs ---------------------------------------------------------------------------------------


def one_graph(
    seed: int = 0, num_nodes: int = NUM_NODES, num_edges: int = NUM_EDGES, shift: float = 0.0
) -> Data:
    """A random graph in which every edge goes both ways, with everything that some network takes;
    ``shift`` moves all features.
    """
    random = torch.Generator().manual_seed(seed)
    ends = torch.randint(num_nodes, (2, num_edges // 2), generator=random)
    ends = ends[:, ends[0] != ends[1]].unique(dim=1)
    edge_index = torch.cat([ends, ends.flip(0)], dim=1).unique(dim=1)
    data = Data(
        x=2 * torch.randn(num_nodes, FEATURES, generator=random) + shift, edge_index=edge_index
    )
    data.edge_attr = torch.rand(edge_index.size(1), EDGE_FEATURES, generator=random)
    data.edge_type = torch.randint(RELATIONS, (edge_index.size(1),), generator=random)
    return data


def graphs() -> list[Data]:
    """A few small ones."""
    return [
        one_graph(seed, GRAPH_NODES + seed % 3, GRAPH_EDGES, shift=3.0 * (seed % 3 - 1))
        for seed in range(NUM_GRAPHS)
    ]


def molecules() -> list[Data]:
    """Graphs whose features are places in space, with the kinds of their atoms."""
    found = []
    for seed, data in enumerate(graphs()):
        random = torch.Generator().manual_seed(seed)
        data.x = 2 * torch.randn(data.num_nodes, 3, generator=random)
        data.z = torch.randint(1, 9, (data.num_nodes,), generator=random)
        found.append(data)
    return found


def small_graph() -> Data:
    """For networks that take much longer than others."""
    return one_graph(0, 12, 22)


def as_double() -> Data:
    """In double precision."""
    data = one_graph()
    data.x = data.x.double()
    return data


# --- networks of nodes ----------------------------------------------------------------------------


class Nodes(nn.Module):
    """Two layers of any sort, each called with what it names: logits of nodes."""

    def __init__(
        self,
        layer: Callable[[int, int], nn.Module],
        out: int = CLASSES,
        norm: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.first, self.second, self.norm = layer(FEATURES, HIDDEN), layer(HIDDEN, out), norm

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = self.first(x, edge_index)
        return self.second((x if self.norm is None else self.norm(x)).relu(), edge_index)


class WithAttributes(Nodes):
    """The layers take ``edge_attr``."""

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        return self.second(self.first(x, edge_index, edge_attr).relu(), edge_index, edge_attr)


class WithRelations(Nodes):
    """The layers take ``edge_type``."""

    def forward(self, x: Tensor, edge_index: Tensor, edge_type: Tensor) -> Tensor:
        return self.second(self.first(x, edge_index, edge_type).relu(), edge_index, edge_type)


class Scripted(nn.Module):
    """Two layers without options, which `torch.jit.script` takes."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = GCNConv(FEATURES, HIDDEN), GCNConv(HIDDEN, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.second(self.first(x, edge_index).relu(), edge_index)


class Transformer(nn.Module):
    """Two GPS layers: messages along edges, and attention of all nodes to all others."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(FEATURES, HIDDEN), nn.Linear(HIDDEN, CLASSES)
        self.layers = nn.ModuleList(
            GPSConv(HIDDEN, GCNConv(HIDDEN, HIDDEN), heads=2, norm=None) for _ in range(2)
        )

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        x = self.enter(x)
        for layer in self.layers:
            x = layer(x, edge_index, batch)
        return self.leave(x)


class Jumping(nn.Module):
    """The last layer sees what all layers before made."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = GCNConv(FEATURES, HIDDEN), GCNConv(HIDDEN, HIDDEN)
        self.jump, self.leave = JumpingKnowledge("cat"), nn.Linear(2 * HIDDEN, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        first = self.first(x, edge_index).relu()
        return self.leave(self.jump([first, self.second(first, edge_index).relu()]))


class Packed(nn.Module):
    """Gives its logits beside something else."""

    def __init__(self, pack: Callable[[Tensor, Tensor], Any]) -> None:
        super().__init__()
        self.inner, self.pack = Nodes(GCNConv), pack

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.pack(self.inner(x, edge_index), x)


class Sigmoid(nn.Module):
    """A probability for each label."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Nodes(GCNConv)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.inner(x, edge_index).sigmoid()


# --- networks of graphs ---------------------------------------------------------------------------


class Pooled(nn.Module):
    """Two layers and a mean over the nodes, with a norm in between."""

    def __init__(self, norm: nn.Module | None = None) -> None:
        super().__init__()
        self.first, self.second, self.norm = (
            GCNConv(FEATURES, HIDDEN),
            GCNConv(HIDDEN, HIDDEN),
            norm,
        )
        self.leave = nn.Linear(HIDDEN, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        x = self.first(x, edge_index)
        x = (x if self.norm is None else self.norm(x, batch)).relu()
        return self.leave(global_mean_pool(self.second(x, edge_index).relu(), batch))


class SomeNodes(nn.Module):
    """A layer, a pooling that keeps half of the nodes, a layer."""

    def __init__(self, pooling: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.first, self.pool, self.second = (
            GCNConv(FEATURES, HIDDEN),
            pooling(),
            GCNConv(HIDDEN, HIDDEN),
        )
        self.leave = nn.Linear(HIDDEN, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        found = self.pool(self.first(x, edge_index).relu(), edge_index, batch=batch)
        x, edge_index, edge_weight, batch = found[0], found[1], found[2], found[3]
        x = (
            self.second(x, edge_index, edge_weight)
            if isinstance(self.pool, ASAPooling)
            else self.second(x, edge_index)
        )
        return self.leave(global_mean_pool(x.relu(), batch))


class Dense(nn.Module):
    """Nodes are assigned to four clusters: DiffPool."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.assign, self.leave = (
            GCNConv(FEATURES, HIDDEN),
            GCNConv(FEATURES, 4),
            nn.Linear(HIDDEN, CLASSES),
        )

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        rows, mask = to_dense_batch(self.embed(x, edge_index).relu(), batch)
        assigned, _ = to_dense_batch(self.assign(x, edge_index), batch)
        pooled, adj, *_ = dense_diff_pool(rows, to_dense_adj(edge_index, batch), assigned, mask)
        return self.leave((pooled + adj @ pooled).relu().mean(1))


class Sorted(nn.Module):
    """The four nodes with the largest last feature, in this order."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = GCNConv(FEATURES, HIDDEN), GCNConv(HIDDEN, HIDDEN)
        self.pool, self.leave = SortAggregation(4), nn.Linear(4 * HIDDEN, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        x = self.second(self.first(x, edge_index).relu(), edge_index).tanh()
        return self.leave(self.pool(x, batch))


class VirtualNode(nn.Module):
    """Between two layers every node gets the sum of all nodes of its graph."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = GCNConv(FEATURES, HIDDEN), GCNConv(HIDDEN, HIDDEN)
        self.virtual, self.leave = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        x = self.first(x, edge_index).relu()
        x = x + self.virtual(global_add_pool(x, batch)).relu()[batch]
        return self.leave(global_mean_pool(self.second(x, edge_index).relu(), batch))


class Fingerprint(nn.Module):
    """AttentiveFP, with its arguments in PyG's usual order."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = AttentiveFP(
            FEATURES, HIDDEN, CLASSES, edge_dim=EDGE_FEATURES, num_layers=2, num_timesteps=2
        )

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, batch: Tensor) -> Tensor:
        return self.inner(x, edge_index, edge_attr, batch)


def within_reach(place: Tensor, batch: Tensor) -> tuple[Tensor, Tensor]:
    """SchNet's own graph: atoms of one molecule that are near each other."""
    gap = (place[:, None] - place[None]).square().sum(-1)
    near = (gap < 25.0) & (batch[:, None] == batch[None]) & ~torch.eye(len(place), dtype=torch.bool)
    edge_index = near.nonzero().t()
    return edge_index, (place[edge_index[0]] - place[edge_index[1]]).norm(dim=-1)


# --- the list -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """One kind of network; ``note`` says what its options do."""

    name: str
    make: Callable[[], Any]
    data: Callable[[], Any] = one_graph
    wrapper: Any = gg.NodeClassificationModel
    options: dict[str, Any] = field(default_factory=dict)
    note: str = ""
    #: of the weights; one with which the targets have references, that is, predictions differ
    seed: int = 0

    @property
    def is_of_graphs(self) -> bool:
        """Whether targets are graphs."""
        return self.data in (graphs, molecules)

    def model(self, **more: Any) -> Any:
        """Wrapped, with reproducible weights; biases are drawn, too, as training would have left
        none at zero.
        """
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            net = self.make().eval()
            for name, weight in net.named_parameters():
                if name.endswith("bias"):
                    nn.init.normal_(weight, std=0.3)
        return self.wrapper(net, self.data(), **{**self.options, **more})

    @property
    def targets(self) -> list[Any]:
        """Four to explain; nodes have neighbours."""
        ids = (
            [0, 1, 3, 5]
            if self.is_of_graphs
            else self.data().edge_index[1].unique()[::2][:4].tolist()
        )
        return (
            [(number, 1) for number in ids] if self.options.get("output") == "multi_label" else ids
        )


def mlp(width_in: int, width_out: int) -> nn.Module:
    """Two linear layers."""
    return nn.Sequential(nn.Linear(width_in, width_out), nn.ReLU(), nn.Linear(width_out, width_out))


def degrees() -> Tensor:
    """How many nodes have how many neighbours."""
    return torch.bincount(torch.bincount(one_graph().edge_index[1], minlength=NUM_NODES))


def jit(how: str) -> Any:
    """A module that `torch.jit` made."""
    import warnings

    net, data = Scripted(), one_graph()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated
        return (
            torch.jit.script(net)
            if how == "script"
            else torch.jit.trace(net, (data.x, data.edge_index))
        )


LOGITS: dict[str, Any] = {"output": "logits"}  # by chance these are all inside [0, 1]
GRAPHS: dict[str, Any] = {"data": graphs, "wrapper": gg.GraphClassificationModel}
JIT: dict[str, Any] = {
    "num_hops": 2,
    "embedding": lambda net, g: g.x @ dict(net.named_parameters())["first.lin.weight"].t(),
}
PAIR: dict[str, Any] = {"forward": lambda net, g: net(g.x, g.edge_index)[0]}
NAMED: dict[str, Any] = {"forward": lambda net, g: net(g.x, g.edge_index)["logits"]}
ATOMS: dict[str, Any] = {"forward": lambda net, g: net(g.z, g.x, g.batch)}
HALF: dict[str, Any] = {"forward": lambda net, g: net(g.x.bfloat16(), g.edge_index).float()}

#: what costs are compared with: a GCN of the same size on the same graphs
BASES = {
    False: Kind("base", lambda: Nodes(GCNConv)),
    True: Kind("base", Pooled, **GRAPHS),
}

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("GCN", lambda: Nodes(GCNConv)),
        Kind("SAGE", lambda: Nodes(SAGEConv)),
        Kind("GIN", lambda: Nodes(lambda a, b: GINConv(mlp(a, b))), options=LOGITS, seed=3),
        Kind(
            "GINE",
            lambda: WithAttributes(lambda a, b: GINEConv(mlp(a, b), edge_dim=EDGE_FEATURES)),
            seed=3,
        ),
        Kind(
            "PNA",
            lambda: Nodes(
                lambda a, b: PNAConv(
                    a, b, ["mean", "max", "std"], ["identity", "amplification"], degrees()
                )
            ),
            options=LOGITS,
        ),
        Kind("RGCN", lambda: WithRelations(lambda a, b: RGCNConv(a, b, RELATIONS))),
        Kind("FastRGCN", lambda: WithRelations(lambda a, b: FastRGCNConv(a, b, RELATIONS))),
        Kind("GPS", Transformer, small_graph),
        Kind("TransformerConv", lambda: Nodes(TransformerConv)),
        Kind(
            "NNConv",
            lambda: WithAttributes(lambda a, b: NNConv(a, b, nn.Linear(EDGE_FEATURES, a * b))),
        ),
        Kind("AttentiveFP", Fingerprint, seed=1, **GRAPHS),
        Kind(
            "SchNet",
            lambda: SchNet(HIDDEN, HIDDEN, 2, 8, cutoff=5.0, interaction_graph=within_reach),
            molecules,
            gg.GraphRegressionModel,
            ATOMS,
            note="its graph is its own, features are places in space",
        ),
        Kind("TopK pooling", lambda: SomeNodes(lambda: TopKPooling(HIDDEN, 0.6)), **GRAPHS),
        Kind("SAG pooling", lambda: SomeNodes(lambda: SAGPooling(HIDDEN, 0.6)), seed=1, **GRAPHS),
        Kind("ASAP pooling", lambda: SomeNodes(lambda: ASAPooling(HIDDEN, 0.6)), **GRAPHS),
        Kind("DiffPool", Dense, **GRAPHS),
        Kind("SortPool", Sorted, **GRAPHS),
        Kind("JumpingKnowledge", Jumping),
        Kind("virtual node", VirtualNode, seed=3, **GRAPHS),
        Kind("GraphNorm", lambda: Pooled(GraphNorm(HIDDEN)), seed=3, **GRAPHS),
        Kind(
            "batch statistics",
            lambda: Nodes(GCNConv, norm=nn.BatchNorm1d(HIDDEN, track_running_stats=False)),
            small_graph,
        ),
        Kind(
            "tuple",
            lambda: Packed(lambda rows, x: (rows, x)),
            options=PAIR,
            note="`forward=...[0]`",
        ),
        Kind(
            "dictionary",
            lambda: Packed(lambda rows, x: {"logits": rows, "x": x}),
            options=NAMED,
            note='`forward=...["logits"]`',
        ),
        Kind("torch.compile", lambda: torch.compile(Nodes(GCNConv))),
        Kind(
            "torch.jit.script", lambda: jit("script"), options=JIT, note="`num_hops=`, `embedding=`"
        ),
        Kind(
            "torch.jit.trace", lambda: jit("trace"), options=JIT, note="`num_hops=`, `embedding=`"
        ),
        Kind("float64", lambda: Nodes(GCNConv).double(), as_double),
        Kind(
            "bfloat16",
            lambda: Nodes(GCNConv).bfloat16(),
            options=HALF,
            note="`forward=` casts in and out",
        ),
        Kind(
            "multi-label", Sigmoid, options={"output": "multi_label"}, note='`output="multi_label"`'
        ),
        Kind(
            "multi-output",
            lambda: Nodes(GCNConv),
            wrapper=gg.NodeRegressionModel,
            options={"output_column": 1},
            note="`output_column=`",
        ),
    )
}
