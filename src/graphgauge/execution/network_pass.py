"""One pass of a network over a union of copies: masks, edits and shared edges are applied to it."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor

from graphgauge.execution.edge_tracking import EdgeTracker
from graphgauge.execution.forward_signature import ForwardAdapter
from graphgauge.execution.fused_messages import (
    MessageFusion,
    NotFusable,
    can_be_fused,
    fuse_messages,
)
from graphgauge.execution.graph_batch import GraphBatch
from graphgauge.execution.message_masking import (
    EdgeFactors,
    MessageEdit,
    MessageScaling,
    UnmatchedEdges,
    edit_messages,
    mask_messages,
)
from graphgauge.execution.message_pruning import MessagePruner, prune_messages
from graphgauge.execution.norm_cache import share_normalisation, share_self_loops
from graphgauge.execution.output_rows import as_rows, label_column
from graphgauge.subgraphs import HALOS

#: how copies can share a call of the network
TOGETHER, WITH_BATCH, ALONE = "together", "together with batch=", "one by one"


@dataclass
class NetworkPass:
    """Calls a network on one union of copies.

    Args:
        call: The network and how to call it.
        joining: How copies share a call: together, together with batch=, or one by one.
        copies_input: Copy the input first, for networks that write into it.
        cuts: For each round of messages, whether messages that cannot arrive are left out.
        fuses: Whether messages that no hook needs are multiplied instead of being written out.
        tracks_edges: Whether a layer was found to run on some of the edges only.
        lazy: Whether features may stay unwritten if no gradient is needed.
    """

    call: ForwardAdapter
    joining: str = TOGETHER
    copies_input: bool = False
    cuts: tuple[bool, ...] = ()
    fuses: bool = False
    tracks_edges: bool = False
    lazy: bool = False

    def outputs(
        self,
        union: GraphBatch,
        edit: MessageEdit | None = None,
        every_message: bool = False,
        written: bool = False,
    ) -> Tensor:
        """Raw rows of the network for the copies' targets, differentiable.  (K, columns)

        Args:
            union: The copies.
            edit: A function that receives the messages that layers send, and may replace them.
            every_message: Also send messages that cannot arrive.
            written: Write all messages out, for rules that must find each operation of a layer.
        """
        fuses = self.fuses and not written and can_be_fused(self.call.net)
        try:
            return self._run_network(union, edit, every_message, fuses)
        except NotFusable:
            self.fuses = False
            return self.outputs(union, edit, every_message, written)
        except UnmatchedEdges:
            if self.tracks_edges:
                raise
            self.tracks_edges = True
            return self._run_network(union, edit, every_message, False)

    def _run_network(
        self, union: GraphBatch, edit: MessageEdit | None, every_message: bool, fuses: bool
    ) -> Tensor:
        """As `outputs`; if it ``fuses``, all layers must be sparse products."""
        unwritten = (
            self.lazy and edit is None and not self.copies_input and not torch.is_grad_enabled()
        )
        lazy = unwritten or union.features.has_gradient
        g = union.data(self._passes_batch(union), lazy)
        if self.copies_input:
            g = g.clone()
        reach = None if every_message else self._pruner(union)
        net, shared = self.call.net, (union.normalised, union.looped)
        is_tracked = self.tracks_edges and (edit is not None or union.edge_mask is not None)
        tracker = EdgeTracker(g.edge_index) if is_tracked else None
        messages = self._change_messages(union, edit, reach, fuses and tracker is None, tracker)
        with (
            share_normalisation(net, shared[0]),
            share_self_loops(net, shared[1]),
            messages,
            tracker or nullcontext(),
        ):
            raw = self.call(g)
        rows, label = union.select_target_rows(as_rows(raw)), union.graphs.label
        return rows if label is None else label_column(rows, label[union.graph_index])

    @contextmanager
    def _change_messages(
        self,
        union: GraphBatch,
        edit: MessageEdit | None,
        reach: MessagePruner | None,
        fuses: bool,
        tracker: EdgeTracker | None,
    ) -> Iterator[None]:
        """Apply the mask, the edit and the pruning to the messages of one pass."""
        net, edge_index, mask = self.call.net, union.edge_index, union.full_mask()
        scaling = None if mask is None else EdgeFactors(mask)
        if fuses and (edit is None or (isinstance(edit, MessageScaling) and mask is None)):
            with (
                prune_messages(net, reach),
                fuse_messages(net, MessageFusion(union, reach, scaling if edit is None else edit)),
            ):
                yield
            return
        seen = (
            nullcontext()
            if edit is None
            else edit_messages(net, edge_index, edit, union.edge_use, reach, tracker)
        )
        masked = mask_messages(
            net, edge_index, mask, memo=union.edge_use, reach=reach, tracker=tracker
        )
        with masked, seen, prune_messages(net, reach):
            yield

    def _pruner(self, union: GraphBatch) -> MessagePruner | None:
        """The pruning of messages that cannot arrive; None if more than degrees may depend on edges
        outside.
        """
        return (
            MessagePruner(union, self.cuts)
            if any(self.cuts) and union.graphs.widest_halo <= HALOS.index("in and out")
            else None
        )

    def _passes_batch(self, union: GraphBatch) -> bool:
        """Whether the network is given ``batch``: always in graph tasks, otherwise only if it is
        needed.
        """
        has_to = self.joining == WITH_BATCH or self.call.needs_batch or "batch" in union.node_attrs
        return self.call.takes_batch and (has_to or union.target_rows.size(1) == 0)
