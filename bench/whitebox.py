"""Networks whose weights were written down, not learned, so that it is known what each prediction
rests on.

Features, after the idea of the axiomatic benchmark of Monti et al. (TMLR 2024): weights w (F,),
positive, negative and 0,

    local           z_v = w · x_v
    neighbourhood   z_v = mean over neighbours u of w · x_u
    two hops        z_v = mean over neighbours of their neighbourhood's z

that is z = P X w with P = I, D⁻¹A, (D⁻¹A)². Feature j of node u adds P_vu x_uj w_j to z_v, so a
candidate of the priority vector (the target's own feature j; feature j of all other nodes) adds a
known number.

Edges, after the idea of Nerini et al. (ECML-PKDD 2025), labels that spread: s_u is +1, -1 or 0 (no
label), edges have weights a,

    z = (I + A)² s          A_vu = a_uv

Without the edge a → b of weight w, z_v is lower by  w ([v = b] ((I + A) s)_a + (I + A)_vb s_a).

The class is the sign of z_v less a threshold; true candidates are those that speak for the
predicted class. A second truth asks only for the sign of the weight w_j, as the axiomatic benchmark
does, present in the data or not. All is written with two layers of GraphConv and a ReLU module, z =
ReLU(z) - ReLU(-z), so that methods that bend the ReLU's gradient see one. The formulas are theirs,
the code is not.
"""

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GraphConv

import graphgauge as gg
from graphgauge.core import derive_seed, make_generator

NODES, FEATURES, STEEPNESS = 200, 20, 2.0
#: does layer 1, layer 2 look at neighbours?
KINDS = {"local": (0, 0), "neighbourhood": (1, 0), "two hops": (1, 1)}


class Written(nn.Module):
    """Two layers of GraphConv with given weights, looking at neighbours (``rel``) and at the node
    itself (``root``).
    """

    def __init__(
        self, weight: Tensor, rel: tuple[float, float], root: tuple[float, float], aggr: str
    ) -> None:
        super().__init__()
        self.one, self.act, self.two = (
            GraphConv(len(weight), 2, aggr=aggr),
            nn.ReLU(),
            GraphConv(2, 2, aggr=aggr),
        )
        signed, joined = torch.stack([weight, -weight]), torch.tensor([[-0.5, 0.5], [0.5, -0.5]])
        for layer, base, r, o in zip(
            (self.one, self.two), (signed, joined), rel, root, strict=True
        ):
            layer.lin_rel.weight = nn.Parameter(r * base)
            layer.lin_root.weight = nn.Parameter(o * base)
            layer.lin_rel.bias = nn.Parameter(torch.zeros(2))

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Logits, -z/2 and z/2.  (N, 2)"""
        return self.two(self.act(self.one(x, edge_index, edge_weight)), edge_index, edge_weight)

    def set_scale(self, z: Tensor) -> None:
        """Turn z into (z - median) * steepness / SD."""
        factor, middle = STEEPNESS / z.std(), z.median()
        with torch.no_grad():
            self.two.lin_rel.weight *= factor
            self.two.lin_root.weight *= factor
            self.two.lin_rel.bias += factor * middle * torch.tensor([0.5, -0.5])


@dataclass(frozen=True)
class WhiteBox:
    """A model and what its predictions rest on: for target v, which candidates are true."""

    name: str
    side: str
    model: gg.BaseModel
    truth: dict[int, Tensor]  #: speaks for the predicted class, in this graph
    weight_truth: dict[int, Tensor]  #: has a weight that speaks for it; for edges the same
    #: what it adds to z, positive where it speaks for the predicted class
    effect: dict[int, Tensor]


def random_links(seed: int, mean_degree: float = 5.0) -> Tensor:
    """Both directions of random pairs; no loops.  (2, E)"""
    is_link = (torch.rand(NODES, NODES, generator=make_generator(seed)) < mean_degree / NODES).triu(
        1
    )
    pairs = is_link.nonzero().T
    return torch.cat([pairs, pairs.flip(0)], dim=1)


def feature_box(kind: str, seed: int) -> WhiteBox:
    """See above: a third of the weights is positive, a third negative, the rest 0; a feature is
    there in 3 of 10 cases.
    """
    random = make_generator(derive_seed(seed, "white box", kind))
    edge_index = random_links(derive_seed(seed, "links", kind))
    x = (torch.rand(NODES, FEATURES, generator=random) < 0.3).float()
    sign = torch.tensor([1.0] * 7 + [-1.0] * 7 + [0.0] * 6)
    weight = sign * (0.5 + torch.rand(FEATURES, generator=random))
    first, second = KINDS[kind]
    net = Written(weight, (first, second), (1 - first, 1 - second), aggr="mean")
    P = torch.matrix_power(mean_matrix(edge_index), first + second)
    z = P @ x.double() @ weight.double()
    net.set_scale(z)
    model = gg.NodeClassificationModel(net.eval(), Data(x=x, edge_index=edge_index))
    side = (z - z.median()).sign()
    chosen = [
        v
        for v in range(NODES)
        if bool((edge_index[1] == v).any()) and float((z[v] - z.median()).abs()) > 1e-6
    ]
    effect = {v: side[v] * candidates(P[v], x.double(), v) * weight.repeat(2) for v in chosen}
    weights = {
        v: ((side[v] * weight).repeat(2) > 0) & is_read(P[v], v).repeat_interleave(FEATURES)
        for v in chosen
    }
    return WhiteBox(kind, "feature", model, {v: effect[v] > 1e-9 for v in chosen}, weights, effect)


def mean_matrix(edge_index: Tensor) -> Tensor:
    """D⁻¹A: each row the mean over those who send to it.  (N, N)"""
    A = torch.zeros(NODES, NODES, dtype=torch.float64).index_put(
        (edge_index[1], edge_index[0]), torch.tensor(1.0).double()
    )
    return A / A.sum(1, keepdim=True).clamp(min=1)


def candidates(row: Tensor, x: Tensor, target: int) -> Tensor:
    """What each candidate's features sum to: the target's own, then all others'.
    (N,), (N, F) -> (2 F,)
    """
    own = row[target] * x[target]
    return torch.cat([own, row @ x - own])


def is_read(row: Tensor, target: int) -> Tensor:
    """Whether the target's own block and that of the others count at all.  (2,) bool"""
    return torch.stack([row[target] > 0, row.sum() - row[target] > 1e-9])


def edge_box(kind: str, seed: int) -> WhiteBox:
    """Labels that spread: half of the nodes have one; edges of weight 1, or of known positive,
    negative and zero weights.
    """
    random = make_generator(derive_seed(seed, "white box", kind))
    edge_index = random_links(derive_seed(seed, "links", kind), 4.0)
    count = edge_index.size(1)
    label = torch.randint(2, (NODES,), generator=random) * 2 - 1
    s = torch.where(torch.rand(NODES, generator=random) < 0.5, label, 0)
    sign = torch.randint(3, (count,), generator=random) - 1.0
    a = (
        torch.ones(count)
        if kind == "labels"
        else sign * (0.5 + torch.rand(count, generator=random))
    )
    x = torch.stack([s == 1, s == -1, s == 0], 1).float()
    net = Written(torch.tensor([1.0, -1.0, 0.0]), (1, 1), (1, 1), aggr="add")
    one = torch.eye(NODES, dtype=torch.float64)
    A = one.index_put((edge_index[1], edge_index[0]), a.double(), accumulate=True)
    z = A @ A @ s.double()
    net.set_scale(torch.cat([z, -z]))  # no threshold
    data = Data(x=x, edge_index=edge_index, edge_weight=a)
    model = gg.NodeClassificationModel(net.eval(), data)
    graphs = model.computation_graphs(
        [v for v in range(NODES) if float(z[v].abs()) > 1e-6 and bool((edge_index[1] == v).any())]
    )
    effect = {}
    for graph in graphs:
        node = cast(int, graph.target)
        carried_to_node = carried(A, s.double(), edge_index, a.double(), node)
        effect[node] = z[node].sign() * carried_to_node[graph.edges]
    truth = {v: part > 1e-9 for v, part in effect.items()}
    return WhiteBox(kind, "edge", model, truth, truth, effect)


def carried(A: Tensor, s: Tensor, edge_index: Tensor, weight: Tensor, target: int) -> Tensor:
    """How much lower z of the target is without each edge; A holds the loops I.  (E,)"""
    source, head = edge_index
    return weight * ((head == target) * (A @ s)[source] + A[target, head] * s[source])


BOXES = {
    **dict.fromkeys(KINDS, feature_box),
    "labels": edge_box,
    "weights": edge_box,
}
