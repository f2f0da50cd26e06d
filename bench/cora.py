"""Cora and a GCN for the benchmarks: the real one where its files are at hand, else a random graph with Cora's numbers.

`GRAPHGAUGE_DATA` names the folder that holds ``Cora/raw/ind.cora.*``. The real graph keeps the edges that are left for training
after ``RandomLinkSplit(0.1, 0.1, is_undirected=True)`` with seed 0 (8,448 of 10,556), and its GCN is trained on the public split;
the random graph has about 10,550 edges, and its GCN has random weights.
"""

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from torch_geometric.transforms import RandomLinkSplit
from torch_geometric.utils import degree

from graphgauge.core.errors import BadFile
from graphgauge.core.randomness import seeded_globally
from graphgauge.core.seeds import generator

NODES, LINKS, FEATURES, WORDS, HIDDEN, CLASSES = 2708, 5278, 1433, 18, 16, 7


class Net(nn.Module):
    """Two layers of GCN."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.act, self.dropout, self.two = GCNConv(FEATURES, HIDDEN), nn.ReLU(), nn.Dropout(), GCNConv(HIDDEN, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Probabilities, which is what PyG's bridge to Captum explains.  (N, C)"""
        return self.two(self.dropout(self.act(self.one(x, edge_index))), edge_index).softmax(1)


def cora(device: str = "cpu") -> tuple[Net, Data]:
    """The network, in evaluation mode, and the graph; Cora's own if its files are found."""
    raw = Path(os.environ.get("GRAPHGAUGE_DATA", "")) / "Cora" / "raw"
    is_real = bool(os.environ.get("GRAPHGAUGE_DATA")) and raw.is_dir()
    data = cut(real_cora(raw)) if is_real else cora_sized()
    return (trained(data) if is_real else untrained()).to(device), data.to(device)


def cora_sized() -> Data:
    """A random graph with Cora's numbers."""
    random = generator(0)
    ends = torch.randint(NODES, (2, LINKS), generator=random)
    ends = ends[:, ends[0] != ends[1]]
    edge_index = torch.cat([ends, ends.flip(0)], dim=1).unique(dim=1)
    words = torch.randint(FEATURES, (NODES, WORDS), generator=random)
    return Data(x=torch.zeros(NODES, FEATURES).scatter_(1, words, 1.0), edge_index=edge_index)


def untrained() -> Net:
    """Random weights."""
    with seeded_globally(0):
        return Net().eval()


def trained(data: Data, epochs: int = 200) -> Net:
    """Adam on the training nodes."""
    with seeded_globally(0):
        net = Net()
        optimiser = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4)
        for _ in range(epochs):
            optimiser.zero_grad()
            prob = net(data.x, data.edge_index)[data.train_mask]
            nn.functional.nll_loss(prob.clamp(min=1e-12).log(), data.y[data.train_mask]).backward()
            optimiser.step()
    return net.eval()


def cut(data: Data) -> Data:
    """The training edges of a link split."""
    with seeded_globally(0):
        train, _, _ = RandomLinkSplit(0.1, 0.1, is_undirected=True)(data)
    return Data(x=data.x, edge_index=train.edge_index, y=data.y, train_mask=data.train_mask, test_mask=data.test_mask)


def sampled_targets(data: Data, count: int = 10, seed: int = 0) -> list[int]:
    """Test nodes (all nodes, where there is no split) that receive messages, drawn at random."""
    received = degree(data.edge_index[1].cpu(), data.num_nodes) > 0
    candidates = (received & data.test_mask.cpu() if "test_mask" in data else received).nonzero()[:, 0]
    return candidates[torch.randperm(len(candidates), generator=generator(seed))[:count]].tolist()


def real_cora(raw: Path) -> Data:
    """Cora from Planetoid's files: 2,708 nodes, 10,556 edges both ways, the public split."""
    test = torch.tensor([int(line) for line in (raw / "ind.cora.test.index").read_text().split()])
    neighbours = unpickled(raw / "ind.cora.graph")
    pairs = torch.tensor([(u, v) for u, others in neighbours.items() for v in others if u != v]).T
    by_head = torch.cat([pairs, pairs.flip(0)], dim=1).unique(dim=1).flip(0)  # PyG's order, on which the split depends
    data = Data(edge_index=by_head, num_nodes=len(neighbours))
    data.x = joined(unpickled(raw / "ind.cora.allx").dense(), unpickled(raw / "ind.cora.tx").dense(), test)
    data.y = joined(
        torch.as_tensor(unpickled(raw / "ind.cora.ally")), torch.as_tensor(unpickled(raw / "ind.cora.ty")), test
    ).argmax(1)
    data.train_mask = torch.arange(len(neighbours)) < 20 * CLASSES
    data.test_mask = torch.zeros(len(neighbours), dtype=torch.bool).index_fill(0, test, True)
    return data


def joined(first: Tensor, rest: Tensor, test: Tensor) -> Tensor:
    """Rows of the first nodes, then those of the test nodes at their places.  (n, D), (m, D), (m,) -> (n + m, D)"""
    return torch.cat([first, rest]).index_copy(0, test, rest)


class Sparse:
    """A stored matrix in compressed rows; stands for SciPy's, which is not needed for this."""

    data: Any
    indices: Any
    indptr: Any
    _shape: tuple[int, int]

    def dense(self) -> Tensor:
        """(rows, columns)"""
        row = np.repeat(np.arange(self._shape[0]), np.diff(self.indptr))
        full = np.zeros(self._shape, dtype=np.float32)
        full[row, self.indices] = self.data
        return torch.from_numpy(full)


class Reader(pickle.Unpickler):
    """Reads arrays, lists and dictionaries, and nothing that could run code of its own."""

    KNOWN = ("numpy.core.multiarray _reconstruct", "numpy ndarray", "numpy dtype", "collections defaultdict", "__builtin__ list")

    def find_class(self, module: str, name: str) -> Any:
        """The class behind a stored name."""
        if (module, name) == ("scipy.sparse.csr", "csr_matrix"):
            return Sparse
        if f"{module} {name}" not in self.KNOWN:
            raise BadFile(f"a file of Cora asks for {module}.{name}, which its originals do not hold. Fetch the files again.")
        return super().find_class(module, name)


def unpickled(path: Path) -> Any:
    """What a file of Planetoid holds."""
    with path.open("rb") as file:
        return Reader(file, encoding="latin1").load()
