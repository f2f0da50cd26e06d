"""Slow references, written from the definitions in plain Python, for the fast paths of the models
room.
"""

import torch


def distances(edges, seeds, hops, flow):
    """Number of messages from each node to the nearest seed, as far as ``hops``: one breadth-first
    search.
    """
    distance = dict.fromkeys(seeds, 0)
    ring = set(seeds)
    for step in range(1, hops + 1):
        senders = set()
        for source, target in edges:
            if flow in ("source_to_target", "both") and target in ring:
                senders.add(source)
            if flow in ("target_to_source", "both") and source in ring:
                senders.add(target)
        ring = senders - set(distance)
        distance.update(dict.fromkeys(ring, step))
    return distance


def computation_graph(data, target, hops, halo, scope, flow="source_to_target"):
    """Nodes within L hops with their distance, relevant edges, all edges and all nodes, by
    the definition, edge by edge.
    """
    edges = list(map(tuple, data.edge_index.t().tolist()))
    seeds = target if isinstance(target, tuple) else (target,)
    distance = distances(edges, seeds, hops, flow)
    inside = set(distance)

    def is_message(source, end):
        """Can this edge carry a message that arrives: is a head of it within L - 1 hops?"""
        heads = {"source_to_target": [end], "target_to_source": [source], "both": [source, end]}[
            flow
        ]
        return any(distance.get(head, hops) <= hops - 1 for head in heads)

    def touches(nodes, source, end, ways):
        """Does the edge lead into (or out of) one of ``nodes``?"""
        head, tail = (source, end) if flow == "target_to_source" else (end, source)
        both = flow == "both"
        return ("in" in ways and (head in nodes or (both and tail in nodes))) or (
            "out" in ways and (tail in nodes or (both and head in nodes))
        )

    relevant, others = [], []
    around = {
        end for edge in edges if touches(inside, *edge, ("in", "out")) for end in edge
    } | inside
    for number, (source, end) in enumerate(edges):
        is_relevant = (
            is_message(source, end) if scope == "messages" else source in inside and end in inside
        )
        if scope == "induced" and hops == 0:
            is_relevant = source in inside and end in inside
        in_halo = {
            "none": False,
            "in": touches(inside, source, end, ("in",)),
            "in and out": touches(inside, source, end, ("in", "out")),
            "one ring more": touches(around, source, end, ("in", "out")),
            "whole graph": True,
        }[halo]
        if is_relevant and source != end:
            relevant.append(number)
        elif in_halo or (is_relevant and source == end):
            others.append(number)
    outside = {end for number in relevant + others for end in edges[number]} - inside
    if halo == "whole graph":
        outside = set(range(data.num_nodes)) - inside
    stand_in = min(outside) if outside and halo in ("in", "in and out") else None
    shown = {node: stand_in if stand_in is not None else node for node in outside}
    return {
        "distance": distance,
        "relevant": relevant,
        "others": others,
        "nodes": inside | set(shown.values()),
        "ends": [[shown.get(end, end) for end in edges[number]] for number in relevant + others],
    }


def whole_graph_prediction(net, data, target, level="node"):
    """One forward of the bare network on the bare data, and the softmax of the target's row."""
    with torch.no_grad():
        if level == "link" and hasattr(net, "encode"):
            raw = net.decode(net.encode(data.x, data.edge_index), torch.tensor([target]).t())[0]
        elif level == "link":
            raw = net(data.x, data.edge_index, torch.tensor([target]).t())[0]
        else:
            raw = net(data.x, data.edge_index)[target]
    return torch.stack([1 - raw.sigmoid(), raw.sigmoid()]) if raw.dim() == 0 else raw.softmax(0)
