"""Occlusion (after Zeiler and Fergus, 2014): the change of a prediction when one thing is removed.

Let f be the explained output (the probability of the explained class, or the value of a regression)
and G the computation graph of the target. The scores are

    edge e                    f(G) - f(G without e)
    a group g of features     f(G) - f(G with g at a baseline), divided equally among g

No gradient and no message mask is needed, so occlusion works on every network. It removes one thing
at a time: if two edges can replace each other, both get a score of 0.

A group is a single cell (node, feature), all features of a node, or a column: one feature of the
target itself, or of all other nodes together, as features are substituted in the evaluation. A
feature that equals the baseline is not occluded and has the score 0. The copies of all targets
share calls of the network, as many as the memory budget allows.
"""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal, get_args

import torch
from torch import Tensor

from graphgauge.core import BadModel, BadSetting, advance_progress, budget_bytes
from graphgauge.execution import BatchFeatures, BatchFunction, GraphBatch
from graphgauge.explainers.base import (
    BaseExplainer,
    target_output,
    zero_edge_scores,
    zero_feature_scores,
)
from graphgauge.explainers.explained_class import classes_to_explain
from graphgauge.explainers.explanations import Scores
from graphgauge.explainers.parameter_checks import check_explain_output, check_positive_integer
from graphgauge.models import BaseModel
from graphgauge.subgraphs import ComputationGraphs, pointers_from_counts, ragged_ranges

_OcclusionRemoval = Literal["auto", "mask", "drop", "none"]
_FeatureGrouping = Literal["auto", "cells", "columns", "nodes", "none"]
_OcclusionBaseline = Literal["zero", "mean"]

_BYTES_PER_ITEM = 256  #: estimated memory of a planned copy, for each cell and edge


@dataclass(frozen=True)
class Occlusion(BaseExplainer):
    """Differences of predictions when single edges and features are removed.

    Args:
        edges: How an edge is removed. "mask" sets its messages to 0; "drop" removes it from the
            graph; "auto" masks if the network's messages can be masked exactly, and drops
            otherwise; "none" gives no edge scores.
        features: Which features are set to the baseline together: "cells", "columns" or "nodes".
            "auto" takes cells for targets with at most ``max_cells`` cells that differ from the
            baseline, and columns for others; "none" gives no feature scores.
        baseline: "zero", or "mean" for the mean of the feature over all nodes of the data.
        max_cells: The limit for "auto".
        explain_output: "prob" explains the probability of the class, "logit" its logit. Regression
            models explain their value.

    >>> import torch, graphgauge as gg
    >>> from torch_geometric.data import Data
    >>> from torch_geometric.nn import GCN
    >>> data = Data(x=torch.rand(6, 4), edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]))
    >>> model = gg.NodeClassificationModel(GCN(4, 8, 2, 3), data, output="logits")
    >>> explanation = gg.Occlusion(features="columns").explain(model, [2])[0]
    >>> explanation.feature_score.shape, explanation.edge_score.shape  # (n, F), (E_rel,)
    (torch.Size([3, 4]), torch.Size([2]))
    """

    name = "occlusion"
    signed = True
    deterministic = True
    explains_labels = True
    edges: _OcclusionRemoval = "auto"
    features: _FeatureGrouping = "auto"
    baseline: _OcclusionBaseline = "zero"
    max_cells: int = 1000
    explain_output: Literal["prob", "logit"] = "prob"

    def __post_init__(self) -> None:
        for name, choices in (
            ("edges", _OcclusionRemoval),
            ("features", _FeatureGrouping),
            ("baseline", _OcclusionBaseline),
        ):
            if getattr(self, name) not in get_args(choices):
                raise BadSetting(
                    f"{name} must be one of {', '.join(map(repr, get_args(choices)))}, not "
                    f"{getattr(self, name)!r}."
                )
        check_positive_integer("max_cells", self.max_cells)
        check_explain_output(self.explain_output)

    @property
    def lean(self) -> bool:
        """True if no edge is dropped."""
        return self.edges in ("mask", "none")

    def removal(self, model: BaseModel) -> str:
        """How edges of this network are removed: "mask", "drop" or "none"."""
        if self.edges == "auto":
            return "mask" if model.mask_support == "exact" else "drop"
        if self.edges == "mask" and model.mask_support != "exact":
            raise BadModel(
                f"Occlusion(edges='mask') is not possible for {type(model.net).__name__}: "
                f"{model.mask_support}. Use Occlusion(edges='drop')."
            )
        return self.edges

    def scores(self, model: BaseModel, graphs: ComputationGraphs, seeds: list[int]) -> Scores:
        """Predict one copy for each thing that is removed."""
        label, removal = classes_to_explain(model, graphs), self.removal(model)
        feature = None if self.features == "none" else zero_feature_scores(graphs)
        edge = None if removal == "none" else zero_edge_scores(graphs)
        with torch.no_grad(), model.unwritten_features():
            for numbers in _split_by_memory(model, graphs):
                part = graphs.take(numbers)
                output = partial(self.output, model, None if label is None else label[numbers])
                start = model.map(output, part, kind="occlusion")
                first, end = numbers[0], numbers[-1] + 1
                nodes = slice(int(graphs.node_ptr[first]), int(graphs.node_ptr[end]))
                edges = slice(int(graphs.edge_ptr[first]), int(graphs.edge_ptr[end]))
                if feature is not None:
                    self.write_features(model, part, output, start, feature[nodes])
                if edge is not None:
                    _occlude_edges(model, part, output, start, removal, edge[edges])
                advance_progress(len(part))
        return Scores(feature, edge)

    def output(self, model: BaseModel, label: Tensor | None, union: GraphBatch) -> Tensor:
        """The explained output of each copy. (K,)

        Args:
            model: The wrapped network.
            label: The class to explain for each graph (T,); None for regression.
            union: K copies of these graphs, edited or not.
        """
        raw = model.executor.outputs(union)
        target_label = None if label is None else label[union.graph_index]
        return target_output(model, raw, target_label, self.explain_output)

    def write_features(
        self,
        model: BaseModel,
        graphs: ComputationGraphs,
        output: BatchFunction,
        start: Tensor,
        score: Tensor,
    ) -> None:
        """Write the share of f(G) - f(G with a group at the baseline) into ``score``.

        Args:
            model: The wrapped network.
            graphs: The computation graphs of T targets.
            output: Returns the explained output of each copy in a batch.
            start: f(G) of each graph (T,).
            score: Where the feature scores are written (sum of nodes, F). Features that equal the
                baseline keep their value.
        """
        x = graphs.source.x
        baseline = x.new_zeros(x.size(1)) if self.baseline == "zero" else x.mean(0)
        cells = _FeatureCells.from_graphs(graphs, baseline, self.features, self.max_cells)

        def occluded(union: GraphBatch) -> Tensor:
            return output(union.with_features(cells.occlude(union)))

        owner = cells.owner
        drop = start[owner] - model.map(occluded, graphs, owner, kind="occlusion of features")
        score[cells.row, cells.column] = (drop / cells.size)[cells.group].to(score.dtype)


def _occlude_edges(
    model: BaseModel,
    graphs: ComputationGraphs,
    output: BatchFunction,
    start: Tensor,
    removal: str,
    score: Tensor,
) -> None:
    """Write f(G) - f(G without e) for each relevant edge e into ``score`` (sum of edges,)."""
    (row,) = (graphs.edge_position < graphs.num_edges[graphs.edge_owner]).nonzero(as_tuple=True)
    owner = graphs.edge_owner[row]

    def without_edge(union: GraphBatch) -> Tensor:
        is_removed = union.edge_row == row[union.copy][union.edge_copy]
        if removal == "drop":
            return output(union.without_edges(is_removed))
        return output(union.with_mask((~is_removed).to(union.features.like.dtype)))

    kind = f"occlusion of edges, {removal}"
    drop = start[owner] - model.map(without_edge, graphs, owner, kind=kind)
    score[row] = drop.to(score.dtype)


def _split_by_memory(model: BaseModel, graphs: ComputationGraphs) -> list[Tensor]:
    """Split graphs into consecutive parts whose lists of removed things fit into the memory
    budget.
    """
    number = torch.arange(len(graphs), device=graphs.node.device)
    if not len(number):
        return []
    size = _BYTES_PER_ITEM * (graphs.sizes * graphs.source.x.size(1) + graphs.edge_sizes)
    part = size.cumsum(0) // budget_bytes(model.executor.budget, number.device)
    return list(number.split(part.unique_consecutive(return_counts=True)[1].tolist()))


@dataclass(frozen=True)
class _FeatureCells:
    """Features of scored nodes that differ from the baseline, sorted by group."""

    graphs: ComputationGraphs
    baseline: Tensor  #: (F,)
    row: Tensor  #: (cells,) position of the node in ``graphs.node``
    column: Tensor  #: (cells,)
    group: Tensor  #: (cells,) group numbers from 0 on

    @staticmethod
    def from_graphs(
        graphs: ComputationGraphs, baseline: Tensor, features: str, max_cells: int
    ) -> "_FeatureCells":
        """Group the cells of each target."""
        width = len(baseline)
        owner = torch.repeat_interleave(graphs.sizes)
        place = torch.arange(len(owner), device=owner.device) - graphs.node_ptr[owner]
        (scored,) = (place < graphs.num_nodes[owner]).nonzero(as_tuple=True)
        at, column = (graphs.source.x[graphs.node[scored]] != baseline).nonzero(as_tuple=True)
        row = scored[at]
        graph, place = owner[row], place[row]
        is_end = graphs.target_row[graph] == place[:, None]
        end_number = torch.arange(1, is_end.size(1) + 1, device=row.device)
        block = (is_end * end_number).sum(1)  # 0 for nodes that are not the target's own
        keys = {"cells": place * width + column, "nodes": place, "columns": block * width + column}
        if features == "auto":
            is_few = torch.bincount(graph, minlength=len(graphs)) <= max_cells
            key = torch.where(is_few[graph], keys["cells"], keys["columns"])
        else:
            key = keys[features]
        stride = int(key.max()) + 1 if len(key) else 1
        group = (graph * stride + key).unique(return_inverse=True)[1]
        order = group.argsort(stable=True)
        return _FeatureCells(graphs, baseline, row[order], column[order], group[order])

    @cached_property
    def size(self) -> Tensor:
        """Number of cells in each group. (groups,)"""
        return torch.bincount(self.group)

    @cached_property
    def ptr(self) -> Tensor:
        """Index of the first cell of each group. (groups + 1,)"""
        return pointers_from_counts(self.size)

    @cached_property
    def owner(self) -> Tensor:
        """The graph of each group. (groups,)"""
        return torch.repeat_interleave(self.graphs.sizes)[self.row[self.ptr[:-1]]]

    def occlude(self, union: GraphBatch) -> "_OccludedFeatures":
        """The features of a batch in which copy k has group k at the baseline."""
        copy, cell = ragged_ranges(self.ptr[union.copy], self.size[union.copy])
        row, column = self.row[cell], self.column[cell]
        at = union.node_start[copy] + row - self.graphs.node_ptr[union.graph_index[copy]]
        return _OccludedFeatures(
            union.features,
            at,
            column,
            self.graphs.source.x[self.graphs.node[row], column],
            self.baseline[column],
        )


@dataclass(frozen=True)
class _OccludedFeatures(BatchFeatures):
    """Features in which some cells (at, column) have another value."""

    base: BatchFeatures
    at: Tensor  #: (cells,) row of the batch
    column: Tensor  #: (cells,)
    before: Tensor  #: (cells,)
    after: Tensor  #: (cells,)

    @property
    def like(self) -> Tensor:
        """A tensor with the type and device of the features."""
        return self.base.like

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""
        return self.base.shape

    @cached_property
    def written(self) -> Tensor:
        """The features as one tensor."""
        return self.base.written.index_put((self.at, self.column), self.after)

    def linear(self, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The linear map of the unedited rows, plus the change that the cells make."""
        change = (self.after - self.before)[:, None] * weight.t().index_select(0, self.column)
        return self.base.linear(weight, bias).index_add(0, self.at, change.to(weight.dtype))
