"""The differences between node, link and graph targets."""

from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Data

from graphgauge.core import BadGraph, BadModel
from graphgauge.execution import (
    ALONE,
    ROW_ALIGNMENT,
    AlignedLayout,
    Executor,
    ForwardAdapter,
    ForwardFunction,
    GraphBatch,
    as_rows,
    build_forward_adapter,
    check_finite_rows,
    check_rows,
    copy_if_tensor,
    embedding_layers,
)
from graphgauge.models.base import BaseModel
from graphgauge.models.embedding import check_embedding_rows, find_last_hidden
from graphgauge.models.non_edges import sample_non_edges
from graphgauge.models.probe_errors import explain_renumbering_failure
from graphgauge.models.probe_targets import find_probes
from graphgauge.models.tolerances import COARSE_TOLERANCE, is_alike, is_close
from graphgauge.subgraphs import (
    ComputationGraphs,
    Extractor,
    InputGraphs,
    Targets,
    build_whole_graphs,
    check_graph,
    list_graphs,
    read_graph_list,
    read_single_graph,
)

_MAX_PAIRS_PER_CALL, _MAX_ALIGNED_PAIRS = 1_000_000, 10_000


class _SingleGraphLevel(BaseModel):
    """Node and link targets: computation graphs are cut out of one graph."""

    def load_input(
        self, net: Module, data: Any, forward: ForwardFunction | None
    ) -> tuple[InputGraphs, ForwardAdapter]:
        """Check the graph."""
        check_graph(data, "data", embedding_layers(net))
        call = build_forward_adapter(net, self.level, set(data.keys()), forward)
        return read_single_graph(data, None if call.names is None else set(call.names)), call

    def num_targets(self) -> int:
        """Number of nodes."""
        return self.source.num_nodes

    @property
    def extractor(self) -> Extractor:
        """Extracts computation graphs; built once for each direction of flow."""
        flow = self.trace.flow
        return self.cached_data_fact(f"extractor {flow}", lambda: Extractor(self.source, flow))

    def extract_graphs(
        self, target: Targets, hops: int, halo: int, scope: str
    ) -> ComputationGraphs:
        """Extract computation graphs from the graph."""
        return replace(self.extractor.extract(target.ids, hops, halo, scope), target=target.rows)

    def trial_rows(self, target: Targets, x: Tensor, kept: Tensor) -> Tensor:
        """Raw rows for ``target`` on the whole graph with other features and only the edges under
        ``kept``.
        """
        ids = target.ids
        g = self.whole_data(ids.t() if self.level == "link" else None)
        g.x, g.edge_index = x.clone(), g.edge_index[:, kept]
        for name in self.source.edge_attrs:
            g[name] = g[name][kept]
        rows = as_rows(self.call(g))
        return self.select_label_columns(rows if self.level == "link" else rows[ids[:, 0]], target)

    def whole_data(self, pairs: Tensor | None = None) -> Data:
        """The whole graph as the network's input; copies, so that the network may write into it."""
        source = self.source
        everything = {
            **source.node_attrs,
            **source.edge_attrs,
            **source.graph_attrs,
            "edge_index": source.edge_index,
        }
        g = Data(**{name: copy_if_tensor(value) for name, value in everything.items()})
        if self.call.needs_batch and "batch" not in source.node_attrs:
            g.batch = torch.zeros(source.num_nodes, dtype=torch.int64, device=source.device)
        if pairs is not None:
            g.edge_label_index = pairs
        return g


class NodeLevel(_SingleGraphLevel):
    """A target is a node id."""

    level: ClassVar[str] = "node"

    def all_ids(self) -> Tensor:
        """All nodes."""
        return torch.arange(self.source.num_nodes, device=self.source.device)[:, None]

    def run_once(self) -> Tensor:
        """Call the network on the whole graph."""
        return self.call(self.whole_data())

    def all_rows(self) -> Tensor:
        """Raw rows of all nodes.  (N, columns)"""
        first, second = (
            check_rows(self.first_call(), self.source.num_nodes, "node") for _ in range(2)
        )
        check_finite_rows(first, "node")
        self.check_repeatable(first, second)
        return first

    def whole_rows(self, target: Targets) -> Tensor:
        """Raw rows from one pass over the whole graph, which are cached."""
        return self.select_label_columns(
            self.cached_fact("rows", self.all_rows)[target.ids[:, 0]], target
        )

    def hidden_rows(self, ids: Tensor) -> Tensor:
        """Rows of the hidden space of all nodes, which is cached."""
        return self.cached_fact("hidden", self.all_hidden)[ids[:, 0]]

    def all_hidden(self) -> Tensor:
        """The hidden space of all nodes.  (N, D)"""
        if isinstance(self.embedding, Tensor):
            hidden = self.embedding
        elif self.embedding is not None:
            hidden = self.embedding(self.net, self.whole_data())
        else:
            hidden = find_last_hidden(self.net, self.run_once)
        return check_embedding_rows(hidden, self.source.num_nodes, "nodes")


class LinkLevel(_SingleGraphLevel):
    """A target is a pair of node ids, stored or not."""

    level: ClassVar[str] = "link"

    def all_ids(self) -> Tensor:
        """Stored links, then as many sampled pairs without a link.  (P, 2)"""
        edges = self.source.edge_index
        stored = edges[:, edges[0] != edges[1]].t()
        wanted = len(stored) or 100
        absent = sample_non_edges(stored, self.source.num_nodes, wanted)
        everything = torch.cat([stored, absent.to(stored.device)])
        if not len(everything):
            raise BadGraph("link targets need two nodes, but data.x has one row.")
        return everything

    def run_once(self) -> Tensor:
        """Call the network on the whole graph for a few links."""
        return self.call(self.whole_data(self.some_ids.t()))

    @property
    def some_ids(self) -> Tensor:
        """The links of the probes, without labels.  (few, 2)"""
        return self.cached_data_fact(
            "some ids",
            lambda: find_probes(self, Targets("link", self.num_targets(), self.all_ids())).rows,
        )

    def whole_rows(self, target: Targets) -> Tensor:
        """Raw rows for these pairs on the whole graph; encode/decode networks encode once."""
        self.cached_fact("answers", self.check_answers)
        if self.labels is None:
            return self.rows_for(target.ids)
        pairs, own = target.ids.unique(dim=0, return_inverse=True)
        return self.select_label_columns(self.rows_for(pairs)[own], target)

    def check_answers(self) -> bool:
        """Check that a second call, and a call for single links, give the same rows."""
        self.first_call()
        together = self.rows_for(self.some_ids)
        self.check_repeatable(together, self.rows_for(self.some_ids, fresh=True))
        alone = torch.cat(
            [self.rows_for(self.some_ids[k : k + 1]) for k in range(min(3, len(self.some_ids)))]
        )
        if not is_close(together[: len(alone)], alone):
            raise BadModel(
                f"{type(self.net).__name__} answers a link differently when others are asked with "
                "it (does it normalise over the "
                "asked links, or hide them from message passing?). Each link must have an answer "
                "of its own."
            )
        return True

    @property
    def z(self) -> Tensor:
        """Node embeddings of an encode/decode network.  (N, D)"""
        return self.cached_fact("z", lambda: self.call.encode(self.whole_data()))

    def rows_for(self, target: Tensor, fresh: bool = False) -> Tensor:
        """Raw rows for pairs, a million at a time.  (T, columns)

        Up to 10,000 pairs are each placed at a multiple of 16, as in a union, so that each gets the
        bits that it gets alone.

        Args:
            target: Pairs of node ids.  (T, 2)
            fresh: Whether an encode/decode network encodes again. By default its stored embeddings
                of the nodes are used.
        """
        align = (
            ROW_ALIGNMENT
            if len(target) <= _MAX_ALIGNED_PAIRS and target.device.type == "cpu"
            else 1
        )
        asked = _align_pairs(target, align)
        if self.call.style == "encode_decode":
            z = self.call.encode(self.whole_data()) if fresh else self.z
            parts = [self.call.decode(z, pairs.t()) for pairs in asked.split(_MAX_PAIRS_PER_CALL)]
        else:
            parts = [
                self.call(self.whole_data(pairs.t())) for pairs in asked.split(_MAX_PAIRS_PER_CALL)
            ]
        rows = check_rows(torch.cat(parts), len(asked), "link")[: len(target) * align : align]
        check_finite_rows(rows, "link")
        return rows

    def hidden_rows(self, ids: Tensor) -> Tensor:
        """The embeddings of both ends side by side; or the pairs' own rows if the network computes
        them.  (T, D)
        """
        if isinstance(self.embedding, Tensor):
            return _join_end_embeddings(
                check_embedding_rows(self.embedding, self.source.num_nodes, "nodes"), ids
            )
        pairs = self.pairs_unlike_nodes(ids)
        if self.embedding is not None:
            hidden = self.embedding(self.net, self.whole_data(pairs.t()))
        elif self.call.style == "encode_decode":
            hidden = self.z
        else:
            hidden = find_last_hidden(self.net, lambda: self.call(self.whole_data(pairs.t())))
        if len(hidden) == len(pairs):
            return hidden[: len(ids)]
        return _join_end_embeddings(
            check_embedding_rows(hidden, self.source.num_nodes, "nodes"), ids
        )

    def pairs_unlike_nodes(self, target: Tensor) -> Tensor:
        """``target``, with one more pair if there are as many pairs as nodes: the number of rows
        must show what they are of.
        """
        return (
            torch.cat([target, self.some_ids[:1]])
            if len(target) == self.source.num_nodes
            else target
        )


def _align_pairs(target: Tensor, align: int) -> Tensor:
    """Pairs at multiples of ``align``, with the first pair in all other positions of a union.
    (positions, 2)
    """
    if align == 1 or not len(target):
        return target
    places = target[:1].repeat(
        AlignedLayout.from_counts(torch.ones_like(target[:, 0]), align, spare=0).size, 1
    )
    places[: len(target) * align : align] = target
    return places


class GraphLevel(BaseModel):
    """A target is the index of a graph in a list or dataset."""

    level: ClassVar[str] = "graph"

    def load_input(
        self, net: Module, data: Any, forward: ForwardFunction | None
    ) -> tuple[InputGraphs, ForwardAdapter]:
        """Check all graphs and lay them out flat."""
        graphs = list_graphs(data)
        check_graph(graphs[0], "data[0]", embedding_layers(net))
        call = build_forward_adapter(net, self.level, set(graphs[0].keys()), forward)
        return read_graph_list(graphs, None if call.names is None else set(call.names)), call

    def num_targets(self) -> int:
        """Number of graphs G."""
        return self.source.num_graphs

    def all_ids(self) -> Tensor:
        """All graphs."""
        return torch.arange(self.source.num_graphs, device=self.source.device)[:, None]

    def extract_graphs(
        self, target: Targets, hops: int, halo: int, scope: str
    ) -> ComputationGraphs:
        """Take the whole graph of each target."""
        return replace(build_whole_graphs(self.source, target.ids[:, 0]), target=target.rows)

    def run_once(self) -> Tensor:
        """Call the network on the first graph."""
        return self.stored_rows(self.all_ids()[:1])

    def stored_rows(self, target: Tensor) -> Tensor:
        """Raw rows of graphs in their stored order, each in a call of its own.  (T, 1) -> (T,
        columns)
        """
        alone = Executor(self.call, ALONE, copies_input=True)
        return alone.map(
            alone.outputs, build_whole_graphs(self.source, target[:, 0], as_stored=True)
        )

    def all_rows(self) -> Tensor:
        """Raw rows of all graphs.  (G, columns)"""
        self.first_call()
        ids = self.all_ids()
        some = find_probes(self, Targets("graph", len(ids), ids)).rows
        first, second = (
            self.map(self.executor.outputs, build_whole_graphs(self.source, part[:, 0]))
            for part in (ids, some)
        )
        rows = check_rows(first, self.source.num_graphs, "graph")
        check_finite_rows(rows, "graph")
        self.check_repeatable(rows[some[:, 0]], check_rows(second, len(some), "graph"))
        if not is_alike(rows[some[:, 0]], self.stored_rows(some), COARSE_TOLERANCE):
            raise BadModel(explain_renumbering_failure(self, "gives other predictions"))
        return rows

    def whole_rows(self, target: Targets) -> Tensor:
        """Raw rows of all graphs in unions, which are cached."""
        return self.select_label_columns(
            self.cached_fact("rows", self.all_rows)[target.ids[:, 0]], target
        )

    def hidden_rows(self, ids: Tensor) -> Tensor:
        """The pooled rows that enter the last layer.  (T, D)"""
        if isinstance(self.embedding, Tensor):
            return check_embedding_rows(self.embedding, self.source.num_graphs, "graphs")[ids[:, 0]]
        if not len(ids):
            return self.hidden_rows(self.probes[:1].ids)[:0]
        return self.map(self.hidden_of, build_whole_graphs(self.source, ids[:, 0]), kind="hidden")

    def hidden_of(self, union: GraphBatch) -> Tensor:
        """Hidden rows of the graphs in one union.  (K, D)"""
        hidden = (
            self.embedding(self.net, union.data(with_batch=True))
            if callable(self.embedding)
            else find_last_hidden(self.net, lambda: self.executor.outputs(union))
        )
        return union.select_target_rows(check_embedding_rows(hidden, union.num_outputs, "graphs"))


def _join_end_embeddings(z: Tensor, target: Tensor) -> Tensor:
    """Embeddings of both ends side by side.  (N, D), (T, 2) -> (T, 2 D)"""
    return torch.cat([z[target[:, 0]], z[target[:, 1]]], dim=1)
