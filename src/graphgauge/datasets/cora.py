"""Cora: 2,708 articles, 10,556 directed citation edges (each in both directions), 1,433 words, 7
subjects (Planetoid's files).

The files are Python pickles. They are parsed only after their checksums matched, by a reader that
accepts arrays, lists and dictionaries and refuses everything else, so that no file can run code.
The files hold matrices of SciPy, but SciPy is not needed to read them.
"""

import io
import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from graphgauge.core import BadFile
from graphgauge.datasets.splits import named_masks

#: the subjects in Planetoid's order; the files hold numbers only, the sizes of the seven classes
#: tell which is which
_CORA_CLASSES = (
    "Theory",
    "Reinforcement Learning",
    "Genetic Algorithms",
    "Neural Networks",
    "Probabilistic Methods",
    "Case Based",
    "Rule Learning",
)
#: the public split: 20 articles of each subject, the next 500; the test articles are listed
_NUM_TRAIN, _NUM_VAL = (140, 500)


def read_cora(contents: Mapping[str, bytes]) -> Data:
    """The whole graph with the public split, its edges in the order of PyG."""
    part = {name.removeprefix("ind.cora."): content for name, content in contents.items()}
    test = torch.tensor([int(line) for line in part["test.index"].split()])
    neighbours = _unpickle_safely(part["graph"])
    return Data(
        x=_join_rows(
            _unpickle_safely(part["allx"]).dense(), _unpickle_safely(part["tx"]).dense(), test
        ),
        edge_index=_citation_edges(neighbours),
        y=_join_rows(
            torch.as_tensor(_unpickle_safely(part["ally"])),
            torch.as_tensor(_unpickle_safely(part["ty"])),
            test,
        ).argmax(1),
        class_names=list(_CORA_CLASSES),
        **_public_split(len(neighbours), test),
    )


def _citation_edges(neighbours: Mapping[int, list[int]]) -> Tensor:
    """Edges in both directions, sorted by target, then source: the order of PyG, on which the link
    split depends.  (2, E)
    """
    pairs = torch.tensor([(u, v) for u, others in neighbours.items() for v in others if u != v]).T
    return torch.cat([pairs, pairs.flip(0)], dim=1).unique(dim=1).flip(0)


def _public_split(num_nodes: int, test: Tensor) -> dict[str, Tensor]:
    """140 articles for training, 500 for validation, 1,000 for tests; all others are in no part."""
    node = torch.arange(num_nodes)
    is_val = (node >= _NUM_TRAIN) & (node < _NUM_TRAIN + _NUM_VAL)
    return named_masks(node < _NUM_TRAIN, is_val, torch.isin(node, test))


def _join_rows(first: Tensor, rest: Tensor, test: Tensor) -> Tensor:
    """The rows of the first nodes, followed by those of the test nodes in their positions.  (n, D),
    (m, D), (m,) -> (n + m, D)
    """
    return torch.cat([first, rest]).index_copy(0, test, rest)


class _StoredSparseMatrix:
    """A stored matrix in the CSR format; takes the place of SciPy's class."""

    data: Any
    indices: Any
    indptr: Any
    _shape: tuple[int, int]

    def dense(self) -> Tensor:
        """The matrix as a dense tensor.  (rows, columns)"""
        row = np.repeat(np.arange(self._shape[0]), np.diff(self.indptr))
        full = np.zeros(self._shape, dtype=np.float32)
        full[row, self.indices] = self.data
        return torch.from_numpy(full)


class _SafeUnpickler(pickle.Unpickler):
    """An unpickler that reads arrays, lists and dictionaries, and nothing that could run code."""

    KNOWN = (
        "numpy.core.multiarray _reconstruct",
        "numpy ndarray",
        "numpy dtype",
        "collections defaultdict",
        "__builtin__ list",
    )

    def find_class(self, module: str, name: str) -> Any:
        """Return the class that a file asks for, if it is a known one."""
        if (module, name) == ("scipy.sparse.csr", "csr_matrix"):
            return _StoredSparseMatrix
        if f"{module} {name}" not in self.KNOWN:
            raise BadFile(
                f"a file of Cora asks for {module}.{name}, which the original files do not "
                "contain. "
                "Download the files again."
            )
        return super().find_class(module, name)


def _unpickle_safely(content: bytes) -> Any:
    """The content of one of Planetoid's files."""
    return _SafeUnpickler(io.BytesIO(content), encoding="latin1").load()
