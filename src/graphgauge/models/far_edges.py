"""The effect of edges beyond the hops, measured by dropping some of them one at a time.

Only edges that can carry a message to the target within the counted hops are scored. Networks in
which all nodes attend to each other, or that normalise over all of them, look further: their
predictions are made on the whole graph, and other edges act on them, too.
"""

from typing import TYPE_CHECKING, Any

import torch

from graphgauge.execution import GraphBatch
from graphgauge.models.probe_errors import FORWARD_ERRORS
from graphgauge.models.probe_targets import evenly_spaced_rows
from graphgauge.models.tolerances import largest_gap
from graphgauge.subgraphs import HALOS

if TYPE_CHECKING:
    from graphgauge.models.base import BaseModel

#: edges dropped one at a time around each of a few targets
_NUM_PROBED_TARGETS, _NUM_DROPPED_EDGES = (4, 32)
_MAX_ROWS = 2**21  #: nodes and edges of all copies together


def find_far_edges(model: "BaseModel") -> dict[str, Any] | None:
    """Measure the effect of edges that are not scored. None if targets are cut out of their graph.

    Returns:
        The number of edges, the mean number of scored edges, the number of dropped edges, and the
        largest change of a prediction.
    """
    if model.level == "graph" or HALOS[model.base_halo] != "whole graph":
        return None
    graphs = model.extract_graphs(
        evenly_spaced_rows(model.probes, _NUM_PROBED_TARGETS),
        model.hops,
        model.base_halo,
        model.edge_scope,
    )
    is_far = graphs.edge_position >= graphs.num_edges[graphs.edge_owner]
    count = max(
        1, min(_NUM_DROPPED_EDGES, _MAX_ROWS // max(len(graphs.node) + len(graphs.edge), 1))
    )
    far = torch.cat(
        [
            evenly_spaced_rows((is_far & (graphs.edge_owner == k)).nonzero(), count)[:, 0]
            for k in range(len(graphs))
        ]
    )
    if not len(far):
        return None
    owner = graphs.edge_owner[far]

    def dropped(union: GraphBatch) -> torch.Tensor:
        return model.executor.outputs(
            union.without_edges(union.edge_row == far[union.copy][union.edge_copy])
        )

    model.prepare_engine()
    try:
        with torch.no_grad():
            start = model.interpret(
                model.executor.map(model.executor.outputs, graphs, kind="far edges, unedited")
            )
            after = model.interpret(model.executor.map(dropped, graphs, owner, kind="far edges"))
    except FORWARD_ERRORS:
        return None
    return {
        "edges": int(graphs.edge_sizes[0]),
        "scored_per_target": round(float(graphs.num_edges.double().mean()), 1),
        "dropped": len(far),
        "largest_change": float(largest_gap(start[owner], after).max()),
    }
