"""The paper's metrics word for word: its algorithms 1 to 7, its equations, and the calibrated
twins.

Plain Python on the whole graph, one forward pass for each point, with loops and lists; nothing of
`graphgauge.metrics`. Names are the paper's. What is drawn at random (the order of ties, random
permutations, references and the map φ, pairs of explanations) comes in as an argument. Where the
paper leaves something open, a comment says which reading is taken.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property

from support.literal_curves import run

UNTOUCHED = (frozenset(), ())  #: G_target: no edge removed, no feature substituted


@dataclass
class Question:
    """M(t, ·): a network, its data, and a target. A graph G_mod is (removed edges, substituted
    features).
    """

    net: object
    data: object
    ask: object  #: (net, x, edge_index) -> probabilities (C,) or value ()
    ends: tuple  #: the target's own nodes: (t,), (v_1, v_2), or () of a graph
    hops: int
    settings: object
    spread: float | None = None  #: SD of predictions over the population; None: classification
    answers: dict = field(default_factory=dict)

    def output(self, G_mod):
        """The prediction: a list of probabilities, or a value. One forward pass over the whole
        graph, remembered.
        """
        if G_mod not in self.answers:
            self.answers[G_mod] = self.forward(*G_mod)
        return self.answers[G_mod]

    def forward(self, removed, substituted):
        x, edge_index = self.data.x.clone(), self.data.edge_index
        for (node, column), value in substituted:
            x[node, column] = value
        kept = [e not in removed for e in range(edge_index.size(1))]
        if self.settings.edge_removal == "drop":
            return run(self.net, self.ask, x, edge_index[:, kept]).tolist()
        return run(
            self.net, self.ask, x, edge_index, edge_index.new_tensor(kept) if removed else None
        ).tolist()

    @property
    def is_regression(self):
        return self.spread is not None

    @property
    def tolerance(self):
        return self.settings.tolerance * (self.spread if self.is_regression else 1)

    def changed(self, G_mod, way=0):
        """M(t, G_mod) ≠ ŷ: another class is ahead, or the value left the band, by more than the
        tolerance.

        With a direction, a value has to leave the band on one side: above (way = 1) or below (-1).
        """
        first, now = self.output(UNTOUCHED), self.output(G_mod)
        if self.is_regression:
            is_there = (
                self.settings.direction in ("paper", "any")
                or way == 0
                or (now > first) == (way > 0)
            )
            unit = {"sd": self.spread, "absolute": 1.0}[self.settings.flip_unit]
            return is_there and abs(now - first) > self.settings.flip * unit
        label = first.index(max(first))
        return (
            max(p for c, p in enumerate(now) if c != label) - now[label] > self.settings.tolerance
        )

    def height(self, G_mod):
        """The height of a curve: the probability of the class first predicted, or the value."""
        first = self.output(UNTOUCHED)
        return (
            self.output(G_mod)
            if self.is_regression
            else self.output(G_mod)[first.index(max(first))]
        )

    # --- GetNodesInCompGraph, GetEdgesInCompGraph -------------------------------------------------

    @cached_property
    def edges(self):
        return list(map(tuple, self.data.edge_index.t().tolist()))

    def hops_to(self, t):
        """How many messages each node is away from t, up to L."""
        distance = {t: 0}
        for step in range(1, self.hops + 1):
            for source, end in self.edges:
                if distance.get(end) == step - 1 and source not in distance:
                    distance[source] = step
        return distance

    @cached_property
    def v_comp(self):
        """Nodes in the computational graph: of a link, those of both ends; of a graph, all."""
        if not self.ends:
            return set(range(self.data.num_nodes))
        return {v for t in self.ends for v in self.hops_to(t)}

    @cached_property
    def v_neigh(self):
        """Reading: without the target's own nodes, as the text says and the algorithms do not. Near
        ones first, then by id.
        """
        hops = {}
        for t in self.ends:
            hops = {
                **self.hops_to(t),
                **{v: min(d, self.hops_to(t).get(v, d)) for v, d in hops.items()},
            }
        return sorted(self.v_comp - set(self.ends), key=lambda v: (hops.get(v, 0), v))

    @cached_property
    def e_rel(self):
        """Edges in the computational graph, without stored self-loops.

        Reading "messages": those that carry a message to t, whose head is within L - 1 hops.
        "induced": all among V_comp.
        """
        inside, near = self.v_comp, set()
        for t in self.ends:
            near |= {v for v, d in self.hops_to(t).items() if d <= self.hops - 1}
        found = []
        for e, (source, end) in enumerate(self.edges):
            is_in = (
                end in near
                if self.ends and self.settings.edge_scope == "messages"
                else {source, end} <= inside
            )
            if is_in and source != end:
                found.append(e)
        return found

    @cached_property
    def units(self):
        """What one RemoveEdge takes away: an edge, or all edges of E_rel between two nodes; in the
        order of the first edge.
        """
        if self.settings.removal_unit == "directed":
            return [[e] for e in self.e_rel]
        pairs = {}
        for e in self.e_rel:
            pairs.setdefault(frozenset(self.edges[e]), []).append(e)
        return list(pairs.values())


# --- sorting, and G_mod ---------------------------------------------------------------------------


def total(values):
    """A sum from left to right."""
    found = 0.0
    for value in values:
        found += value
    return found


def arg_sort(question, scores, ties, way=0):
    """Descending; equal scores in a drawn order. Readings: signed, or by magnitude; ascending where
    a value is to rise.
    """
    settings = question.settings
    if not question.is_regression or settings.direction == "paper":
        by_magnitude, rises = settings.order == "magnitude", False
    else:
        by_magnitude, rises = settings.direction == "any" or way == 0, way > 0
    rank = [abs(score) if by_magnitude else -score if rises else score for score in scores]
    return sorted(range(len(scores)), key=lambda i: (-rank[i], ties[i]))


def way_of(question, kind):
    """Where the direction says that a value should go: 1 up, -1 down, 0 either way; ``kind`` says
    where the reference lies.
    """
    if not question.is_regression:
        return 0
    return {"any": 0, "up": 1, "down": -1}.get(question.settings.direction, kind)


def edge_order(question, s, ties):
    """I_sorted of ArgSort(s[E_rel])."""
    return arg_sort(
        question, [total(s[e] for e in unit) for unit in question.units], ties, way_of(question, 0)
    )


def max_pooled(column):
    return max(column)


def abs_max_pooled(column):
    return max(abs(value) for value in column)


def sum_pooled(column):
    return total(column)


def mean_pooled(column):
    return total(column) / len(column)


POOLED = {"max": max_pooled, "sum": sum_pooled, "mean": mean_pooled, "abs_max": abs_max_pooled}


class Candidates(list):
    """Scores of the candidates themselves, as the random baseline draws them; nothing is pooled."""


def priority_vector(question, f):
    """f_target ⊕ f_neighs. Reading: pooled over nodes; a target without neighbours has no such
    block, a graph no target's.
    """
    if isinstance(f, Candidates):
        return list(f)
    N_f = question.data.num_features
    f_target = [value for t in question.ends for value in f[t]]
    V_neigh = question.v_neigh
    f_neighs = (
        [POOLED[question.settings.pooling]([f[v][j] for v in V_neigh]) for j in range(N_f)]
        if V_neigh
        else []
    )
    return f_target + f_neighs


def feature_order(question, f, ties, way=0):
    """I_sorted of ArgSort(f_C)."""
    return arg_sort(question, priority_vector(question, f), ties, way)


def remove_edge(question, unit, G_mod):
    removed, substituted = G_mod
    return removed | frozenset(question.units[unit]), substituted


def set_feats(question, index, G_mod, phi):
    """SetTargetFeat, or SetNeighsFeats on all of V_neigh. ``phi`` gives each node the features of
    the one it is mapped to.
    """
    N_f = question.data.num_features
    block, j = divmod(index, N_f)
    nodes = [question.ends[block]] if index < len(question.ends) * N_f else question.v_neigh
    removed, substituted = G_mod
    values = {**dict(substituted), **{(v, j): phi[v][j] for v in nodes}}
    return removed, tuple(sorted(values.items()))


def after_edits(question, order, K, edit):
    """G_mod^(1) ... G_mod^(K)."""
    G_mod, found = UNTOUCHED, []
    for i in order[:K]:
        G_mod = edit(question, i, G_mod)
        found.append(G_mod)
    return found


def substituting(phi):
    return lambda question, index, G_mod: set_feats(question, index, G_mod, phi)


# --- Effective Compactness ------------------------------------------------------------------------


def algorithm_4_ec_edge(question, s, ties):
    """ECEdge."""
    E_rel = question.units
    I_sorted, way = edge_order(question, s, ties), way_of(question, 0)
    G_mod, i = UNTOUCHED, 0
    while not question.changed(G_mod, way) and i < min(question.settings.cap, len(E_rel)):
        G_mod = remove_edge(question, I_sorted[i], G_mod)
        i += 1
    return i


def equation_ec(question, order, edit, way=0):
    """min({ i >= 1 | M(t, G_mod^(i)) ≠ ŷ } ∪ { cap, |candidates| })."""
    bound = min(question.settings.cap, len(order))
    graphs = after_edits(question, order, bound, edit)
    return min(
        [i for i, G_mod in enumerate(graphs, 1) if question.changed(G_mod, way)]
        + [question.settings.cap, len(order)]
    )


def ever_changed(question, order, edit, way=0):
    """`flipped`: is there an i at all?"""
    return any(
        question.changed(G_mod, way)
        for G_mod in after_edits(question, order, question.settings.cap, edit)
    )


def algorithm_5_ec_feature(question, f, ties, references):
    """ECFeature. A reference is (φ, way). Reading: |f| is |f_C|.

    -> the EC, and i for each reference
    """
    size = len(priority_vector(question, f))
    feature_ec, each = question.settings.cap, []
    for phi, way in references:
        I_sorted = feature_order(question, f, ties, way)
        G_mod, i = UNTOUCHED, 0
        while not question.changed(G_mod, way) and i < min(question.settings.cap, size):
            G_mod = set_feats(question, I_sorted[i], G_mod, phi)
            i += 1
        each.append(i)
        feature_ec = min(feature_ec, i)
    return feature_ec, each


# --- early stopping -------------------------------------------------------------------------------


def early_stop(values, settings):
    """Why a list of trials may end here; '' if it goes on. Readings: either test stops; SD with
    divisor i; SE = 0 stops.
    """
    least, most = settings.trials
    i = len(values)
    if settings.early_stop == "none":
        return "most" if i == most else ""
    if i < least:
        return ""
    mean = math.fsum(values) / i
    SE = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / i) / math.sqrt(i)
    if max(values) == min(values):
        return "constant"
    if settings.tau is not None and abs(mean - settings.tau) / SE > 1.645:
        return "decided"
    if settings.epsilon / SE > 1.96:
        return "precise"
    return "most" if i == most else ""


def betting(values, tau, alpha=0.05):
    """The other rule: two gamblers, one on each side of tau, until their mean wealth is 1/alpha.

    -> trials, reason
    """
    above = below = 1.0
    total_x, total_v, variance = 0.5, 0.25, 0.25
    for i, x in enumerate(values, 1):
        stake = math.sqrt(2 * math.log(2 / alpha) / (variance * i * math.log(1 + i)))
        above *= 1 + min(stake, 0.75 / tau) * (x - tau)
        below *= 1 - min(stake, 0.75 / (1 - tau)) * (x - tau)
        if max(above, below) / 2 >= 1 / alpha:
            return i, "decided"
        total_x += x
        total_v += (x - total_x / (i + 1)) ** 2
        variance = total_v / (i + 1)
    return len(values), "most"


def average(values):
    return math.fsum(values) / len(values)


# --- Pertinence -----------------------------------------------------------------------------------


def as_read(question, heights, pull, how):
    """Reading of "degrades" in regression: raw; the way to the reference; or the change either way.
    Lower is further.

    A direction decides: "any" is the change either way; up and down are the way that the value is
    to go.
    """
    if not question.is_regression:
        return heights
    if how is None:
        directed = "abs" if question.settings.direction == "any" or pull == 0 else "towards"
        how = (
            question.settings.regression_curve
            if question.settings.direction == "paper"
            else directed
        )
    if how == "raw":
        return heights
    if how == "abs":
        return [-abs(height - question.output(UNTOUCHED)) for height in heights]
    return [-height if pull > 0 else height for height in heights]


def deletion_curve(question, order, K, edit, pull=0, how=None):
    """CreateEdgeDelCurve, CreateFeatDelCurve: C(1) ... C(K)."""
    heights = [question.height(G_mod) for G_mod in after_edits(question, order, K, edit)]
    return as_read(question, heights, pull, how)


def equation_p(C_del, C_rand, tolerance):
    """(1/K) Σ_k I(C_del(k) < C_rand(k)); a difference up to the tolerance is none."""
    return sum(
        1 for mine, theirs in zip(C_del, C_rand, strict=True) if mine < theirs - tolerance
    ) / len(C_del)


def race(question, order, K, edit, permutations, pull=0):
    """The loop of algorithms 6 and 7 over RandPerm(I_sorted).

    -> average, number of trials, why they ended
    """
    C_del = deletion_curve(question, order, K, edit, pull)
    L_pert, permutations = [], iter(permutations)
    while not early_stop(L_pert, question.settings):
        C_rand = deletion_curve(question, next(permutations), K, edit, pull)
        L_pert.append(equation_p(C_del, C_rand, question.tolerance))
    return average(L_pert), len(L_pert), early_stop(L_pert, question.settings)


def algorithm_6_pertinence_edge(question, s, edge_ec, ties, permutations):
    """PertinenceEdge.  -> value, trials, reason"""
    return race(
        question,
        edge_order(question, s, ties),
        edge_ec,
        remove_edge,
        permutations,
        way_of(question, 0),
    )


def algorithm_7_pertinence_feature(question, f, feat_ec, ties, references):
    """PertinenceFeature. A reference is (φ, permutations, pull).

    -> value, and (value, trials, reason) for each reference
    """
    L_pert = []
    for phi, permutations, pull in references:
        I_sorted = feature_order(question, f, ties, pull)
        L_pert.append(race(question, I_sorted, feat_ec, substituting(phi), permutations, pull))
    return average([value for value, _, _ in L_pert]), L_pert


def equation_pertinence_edge(question, s, ties, permutations):
    """(1/N) Σ_j p(C_del, C_rand^(j)), over the N permutations given."""
    order = edge_order(question, s, ties)
    K = equation_ec(question, order, remove_edge)
    C_del = deletion_curve(question, order, K, remove_edge)
    curves = [deletion_curve(question, other, K, remove_edge) for other in permutations]
    return sum(equation_p(C_del, C_rand, question.tolerance) for C_rand in curves) / len(curves)


def equation_pertinence_feature(question, f, ties, references):
    """(1/(|G_ref| N)) Σ_ref Σ_j p(C_del(G_ref), C_rand^(j)(G_ref)), over the N permutations given
    with each reference.
    """
    order, found, N = feature_order(question, f, ties), 0.0, len(references[0][1])
    K = min(equation_ec(question, order, substituting(phi), pull) for phi, _, pull in references)
    for phi, permutations, pull in references:
        C_del = deletion_curve(question, order, K, substituting(phi), pull)
        for other in permutations:
            found += equation_p(
                C_del,
                deletion_curve(question, other, K, substituting(phi), pull),
                question.tolerance,
            )
    return found / (len(references) * N)


# --- the calibrated pertinences -------------------------------------------------------------------


def within_blocks(order, names):
    """An order whose candidates were renamed inside their blocks."""
    return [names[c] for c in order]


def twins_of_case(question, order, edit, permutations, pull=0):
    """Tied and abs against one reference, and mean heights, over K = min(cap, candidates)."""
    K, tol = min(question.settings.cap, len(order)), question.tolerance
    C = deletion_curve(question, order, K, edit, pull)
    R = [deletion_curve(question, other, K, edit, pull) for other in permutations]
    found = {
        "tied": average([half_tied(C, curve, tol) for curve in R]),
        "T": average(C),
        "others": [average(curve) for curve in R],
    }
    if question.is_regression:
        moved = deletion_curve(question, order, K, edit, pull, "abs")
        theirs = [deletion_curve(question, other, K, edit, pull, "abs") for other in permutations]
        found["abs"] = average([half_tied(moved, curve, tol) for curve in theirs])
    return found


def half_tied(C, R, tolerance):
    """Share of steps below the other curve, ties half."""
    points = [
        1.0 if c < r - tolerance else 0.5 if abs(c - r) <= tolerance else 0.0
        for c, r in zip(C, R, strict=True)
    ]
    return average(points)


def twins_of_cases(cases, tolerance):
    """Means over references; rank and p are of the mean heights over references, since all have the
    same random orders.
    """
    found = {
        name: average([case[name] for case in cases])
        for name in ("tied", "abs")
        if name in cases[0]
    }
    T = average([case["T"] for case in cases])
    others = [average(heights) for heights in zip(*[case["others"] for case in cases], strict=True)]
    found["rank"] = average(
        [
            1.0 if other > T + tolerance else 0.5 if abs(other - T) <= tolerance else 0.0
            for other in others
        ]
    )
    found["p"] = (1 + sum(1 for other in others if other <= T + tolerance)) / (1 + len(others))
    return found


def easiest(question, candidates):
    """Which of several medoids of one class is used: the lowest mean EC over its own separate
    orders; the first of equals.
    """
    means = [
        average([equation_ec(question, order, substituting(phi), way) for order in orders])
        for phi, orders, way in candidates
    ]
    return means.index(min(means))


# --- Stability ------------------------------------------------------------------------------------


def normalised(vector):
    """Reading: a vector of zeros stays."""
    norm = math.sqrt(math.fsum(value * value for value in vector))
    return [value / norm for value in vector] if norm else vector


def distance(a, b):
    """‖â - b̂‖ / 2."""
    gaps = [p - q for p, q in zip(normalised(a), normalised(b), strict=True)]
    return math.sqrt(math.fsum(gap * gap for gap in gaps)) / 2


def edge_parts(question, s):
    """s[E_rel], as the only part."""
    return [[s[e] for e in question.e_rel]]


def feature_parts(question, f):
    """f_A and f_B, those that there are. Their own order does not matter, but for the draws that
    permute them.
    """
    f_A = [value for t in sorted(question.ends) for value in f[t]]
    f_B = [value for v in question.v_neigh for value in f[v]]
    return [part for part in (f_A, f_B) if part]


def algorithm_2_stability_pair_edge(question, s_1, s_2):
    """StabilityPairEdge: ρ_edge."""
    (a_1,), (a_2,) = edge_parts(question, s_1), edge_parts(question, s_2)
    return 1 - distance(a_1, a_2)


def algorithm_3_stability_pair_feature(question, f_1, f_2):
    """StabilityPairFeature: ρ_feat. Reading: where one of the two parts is not there, the other
    alone.
    """
    d = [
        distance(a, b)
        for a, b in zip(feature_parts(question, f_1), feature_parts(question, f_2), strict=True)
    ]
    return 1 - average(d)


def algorithm_1_stability(question, pairs):
    """Stability over pairs ((f_1, s_1), (f_2, s_2)).

    -> the two averages (edges: None where there are none), trials, reasons
    """
    L_feat, L_edge, pairs = [], [], iter(pairs)
    has_edges = bool(question.e_rel)
    stop = lambda values: early_stop(values, question.settings)  # noqa: E731
    while not (stop(L_feat) and (stop(L_edge) if has_edges else True)):
        (f_1, s_1), (f_2, s_2) = next(pairs)
        L_feat.append(algorithm_3_stability_pair_feature(question, f_1, f_2))
        if has_edges:
            L_edge.append(algorithm_2_stability_pair_edge(question, s_1, s_2))
    averages = {"feature": average(L_feat), "edge": average(L_edge) if has_edges else None}
    return (
        averages,
        len(L_feat),
        {"feature": stop(L_feat), "edge": stop(L_edge) if has_edges else None},
    )


def all_pairs(values, likeness):
    """The binomial form: mean over all pairs of M explanations, and the jackknife's standard error
    over explanations.
    """
    M = len(values)
    table = {(i, j): likeness(values[i], values[j]) for i in range(M) for j in range(i + 1, M)}
    without = [
        average([value for pair, value in table.items() if left not in pair]) for left in range(M)
    ]
    centre = average(without)
    return average(list(table.values())), math.sqrt(
        (M - 1) / M * math.fsum((value - centre) ** 2 for value in without)
    )


def chance(parts_of_pairs, draw):
    """Mean likeness once the second of each pair is permuted inside the joint support, part by
    part; None: nothing to permute.

    ``draw(n)`` gives 0..n-1 in a random order.
    """
    apart, most = [], 0
    for pairs in zip(*parts_of_pairs, strict=True):  # first f_A of all pairs, then f_B
        d = []
        for a, b in pairs:
            places = [k for k in range(len(a)) if a[k] != 0 or b[k] != 0]
            moved, most = list(b), max(most, len(places))
            for k, other in zip(places, draw(len(places)), strict=True):
                moved[k] = b[places[other]]
            d.append(distance(a, moved))
        apart.append(d)
    found = [1 - average(both) for both in zip(*apart, strict=True)]
    return average(found) if most > 1 else None


def corrected(S, S_0):
    """(S - S_0) / (1 - S_0); None where chance is 1."""
    return None if S_0 is None or 1 - S_0 <= 1e-6 else (S - S_0) / (1 - S_0)
