"""Edits and curves as the paper writes them: the whole graph, one edit at a time, one forward pass
per point.
"""

import torch

from graphgauge.execution.message_masking import mask_messages


def run(net, ask, x, edge_index, kept=None):
    """One forward pass, with the messages of edges that are not kept multiplied by 0."""
    with torch.no_grad():
        if kept is None:
            return ask(net, x, edge_index)
        with mask_messages(net, edge_index, kept.double()):
            return ask(net, x, edge_index)


def edge_curve(net, ask, data, removed, removal):
    """RemoveEdge one by one: ``removed`` lists, step by step, the ids of the edges that go."""
    kept, rows = torch.ones(data.num_edges, dtype=torch.bool), []
    for ids in removed:
        kept[ids] = False
        if removal == "drop":
            rows.append(run(net, ask, data.x, data.edge_index[:, kept]))
        else:
            rows.append(run(net, ask, data.x, data.edge_index, kept))
    return rows


def feature_curve(net, ask, data, ends, donor, order):
    """SetTargetFeat and SetNeighsFeats one by one. ``donor`` maps each node to the row of features
    that it takes from.
    """
    x, rows, F = data.x.clone(), [], data.x.size(1)
    for candidate in order:
        block, column = divmod(candidate, F)
        for node, row in donor.items():
            if (ends.index(node) if node in ends else len(ends)) == block:
                x[node, column] = row[column]
        rows.append(run(net, ask, x, data.edge_index))
    return rows
