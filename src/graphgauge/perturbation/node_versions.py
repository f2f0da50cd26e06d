"""Versions of nodes along lines of edge removals, and their rows in a batch.

A version (line, node, step) is a node that receives something else than before because edges were
removed up to that step (see `incremental_removal`).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from graphgauge.execution import AlignedLayout
from graphgauge.subgraphs import ComputationGraphs, ragged_ranges


@dataclass(frozen=True)
class KeyEncoding:
    """Encodes triples as numbers; each field is one more than the largest value."""

    rows: int
    steps: int
    edges: int

    def encode(self, line: Tensor, row: Tensor, step: Tensor) -> Tensor:
        """Keys in the order of lines, rows, steps."""
        return (line * self.rows + row) * self.steps + step

    def decode(self, key: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Line, row and step of a key."""
        node = key // self.steps
        return node // self.rows, node % self.rows, key % self.steps


@dataclass(frozen=True)
class NodeVersions:
    """Versions of nodes along some lines, and when edges are removed there. Keys are sorted."""

    line: Tensor  #: (V,)
    row: Tensor  #: (V,) the node
    step: Tensor  #: (V,)
    key: Tensor  #: (V,) of (line, row, step)
    removed: Tensor  #: (R,) key of (line, edge)
    turn: Tensor  #: (R,) the step that removes it
    encoding: KeyEncoding

    def latest(self, line: Tensor, row: Tensor, step: Tensor) -> Tensor:
        """Number of the latest version of nodes up to a step; -1 for none: the node is unedited."""
        if not len(self.key):
            return torch.full_like(row, -1)
        key, steps = self.encoding.encode(line, row, step), self.encoding.steps
        number = torch.searchsorted(self.key, key, right=True) - 1
        is_same_node = (number >= 0) & (self.key[number.clamp(min=0)] // steps == key // steps)
        return torch.where(is_same_node, number, -1)

    def is_removed(self, line: Tensor, edge: Tensor, step: Tensor) -> Tensor:
        """Whether edges are removed by a step."""
        if not len(self.removed):
            return torch.zeros_like(edge, dtype=torch.bool)
        key = line * self.encoding.edges + edge
        at = torch.searchsorted(self.removed, key).clamp(max=len(self.removed) - 1)
        return (self.removed[at] == key) & (self.turn[at] <= step)


@dataclass(frozen=True)
class VersionLayout:
    """Rows of the nodes of a batch: whole graphs first, then versions, each as a separate piece.

    On a CPU a version is as far behind a multiple of 16 as its node, so that its row of a matrix
    product gets the same bits.
    """

    whole: Tensor  #: (W,) numbers of the graphs that are in the batch as a whole
    versions: NodeVersions
    #: for each node its row in ``graphs.node``, its piece and its row in the batch; and the layout
    nodes: tuple[Tensor, Tensor, Tensor, AlignedLayout]
    base_of: Tensor  #: (sum of nodes,) row in the batch of each node of a graph in the batch, or -1
    version_at: Tensor  #: (V,) row in the batch

    @staticmethod
    def from_graphs(
        graphs: ComputationGraphs, whole: Tensor, versions: NodeVersions, align: int
    ) -> "VersionLayout":
        """Lay out graphs and versions."""
        piece, row = ragged_ranges(graphs.node_ptr[whole], graphs.sizes[whole])
        position = row - graphs.node_ptr[whole][piece]
        version_piece = torch.arange(len(versions.row), device=whole.device) + len(whole)
        shift = torch.zeros_like(graphs.node).index_copy(0, row, position % align)[versions.row]
        layout = AlignedLayout.from_counts(
            torch.cat([graphs.sizes[whole], shift + 1]), align, spare=2
        )
        base_at = layout.start[piece] + position
        version_at = layout.start[version_piece] + shift
        nodes = (
            torch.cat([row, versions.row]),
            torch.cat([piece, version_piece]),
            torch.cat([base_at, version_at]),
            layout,
        )
        base_of = torch.full_like(graphs.node, -1).index_copy(0, row, base_at)
        return VersionLayout(whole, versions, nodes, base_of, version_at)

    def locate(self, line: Tensor, row: Tensor, step: Tensor) -> Tensor:
        """Row in the batch of the latest version of a node up to a step, or of the node itself."""
        if not len(self.version_at):
            return self.base_of[row]
        number = self.versions.latest(line, row, step)
        return torch.where(number >= 0, self.version_at[number.clamp(min=0)], self.base_of[row])
