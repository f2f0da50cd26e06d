"""What an exhibit says of edges and features, from its definition in plain Python: an entry for
each edge, one after the other.
"""

import math
from collections import defaultdict
from itertools import accumulate

import networkx as nx

from graphgauge.plots.graph_layout import _spread_branches

TOP = 3  #: of a text


def rounded(value):
    return float(f"{value:.3g}")


def split(scores, order, signed):
    """Positions of what is told: the supporting, and the opposing ones."""
    strength = abs if order == "magnitude" else float
    told = [k for k, score in enumerate(scores) if (strength(score) > 0 if signed else score != 0)]
    best = sorted(told, key=lambda k: -strength(scores[k]))[:TOP]
    if not signed:
        return best, []
    if order == "magnitude":
        return [k for k in best if scores[k] > 0], [k for k in best if scores[k] < 0]
    return best, sorted(
        (k for k, score in enumerate(scores) if score < 0), key=lambda k: scores[k]
    )[:TOP]


def edge_facts(x, ends, names, order, signed, redact):
    """Of edges, without groups of nodes where an edge has score 0."""
    scores = x.edge_score.double().tolist()
    used = [k for k, score in enumerate(scores) if score]
    others = {node for k in used for node in ends[k]} - set(x.target_nodes)
    told = ([], []) if redact else split(scores, order, signed)
    top, opposing = ([edge_entry(x, ends[k], k, scores[k], names) for k in part] for part in told)
    return {
        "status": "ok" if used else "zero",
        "top": top,
        "opposing": opposing,
        "total": len(used),
        "positive": sum(score > 0 for score in scores),
        "negative": sum(score < 0 for score in scores),
        "neighbours": len(others),
        "groups": group_facts(names, others, [(ends[k], scores[k]) for k in used]),
    }


def edge_entry(x, ends, k, score, names):
    source, destination = ({"id": node, "name": names.nodes.get(node, "")} for node in ends)
    return {
        "source": source,
        "destination": destination,
        "other": [
            way
            for way, node in zip(("source", "destination"), ends, strict=True)
            if node not in x.target_nodes
        ],
        "relation": names.relation
        if isinstance(names.relation, str)
        else names.relation.get(int(x.edges[k]), ""),
        "score": rounded(score),
    }


def group_facts(names, others, used):
    found = []
    for (one, other), group in names.groups.items():
        members = others & set(group)
        own = [score for ends, score in used if members & set(ends)]
        if members:
            found.append(
                {
                    "one": one,
                    "other": other,
                    "count": len(members),
                    "edges": len(own),
                    "score": rounded(sum(own)),
                }
            )
    return sorted(found, key=lambda group: -abs(group["score"]))[:TOP]


def strongest(scored, keep):
    """Entries that end with their score."""
    order = sorted((entry for entry in scored if entry[-1]), key=lambda entry: -abs(entry[-1]))
    return order if keep == "all" else order[:keep]


# --- the picture ----------------------------------------------------------------------------------


def place_of(x, names):
    """The group of each node in one."""
    found = {}
    for (_, plural), members in names.groups.items():
        found.update(
            {
                node: plural
                for node in sorted(members)
                if node not in found and node not in x.target_nodes
            }
        )
    return found


def shown(x, ends, names, top):
    """Arrows (source, destination, score, count) that are drawn, and the rest as one."""
    place, scores = place_of(x, names), defaultdict(list)
    for (source, destination), score in zip(ends, x.edge_score.double().tolist(), strict=True):
        scores[place.get(source, source), place.get(destination, destination)].append(score)
    arrows = [(*pair, sum(own), len(own)) for pair, own in scores.items()]
    arrows.sort(key=lambda arrow: -abs(arrow[2]))
    number = min(top, sum(arrow[2] != 0 for arrow in arrows))
    rest = arrows[number:]
    return arrows[:number], [
        ("", "", sum(abs(arrow[2]) for arrow in rest), sum(arrow[3] for arrow in rest))
    ] if rest else []


def hops(pairs, targets):
    sources = defaultdict(list)
    for source, destination in pairs:
        sources[destination].append(source)
    found = dict.fromkeys(targets, 0)
    queue = list(found)
    for node in queue:
        new = [source for source in dict.fromkeys(sources[node]) if source not in found]
        found.update(dict.fromkeys(new, found[node] + 1))
        queue += new
    return found


def places(x, ends, names, drawn):
    """The place of each drawn node, and the radii of the rings."""
    place = place_of(x, names)
    pairs = list(
        dict.fromkeys(
            (place.get(source, source), place.get(destination, destination))
            for source, destination in ends
        )
    )
    if x.level == "graph":
        return (springs(drawn, pairs) if drawn else {}), []
    return shells(drawn, pairs, x.target_nodes)


def shells(drawn, pairs, targets):
    steps = hops(pairs, targets)
    nodes = dict.fromkeys([*targets, *(node for arrow in drawn for node in arrow[:2])])
    ring = {node: steps.get(node, max(steps.values()) + 1) for node in nodes}
    branches, radius, angle = tree(drawn, pairs, targets, ring), radii(ring), {}
    for k, target in enumerate(targets):
        start = math.pi / 2 if len(targets) == 1 else (1.5 * math.pi if k == 0 else math.pi / 2)
        _spread_branches(target, start, 2 * math.pi / len(targets), branches, angle)
    side = {
        node: (-0.22 if math.cos(angle[node]) < 0 else 0.22) if len(targets) == 2 else 0.0
        for node in ring
    }
    side.update(dict(zip(targets, (-0.22, 0.22), strict=False)) if len(targets) == 2 else {})
    found = {
        node: (
            side[node] + (1 - abs(side[node])) * radius[r] * math.cos(angle[node]),
            radius[r] * math.sin(angle[node]),
        )
        for node, r in ring.items()
    }
    return found, radius


def radii(ring):
    counts = [list(ring.values()).count(number) for number in range(1, max(ring.values()) + 1)]
    sums = [0.0, *accumulate(max(count / max(counts), 0.6) for count in counts)]
    return [part / (sums[-1] or 1.0) for part in sums]


def tree(drawn, pairs, targets, ring):
    ways, steps, branches = defaultdict(list), hops(pairs, targets), defaultdict(list)
    for source, destination in (*(arrow[:2] for arrow in drawn), *pairs):
        ways[source].append(destination)
    for node in ring:
        if node not in targets:
            branches[inner(node, ways, steps, ring, targets)].append(node)
    return branches


def inner(node, ways, steps, ring, targets):
    while node in steps:
        closer = [other for other in ways[node] if steps.get(other, steps[node]) < steps[node]]
        seen = [other for other in closer if other in ring]
        if seen:
            return seen[0]
        node = closer[0]
    return targets[0]


def ends_below(node, branches):
    """The nodes without branches below a node, in order; the node itself if it has none."""
    return [end for other in branches.get(node, ()) for end in ends_below(other, branches)] or [
        node
    ]


def sectors(root, start, span, branches):
    """Clockwise from start every end has the same share of the span, and every node the middle of
    its ends' shares.
    """
    everything, waiting, angle = ends_below(root, branches), [root], {}
    while waiting:
        node = waiting.pop()
        own = ends_below(node, branches)
        angle[node] = start - span * (everything.index(own[0]) + len(own) / 2) / len(everything)
        waiting += branches.get(node, ())
    return angle


def springs(drawn, pairs):
    nodes = list(dict.fromkeys(node for arrow in drawn for node in arrow[:2]))
    graph = nx.Graph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from((u, v) for u, v in pairs if u in graph and v in graph and u != v)
    turn = 2 * math.pi / max(len(nodes), 1)
    rows = {node: (math.cos(k * turn), math.sin(k * turn)) for k, node in enumerate(nodes)}
    found = (
        nx.spring_layout(graph, k=2 / math.sqrt(len(nodes)), pos=rows, iterations=300, seed=0)
        if len(nodes) > 2
        else rows
    )
    low, high = (
        [pick(place[k] for place in found.values()) for k in (0, 1)] for pick in (min, max)
    )
    return {
        node: tuple(
            2 * (float((place[k] - low[k]) / (high[k] - low[k])) if high[k] > low[k] else 0.5) - 1
            for k in (0, 1)
        )
        for node, place in found.items()
    }
