"""Every equation and algorithm of the paper by its name: what the Evaluator gives, against
`literal`.
"""

import os
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from statistics import pstdev

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, SAGEConv
from zoo import FEATURES, EncodeDecode, LinkForward, Pooled, Stack, build, graphs, random_graph

import graphgauge as gg
from evaluation import literal
from graphgauge.core.seeds import derive_seed, make_generator
from graphgauge.evaluation import Settings
from graphgauge.evaluation.settings import _CHOICES
from graphgauge.evaluation.stability import _pair_schedule, _permutation_seed
from graphgauge.perturbation import draw_donors, find_references, random_orders
from graphgauge.perturbation.edit_orders import draw_uniform

LAYERS = {"GCN": GCNConv, "GAT": GATConv, "SAGE": SAGEConv}
FEW = {
    "trials": (3, 6),
    "twin_trials": 4,
    "feature_trials": 3,
    "cap": 7,
    "tau": 0.4,
    "permutations": 3,
    "timed": 0,
}
CLOSE = 1e-12
DEVICE = os.environ.get("GRAPHGAUGE_TEST_DEVICE", "cpu")  # what --device says

pytestmark = pytest.mark.numeric


# --- models, and how their networks are asked on the whole graph ----------------------------------


@dataclass
class Task:
    """A model of one kind, some targets, and the network asked for one target: (net, x, edge_index)
    -> prediction.
    """

    model: gg.BaseModel
    targets: list
    ask: object  #: target -> asking function
    hops: int = 2
    answers: dict = field(
        default_factory=dict
    )  #: predictions of edited graphs; they depend on no other setting than the removal

    def data(self, target):
        return self.model.data[target] if self.model.level == "graph" else self.model.data

    def ends(self, target):
        return {"node": (target,), "link": target, "graph": ()}[self.model.level]

    @cached_property
    def spread(self):
        """SD of the predictions over the population: all nodes; all graphs; stored links and as
        many others.
        """
        if self.model.task == "classification":
            return None
        everything = [
            tuple(t) if isinstance(t, list) else t for t in self.model.population().tolist()
        ]
        return pstdev(
            literal.run(self.model.net, self.ask(t), *inputs(self.data(t))).item()
            for t in everything
        )

    def question(self, target, chosen):
        known = self.answers.setdefault((target, chosen.edge_removal), {})
        basis = self.model.net, self.data(target), self.ask(target), self.ends(target)
        return literal.Question(*basis, self.hops, chosen, self.spread, known)


def inputs(data):
    return data.x, data.edge_index


def pair(t):
    return torch.tensor([t], device=DEVICE).t()


def built(*args, **kwargs):
    return build(*args, **kwargs).to(DEVICE)


def placed_graphs(given):
    """The graphs of a list; of one graph, six others in its place."""
    return [graph.to(DEVICE) for graph in (given if isinstance(given, list) else many_graphs())]


def probabilities(logit):
    return torch.stack([1 - logit.sigmoid(), logit.sigmoid()])


def node_classes(layer, data, **options):
    model = gg.NodeClassificationModel(
        built(Stack, layer, seed=2, dtype=torch.float64),
        data.to(DEVICE),
        output="logits",
        **options,
    )
    return Task(model, [3, 8, 29], lambda t: lambda net, x, e: net(x, e)[t].softmax(0))


def node_values(layer, data, **options):
    model = gg.NodeRegressionModel(
        built(Stack, layer, out=1, dtype=torch.float64), data.to(DEVICE), **options
    )
    return Task(model, [3, 8], lambda t: lambda net, x, e: net(x, e)[t, 0])


def link_existence(layer, data, **options):
    model = gg.LinkClassificationModel(
        built(EncodeDecode, layer, seed=9, dtype=torch.float64),
        data.to(DEVICE),
        output="logits",
        **options,
    )
    return Task(
        model,
        [(0, 5), (7, 29)],
        lambda t: lambda net, x, e: probabilities(net.decode(net.encode(x, e), pair(t))[0]),
    )


def link_classes(layer, data, **options):
    model = gg.LinkClassificationModel(
        built(LinkForward, layer, seed=9, dtype=torch.float64),
        data.to(DEVICE),
        output="logits",
        **options,
    )
    return Task(
        model, [(2, 9), (29, 28)], lambda t: lambda net, x, e: net(x, e, pair(t))[0].softmax(0)
    )


def link_values(layer, data, **options):
    model = gg.LinkRegressionModel(
        built(LinkForward, layer, out=1, dtype=torch.float64), data.to(DEVICE), **options
    )
    return Task(model, [(2, 9), (4, 5)], lambda t: lambda net, x, e: net(x, e, pair(t))[0, 0])


def many_graphs():
    """Six graphs whose features differ in their means, so that predictions differ."""
    many = [random_graph(5 + seed, 8 + seed, seed=seed, dtype=torch.float64) for seed in range(6)]
    for seed, graph in enumerate(many):
        graph.x = graph.x + 2 * torch.randn(
            FEATURES, generator=make_generator(seed), dtype=torch.float64
        )
    return many


def graph_classes(layer, data, **options):
    net = built(Pooled, layer, seed=1, dtype=torch.float64)
    model = gg.GraphClassificationModel(net, placed_graphs(data), output="logits", **options)
    return Task(model, [0, 2, 5], lambda t: lambda net, x, e: net(x, e)[0].softmax(0))


def graph_values(layer, data, **options):
    model = gg.GraphRegressionModel(
        built(Pooled, layer, out=1, dtype=torch.float64), placed_graphs(data), **options
    )
    return Task(model, [1, 3], lambda t: lambda net, x, e: net(x, e)[0, 0])


TASKS = {
    make.__name__: make
    for make in (
        node_classes,
        node_values,
        link_existence,
        link_classes,
        link_values,
        graph_classes,
        graph_values,
    )
}


# --- what is drawn, by the seeds of the Evaluator -------------------------------------------------


@dataclass
class Reference:
    """A reference of a target: φ as the features each node gets, random orders, the side it lies on
    and where values should go.
    """

    phi: dict
    more: list  #: φ of the further draws
    orders: list
    choosing: list
    kind: int
    pull: int

    @property
    def as_given(self):
        return self.phi, self.orders, self.pull


@dataclass
class Drawn:
    """What the Evaluator draws for one target: nothing of it is computed from an explanation."""

    evaluator: gg.Evaluator
    target: object

    @cached_property
    def graph(self):
        return self.evaluator.model.computation_graphs(
            [self.target], self.evaluator.settings.edge_scope
        )

    @property
    def number(self):
        chosen = self.evaluator.settings
        return max(chosen.trials[1], chosen.twin_trials)

    def orders(self, count, seed, number):
        found = random_orders(torch.tensor([count]), [seed], self.evaluator.settings.cap, 0, number)
        return [[k for k in order if k >= 0] for order in found[0].tolist()]

    def ties(self, count, side):
        return draw_uniform(
            derive_seed(self.evaluator.seed_of(self.target, side), "ties"), count
        ).tolist()

    def edge_orders(self, count):
        return self.orders(count, self.evaluator.seed_of(self.target, "edges"), self.number)

    def twin_orders(self, question, order):
        """The order with its candidates renamed inside their blocks, once for each trial; of one
        block: any order.
        """
        seed, width = (
            self.evaluator.seed_of(self.target, "features", "twins"),
            question.data.num_features,
        )
        if len(order) == width and question.settings.direction != "towards_reference":
            order = range(width)
        found = []
        for trial in range(question.settings.feature_trials):
            drawn = draw_uniform(
                derive_seed(seed, "within blocks", trial), len(order) // width, width
            ).tolist()
            names = [
                block * width + j
                for block, row in enumerate(drawn)
                for j in sorted(range(width), key=row.__getitem__)
            ]
            found.append(literal.within_blocks(order, names))
        return found

    def references(self, count, question):
        """All candidates, by kind."""
        model, chosen = self.evaluator.model, self.evaluator.settings
        found = find_references(model, [self.target], chosen.medoids)
        seed = lambda ref, purpose: self.evaluator.seed_of(self.target, "features", ref, purpose)  # noqa: E731
        purposes = ["map", *(f"map {draw}" for draw in range(1, chosen.draws))]
        maps = [
            draw_donors(self.graph, found, [seed(ref, purpose) for ref in found.ids()])
            for purpose in purposes
        ]
        nodes = self.graph[0].nodes.tolist()
        listed = []
        for q, ref in enumerate(found.ids()):
            phi, *more = (
                dict(
                    zip(
                        nodes,
                        model.source.x[lent.node[lent.ptr[q] : lent.ptr[q + 1]]].tolist(),
                        strict=True,
                    )
                )
                for lent in maps
            )
            kind = int(found.kind[q])
            if model.task == "regression" and kind != {"up": 1, "down": -1}.get(
                chosen.direction, kind
            ):
                continue
            listed.append(
                Reference(
                    phi=phi,
                    more=more,
                    orders=self.orders(count, seed(ref, "orders"), self.number),
                    choosing=self.orders(count, seed(ref, "choice"), 20)
                    if chosen.medoids > 1
                    else [],
                    kind=kind,
                    pull=literal.way_of(question, kind),
                )
            )
        return listed

    @property
    def stability_seed(self):
        evaluator = self.evaluator
        return derive_seed(evaluator.seed, *evaluator.seed_scope, 0)

    def explanations(self, explainer, count, start=0):
        xs = explainer.explain(
            self.evaluator.model,
            [self.target] * count,
            seed=derive_seed(self.stability_seed, "stability", start),
        )
        return list(map(scores_of, xs))

    def pairs(self, explainer):
        start = 0
        for end in _pair_schedule(self.evaluator.settings):
            xs = self.explanations(explainer, 2 * (end - start), start)
            yield from zip(xs[0::2], xs[1::2], strict=True)
            start = end

    def permuting(self, side, turned=0):
        """Random orders, one after another; or one turned by so many random steps."""
        random, left = make_generator(_permutation_seed(self.stability_seed, self.target, side)), []

        def draw(size):
            if not left:
                order = torch.randperm(size, generator=random).tolist()
                steps = (
                    torch.randint(size, (turned,), generator=random).tolist()
                    if turned and size
                    else [0] * max(turned, 1)
                )
                left.extend(order[step:] + order[:step] for step in steps)
            return left.pop(0)

        return draw


def scores_of(x):
    """The matrix f (n, m) and the vector s (|E|,) over the whole graph."""
    return x.feature_matrix().tolist(), x.edge_vector().tolist()


# --- both sides of every comparison ---------------------------------------------------------------


@dataclass
class Study:
    """One model evaluated by the library, and what is needed to evaluate it by the letter."""

    task: Task
    evaluator: gg.Evaluator
    explainers: dict

    @cached_property
    def xs(self):
        chosen = self.task.targets, self.evaluator.seed
        found = {
            name: e.explain(self.task.model, chosen[0], seed=chosen[1])
            for name, e in self.explainers.items()
        }
        return {(name, x.target): (*scores_of(x), x.seed) for name, xs in found.items() for x in xs}

    @cached_property
    def results(self):
        return self.evaluator.compare(self.explainers, self.task.targets)

    @cached_property
    def cells(self):
        return {(row.explainer, row.target, row.metric): row.cell for row in self.results.rows}

    @cached_property
    def questions(self):
        return {t: self.task.question(t, self.evaluator.settings) for t in self.task.targets}

    @cached_property
    def drawn(self):
        return {t: Drawn(self.evaluator, t) for t in self.task.targets}

    @cached_property
    def references(self):
        """The references that are used: with several medoids of a kind, the easiest."""
        return {t: self.references_of(t) for t in self.task.targets}

    def references_of(self, target):
        question = self.questions[target]
        size = len(literal.priority_vector(question, self.anything(target)))
        candidates = self.drawn[target].references(size, question)
        kinds = sorted({ref.kind for ref in candidates})
        used = []
        for kind in kinds:
            own = [ref for ref in candidates if ref.kind == kind]
            used.append(
                own[
                    literal.easiest(question, [(ref.phi, ref.choosing, ref.pull) for ref in own])
                    if len(own) > 1
                    else 0
                ]
            )
        return used

    def anything(self, target):
        """Some feature scores, for their size."""
        return next(f for (_, t), (f, _, _) in self.xs.items() if t == target)

    def edges(self):
        """Explanations with an edge side: name, target, question, s, ties, permutations."""
        for (name, target), (_, s, _) in self.xs.items():
            question = self.questions[target]
            count = len(question.units)
            if count:
                yield (
                    name,
                    target,
                    question,
                    s,
                    self.drawn[target].ties(count, "edges"),
                    self.drawn[target].edge_orders(count),
                )

    def features(self):
        """Explanations with references: name, target, question, f, ties, references."""
        for (name, target), (f, _, seed) in self.xs.items():
            question, references = self.questions[target], self.references[target]
            if name == "random":  # the baseline is a random order of the candidates themselves
                size = len(literal.priority_vector(question, f))
                found_seed = self.evaluator.seed_of(target, "candidates", seed, 0)
                f = literal.Candidates(draw_uniform(found_seed, size).tolist())
            if references:
                yield (
                    name,
                    target,
                    question,
                    f,
                    self.drawn[target].ties(len(literal.priority_vector(question, f)), "features"),
                    references,
                )

    def cell(self, name, target, metric):
        return self.cells[name, target, metric]


@cache
def made(task, layer):
    """One model for all studies."""
    data = random_graph(30, 60, dtype=torch.float64)
    data.x = 2 * data.x  # so that several classes are predicted
    return TASKS[task](LAYERS[layer], data)


@cache
def study(task, layer, preset="paper", explainers=("random", "input_x_gradient"), **changed):
    """A model evaluated with few trials."""
    evaluator = gg.Evaluator(
        made(task, layer).model, preset, seed=5, task="t", name="n", **{**FEW, **changed}
    )
    return Study(
        made(task, layer), evaluator, {name: gg.find_explainer(name) for name in explainers}
    )


every_task = pytest.mark.parametrize(
    ("task", "layer"), [(task, layer) for task in TASKS for layer in LAYERS]
)


def check_ec_edge(found):
    for name, target, question, s, ties, _ in found.edges():
        cell, order = found.cell(name, target, "edge_ec"), literal.edge_order(question, s, ties)
        assert cell.value == literal.algorithm_4_ec_edge(question, s, ties)
        assert cell.flipped == literal.ever_changed(
            question, order, literal.remove_edge, literal.way_of(question, 0)
        )
        assert cell.per_reference == (cell.value,)


def check_ec_feature(found):
    for name, target, question, f, ties, references in found.features():
        cell, draws = found.cell(name, target, "feature_ec"), found.evaluator.settings.draws
        counts, flips = [], []
        for ref in references:
            order, phis = literal.feature_order(question, f, ties, ref.pull), [ref.phi, *ref.more]
            _, each = literal.algorithm_5_ec_feature(
                question, f, ties, [(phi, ref.pull) for phi in phis]
            )
            flipped = [
                literal.ever_changed(question, order, literal.substituting(phi), ref.pull)
                for phi in phis
            ]
            counts.append(each)
            flips.append(sum(flipped) / draws >= 0.5)
        means = [literal.average(each) for each in counts]
        assert cell.value == pytest.approx(min(means), abs=CLOSE)
        assert cell.per_reference == pytest.approx(means, abs=CLOSE)
        assert cell.flipped == any(
            flip for flip, mean in zip(flips, means, strict=True) if mean == min(means)
        )
        assert cell.draws == (None if draws == 1 else tuple(counts[means.index(min(means))]))


def check_pertinence_edge(found):
    for name, target, question, s, ties, permutations in found.edges():
        cell, ec = (
            found.cell(name, target, "edge_pertinence"),
            literal.algorithm_4_ec_edge(question, s, ties),
        )
        value, trials, reason = literal.algorithm_6_pertinence_edge(
            question, s, ec, ties, permutations
        )
        assert (cell.trials, cell.stop) == ((trials,), (reason,))
        assert abs(cell.value - value) <= CLOSE


def check_pertinence_feature(found):
    settings = found.evaluator.settings
    for name, target, question, f, ties, references in found.features():
        cell = found.cell(name, target, "feature_pertinence")
        ec, _ = literal.algorithm_5_ec_feature(
            question, f, ties, [(ref.phi, ref.pull) for ref in references]
        )
        given = [ref.as_given for ref in references]
        if settings.random_orders == "blocks" and settings.twins:
            orders = [literal.feature_order(question, f, ties, ref.pull) for ref in references]
            twins = [found.drawn[target].twin_orders(question, order) for order in orders]
            given = [(ref.phi, own, ref.pull) for ref, own in zip(references, twins, strict=True)]
            fewest = tuple(min(number, settings.feature_trials) for number in settings.trials)
            question = replace(question, settings=replace(settings, trials=fewest))
        value, each = literal.algorithm_7_pertinence_feature(question, f, ec, ties, given)
        assert cell.trials == tuple(trials for _, trials, _ in each)
        assert cell.stop == tuple(reason for _, _, reason in each)
        assert cell.per_reference == pytest.approx([own for own, _, _ in each], abs=CLOSE)
        assert abs(cell.value - value) <= CLOSE


def check_twins(found):
    number = found.evaluator.settings.twin_trials
    for name, target, question, s, ties, permutations in found.edges():
        order, way = literal.edge_order(question, s, ties), literal.way_of(question, 0)
        case = literal.twins_of_case(
            question, order, literal.remove_edge, permutations[:number], way
        )
        check_same(found, name, target, "edge", literal.twins_of_cases([case], question.tolerance))
    for name, target, question, f, ties, references in found.features():
        cases = []
        for ref in references:
            order = literal.feature_order(question, f, ties, ref.pull)
            orders = found.drawn[target].twin_orders(question, order)
            cases.append(
                literal.twins_of_case(
                    question, order, literal.substituting(ref.phi), orders, ref.pull
                )
            )
        check_same(
            found, name, target, "feature", literal.twins_of_cases(cases, question.tolerance)
        )


def check_same(found, name, target, side, wanted):
    twins = {
        metric
        for *own, metric in found.cells
        if own == [name, target] and metric.startswith(f"{side}_pertinence_")
    }
    assert twins == {f"{side}_pertinence_{twin}" for twin in wanted}
    for twin, value in wanted.items():
        assert abs(found.cell(name, target, f"{side}_pertinence_{twin}").value - value) <= CLOSE


def check_gaps(found):
    """Nothing has a value that should have none."""
    for (name, target, metric), cell in found.cells.items():
        if metric.startswith(("edge_ec", "edge_pertinence")):
            assert cell.status == ("ok" if found.questions[target].units else "empty"), (
                name,
                target,
                metric,
            )
        if metric.startswith(("feature_ec", "feature_pertinence")):
            assert cell.status == ("ok" if found.references[target] else "no_reference"), (
                name,
                target,
                metric,
            )


def check_curves(found):
    """All that comes from curves."""
    for check in (
        check_gaps,
        check_ec_edge,
        check_ec_feature,
        check_pertinence_edge,
        check_pertinence_feature,
    ):
        check(found)
    if found.evaluator.settings.twins:
        check_twins(found)


# --- Stability ------------------------------------------------------------------------------------


def likeness(question, side):
    """ρ_edge or ρ_feat of two (f, s)."""
    if side == "edge":
        return lambda a, b: literal.algorithm_2_stability_pair_edge(question, a[1], b[1])
    return lambda a, b: literal.algorithm_3_stability_pair_feature(question, a[0], b[0])


def alike(one, other):
    """The same cell: bit for bit on a CPU, within 1e-12 on a GPU, which adds up in any order."""
    if DEVICE == "cpu":
        return one == other
    numbers = [[cell.value, cell.error, *(cell.per_reference or ())] for cell in (one, other)]
    rest = [(cell.status, cell.trials, cell.stop, cell.flipped) for cell in (one, other)]
    return rest[0] == rest[1] and not any(differ(a, b) for a, b in zip(*numbers, strict=True))


def parts_of(question, side, a, b):
    """The parts of two (f, s) that are permuted apart."""
    parts, k = (literal.edge_parts, 1) if side == "edge" else (literal.feature_parts, 0)
    return list(zip(parts(question, a[k]), parts(question, b[k]), strict=True))


def check_corrected(cell, wanted):
    assert cell.status == ("constant" if wanted is None else "ok")
    assert wanted is None or abs(cell.value - wanted) <= CLOSE


def check_stability(found, name):
    """Algorithm 1 and its corrected twin."""
    explainer, chosen = found.explainers[name], found.evaluator.settings
    for target, question in found.questions.items():
        averages, trials, reasons = literal.algorithm_1_stability(
            question, found.drawn[target].pairs(explainer)
        )
        first = list(found.drawn[target].pairs(explainer))[: _pair_schedule(chosen)[0]]
        for side, value in averages.items():
            cell, twin = (
                found.cell(name, target, f"{side}_stability"),
                found.cell(name, target, f"{side}_stability_corrected"),
            )
            if value is None:
                assert cell.status == twin.status == "empty"
                continue
            assert (cell.trials, cell.stop) == ((trials,), (reasons[side],))
            assert abs(cell.value - value) <= CLOSE
            again = [first[k % len(first)] for k in range(chosen.permutations)]
            draw = found.drawn[target].permuting(
                side, chosen.permutations if len(first) == 1 else 0
            )
            chance = literal.chance([parts_of(question, side, *pair) for pair in again], draw)
            check_corrected(twin, literal.corrected_p(value, chance))


def check_stability_of_all_pairs(found, name):
    """The binomial form and its corrected twin."""
    explainer, chosen = found.explainers[name], found.evaluator.settings
    for target, question in found.questions.items():
        made = found.drawn[target].explanations(explainer, chosen.calls)
        for side in ("feature", "edge") if question.e_rel else ("feature",):
            cell, twin = (
                found.cell(name, target, f"{side}_stability"),
                found.cell(name, target, f"{side}_stability_corrected"),
            )
            value, error = literal.all_pairs(made, likeness(question, side))
            assert (cell.trials, cell.stop) == ((chosen.calls,), ("binomial",))
            assert abs(cell.value - value) <= CLOSE
            assert abs(cell.error - error) <= CLOSE
            neighbours = [
                (made[k % chosen.calls], made[(k + 1) % chosen.calls])
                for k in range(chosen.permutations)
            ]
            chance = literal.chance(
                [parts_of(question, side, *two) for two in neighbours],
                found.drawn[target].permuting(side),
            )
            check_corrected(twin, literal.corrected_p(value, chance))


@every_task
def test_algorithm_1_stability(task, layer):
    check_stability(study(task, layer), "random")


@every_task
def test_algorithm_2_stability_pair_edge(task, layer):
    found = study(task, layer, trials=(1, 1), explainers=("random",))  # one pair
    for target, question in found.questions.items():
        if question.e_rel:
            ((_, s_1), (_, s_2)) = next(found.drawn[target].pairs(found.explainers["random"]))
            wanted = literal.algorithm_2_stability_pair_edge(question, s_1, s_2)
            assert abs(found.cell("random", target, "edge_stability").value - wanted) <= CLOSE


@every_task
def test_algorithm_3_stability_pair_feature(task, layer):
    found = study(task, layer, trials=(1, 1), explainers=("random",))
    for target, question in found.questions.items():
        ((f_1, _), (f_2, _)) = next(found.drawn[target].pairs(found.explainers["random"]))
        wanted = literal.algorithm_3_stability_pair_feature(question, f_1, f_2)
        assert abs(found.cell("random", target, "feature_stability").value - wanted) <= CLOSE


@every_task
def test_equation_stability_edge(task, layer):
    found = study(task, layer)
    for target, question in found.questions.items():
        if question.e_rel:
            cell = found.cell("random", target, "edge_stability")
            pairs = list(found.drawn[target].pairs(found.explainers["random"]))[: cell.trials[0]]
            E_rel = question.e_rel
            rho = []
            for (_, s_1), (_, s_2) in pairs:
                a, b = torch.tensor(
                    [[s[e] for e in E_rel] for s in (s_1, s_2)], dtype=torch.float64
                )
                rho.append(1 - float((a / a.norm() - b / b.norm()).norm()) / 2)
            assert abs(cell.value - sum(rho) / len(pairs)) <= CLOSE


@every_task
def test_equation_stability_feature(task, layer):
    found = study(task, layer)
    for target, question in found.questions.items():
        cell = found.cell("random", target, "feature_stability")
        pairs = list(found.drawn[target].pairs(found.explainers["random"]))[: cell.trials[0]]
        rho = []
        for (f_1, _), (f_2, _) in pairs:
            d = []
            for nodes in (list(question.ends), question.v_neigh):
                if nodes:
                    a, b = (torch.tensor(f, dtype=torch.float64)[nodes] for f in (f_1, f_2))
                    d.append(float((a / a.norm() - b / b.norm()).norm()) / 2)
            rho.append(1 - sum(d) / len(d))
        assert abs(cell.value - sum(rho) / len(pairs)) <= CLOSE


@pytest.mark.parametrize("layer", LAYERS)
def test_stability_of_a_learned_explainer_and_of_one_that_always_says_the_same(layer):
    found = study("node_classes", layer, explainers=("input_x_gradient",))
    learned = replace(
        found,
        explainers={
            "gnn_explainer": gg.GNNExplainer(epochs=3),
            "input_x_gradient": gg.InputXGradient(),
        },
    )
    check_stability(learned, "gnn_explainer")
    for target, question in found.questions.items():
        for side in ("feature", "edge") if question.e_rel else ("feature",):
            cell = learned.cell("input_x_gradient", target, f"{side}_stability")
            assert (cell.trials, cell.stop) == ((1,), ("deterministic",))
            assert cell.value == (
                1.0 if DEVICE == "cpu" else pytest.approx(1.0, abs=CLOSE)
            )  # a GPU adds up in any order


# --- Effective Compactness and Pertinence ---------------------------------------------------------


@every_task
def test_algorithm_4_ec_edge(task, layer):
    check_ec_edge(study(task, layer))


@every_task
def test_algorithm_5_ec_feature(task, layer):
    check_ec_feature(study(task, layer))


@every_task
def test_algorithm_6_pertinence_edge(task, layer):
    check_pertinence_edge(study(task, layer))


@every_task
def test_algorithm_7_pertinence_feature(task, layer):
    check_pertinence_feature(study(task, layer))


@every_task
def test_equation_ec_edge(task, layer):
    found = study(task, layer)
    for name, target, question, s, ties, _ in found.edges():
        order = literal.edge_order(question, s, ties)
        assert found.cell(name, target, "edge_ec").value == literal.equation_ec(
            question, order, literal.remove_edge
        )


@every_task
def test_equation_k_of_a_reference(task, layer):
    found = study(task, layer)
    for name, target, question, f, ties, references in found.features():
        order = literal.feature_order(question, f, ties)
        k = [
            literal.equation_ec(question, order, literal.substituting(ref.phi))
            for ref in references
        ]
        assert found.cell(name, target, "feature_ec").per_reference == tuple(k)


@every_task
def test_equation_ec_feature(task, layer):
    found = study(task, layer)
    for name, target, question, f, ties, references in found.features():
        order = literal.feature_order(question, f, ties)
        k = [
            literal.equation_ec(question, order, literal.substituting(ref.phi))
            for ref in references
        ]
        assert found.cell(name, target, "feature_ec").value == min(k)


@every_task
def test_equation_p_of_one_random_curve(task, layer):
    found = study(task, layer, trials=(1, 1), explainers=("random",))
    for name, target, question, s, ties, (first, *_) in found.edges():
        order = literal.edge_order(question, s, ties)
        K = literal.equation_ec(question, order, literal.remove_edge)
        curves = [
            literal.deletion_curve(question, one, K, literal.remove_edge) for one in (order, first)
        ]
        wanted = literal.equation_p(*curves, question.tolerance)
        assert abs(found.cell(name, target, "edge_pertinence").value - wanted) <= CLOSE


@every_task
def test_equation_pertinence_edge(task, layer):
    found = study(task, layer, early_stop="none", explainers=("random",))
    for name, target, question, s, ties, permutations in found.edges():
        wanted = literal.equation_pertinence_edge(
            question, s, ties, permutations[: FEW["trials"][1]]
        )
        cell = found.cell(name, target, "edge_pertinence")
        assert (cell.trials, cell.stop) == ((FEW["trials"][1],), ("most",))
        assert abs(cell.value - wanted) <= CLOSE


@every_task
def test_equation_pertinence_feature(task, layer):
    found = study(task, layer, early_stop="none", explainers=("random",))
    for name, target, question, f, ties, references in found.features():
        given_with = [(ref.phi, ref.orders[: FEW["trials"][1]], ref.pull) for ref in references]
        wanted = literal.equation_pertinence_feature(question, f, ties, given_with)
        assert abs(found.cell(name, target, "feature_pertinence").value - wanted) <= CLOSE


@every_task
def test_equation_calibrated_twins(task, layer):
    check_twins(study(task, layer))


@every_task
def test_explanations_have_no_value_only_where_there_is_nothing_to_edit(task, layer):
    check_gaps(study(task, layer))


# --- early stopping -------------------------------------------------------------------------------


def stops_of(found):
    """Every stop of the curves of a study, as the Evaluator told it."""
    return [stop for cell in found.cells.values() for stop in cell.stop or ()]


def test_equation_mean_convergence():
    found = study("node_classes", "SAGE", trials=(2, 9), tau=0.5, epsilon=0.0)
    check_curves(found)
    check_stability(found, "random")
    assert (
        {"decided", "most"}
        <= set(stops_of(found))
        <= {"decided", "most", "constant", "deterministic"}
    )


def test_equation_precision_tolerance():
    found = study("node_classes", "GAT", trials=(2, 9), tau=None, epsilon=0.3)
    check_curves(found)
    check_stability(found, "random")
    assert (
        {"precise", "most"}
        <= set(stops_of(found))
        <= {"precise", "most", "constant", "deterministic"}
    )


def test_early_stopping_begins_at_the_least_and_ends_at_the_most_number_of_trials():
    cells = study("node_classes", "GAT", trials=(4, 7)).cells.values()
    trials = {
        n
        for cell in cells
        for n, why in zip(cell.trials or (), cell.stop or (), strict=True)
        if why != "deterministic"
    }
    assert min(trials) == 4
    assert max(trials) == 7


def test_without_early_stopping_all_trials_are_made():
    found = study(
        "node_values", "GCN", early_stop="none", trials=(2, 5), epsilon=2.0
    )  # all means are precise
    check_curves(found)
    check_stability(found, "random")
    assert set(stops_of(found)) == {"most", "deterministic"}


def test_trials_of_every_stage_are_counted_once():
    trials = set()
    for epsilon in (0.11, 0.15):
        found = study("node_classes", "GCN", trials=(2, 45), tau=None, epsilon=epsilon, cap=3)
        check_curves(found)
        check_stability(found, "random")
        trials |= {n for cell in found.cells.values() for n in cell.trials or ()}
    assert all(
        any(a < n <= b for n in trials) for a, b in ((0, 4), (4, 14), (14, 34), (34, 45))
    )  # 4: the twins'


# --- settings -------------------------------------------------------------------------------------

VARIANTS = {
    "drop": {"edge_removal": "drop"},
    "induced": {"edge_scope": "induced"},
    "induced, drop": {"edge_scope": "induced", "edge_removal": "drop"},
    "undirected": {"removal_unit": "undirected"},
    "undirected, drop, magnitude": {
        "removal_unit": "undirected",
        "edge_removal": "drop",
        "order": "magnitude",
    },
    "magnitude": {"order": "magnitude"},
    "sum": {"pooling": "sum"},
    "mean": {"pooling": "mean"},
    "abs_max": {"pooling": "abs_max"},
    "long curves": {"cap": 30, "trials": (2, 3), "twin_trials": 2},
    "more twins than trials": {"trials": (2, 3), "twin_trials": 6},
    "no twins": {"twins": False, "cap": 30, "trials": (2, 3)},
    "rough": {"tolerance": 0.05},
}


LEVELS = ["node_classes", "link_values", "graph_classes"]


@pytest.mark.parametrize(
    ("task", "layer", "variant"),
    [
        (task, list(LAYERS)[(i + j) % 3], variant)
        for i, task in enumerate(LEVELS)
        for j, variant in enumerate(VARIANTS)
    ],
)
def test_every_setting_means_what_the_paper_or_the_specification_says(task, layer, variant):
    check_curves(study(task, layer, **VARIANTS[variant]))


@pytest.mark.parametrize("how", ["raw", "towards", "abs"])
@pytest.mark.parametrize("task", ["node_values", "link_values", "graph_values"])
def test_regression_curves_are_read_raw_towards_the_reference_or_by_their_change(task, how):
    check_curves(study(task, "SAGE", regression_curve=how, flip=0.5))


@pytest.mark.parametrize("direction", ["any", "down", "up", "towards_reference"])
@pytest.mark.parametrize("task", ["node_values", "link_values", "graph_values"])
def test_a_direction_decides_order_curve_and_ec_of_values_alike(task, direction):
    check_curves(study(task, "SAGE", direction=direction, flip=0.5, draws=2))


@pytest.mark.parametrize("task", ["node_classes", "link_existence", "graph_classes"])
def test_a_direction_is_of_values_only(task):
    cells = [study(task, "SAGE", direction=direction).cells for direction in ("paper", "up")]
    assert all(
        alike(cell, cells[1][key])
        for key, cell in cells[0].items()
        if not key[2].startswith("time")
    )


def test_any_direction_is_the_order_by_magnitude_and_the_curve_of_the_change():
    found = study("link_values", "SAGE", direction="any", explainers=("input_x_gradient",))
    by_hand = study(
        "link_values",
        "SAGE",
        order="magnitude",
        regression_curve="abs",
        explainers=("input_x_gradient",),
    )
    assert all(
        alike(cell, by_hand.cells[key])
        for key, cell in found.cells.items()
        if not key[2].startswith("time")
    )


@pytest.mark.parametrize("task", ["node_classes", "link_existence", "node_values"])
def test_the_ec_of_features_is_the_mean_over_the_draws_of_the_neighbours_map(task):
    found = study(task, "GCN", draws=4, early_stop="none", random_orders="blocks")
    check_curves(found)
    assert any(
        len(set(cell.draws)) > 1
        for (*_, metric), cell in found.cells.items()
        if metric == "feature_ec"
    )


@pytest.mark.parametrize("how", ["raw", "towards", "abs"])
@pytest.mark.parametrize("task", ["node_classes", "node_values"])
def test_a_story_counts_the_points_that_the_pertinence_counts(task, how):
    found, told = study(task, "SAGE", regression_curve=how, flip=0.5), 0
    for row in found.results.rows:
        if row.metric.endswith("_pertinence") and row.cell.status == "ok":
            for case, score in zip(
                found.results.explain(row).cases, row.cell.per_reference, strict=True
            ):
                assert case.won == pytest.approx(score, abs=CLOSE)
                assert case.won + case.tied + case.lost == pytest.approx(1, abs=CLOSE)
                told += 1
    assert told > 4


@pytest.mark.parametrize("task", ["node_classes", "node_values", "link_existence", "graph_classes"])
def test_the_calibrated_preset_takes_the_easiest_of_three_medoids_and_all_pairs_of_explanations(
    task,
):
    found = study(
        task,
        "SAGE",
        preset="calibrated",
        trials=(4, 4),
        cap=5,
        calls=4,
        explainers=("random",),
        permutations=5,
    )
    chosen = found.evaluator.settings
    assert (chosen.medoids, chosen.pooling, chosen.stability, chosen.early_stop) == (
        3,
        "sum",
        "binomial",
        "none",
    )
    check_curves(found)
    check_stability_of_all_pairs(found, "random")


def test_the_easiest_of_three_medoids_is_not_always_the_first():
    found = study(
        "node_classes",
        "SAGE",
        preset="calibrated",
        trials=(4, 4),
        cap=5,
        calls=4,
        explainers=("random",),
        permutations=5,
    )
    ranks = set()
    for target, used in found.references.items():
        everything = found.drawn[target].references(12, found.questions[target])
        ranks |= {
            [ref.phi for ref in everything if ref.kind == one.kind].index(one.phi) for one in used
        }
    assert len(ranks) > 1


@every_task
def test_without_twins_the_papers_numbers_are_the_same(task, layer):
    full = study(task, layer)
    short = study(task, layer, twins=False)
    assert {key for key in full.cells if key in short.cells} == set(short.cells)
    for key, cell in short.cells.items():
        if not key[2].startswith("time"):
            assert alike(cell, full.cells[key])


@pytest.mark.parametrize("layer", LAYERS)
def test_given_explanations_get_the_numbers_of_compare(layer):
    found = study("node_classes", layer)
    xs = [
        x
        for e in found.explainers.values()
        for x in e.explain(found.task.model, found.task.targets, seed=found.evaluator.seed)
    ]
    for row in found.evaluator.evaluate(xs).rows:
        if not row.metric.startswith("time"):
            assert alike(row.cell, found.cells[row.explainer, row.target, row.metric])


@pytest.mark.parametrize("task", ["node_classes", "link_values", "graph_classes"])
def test_no_number_depends_on_who_else_takes_part_or_on_groups_of_targets(task, monkeypatch):
    found = study(task, "SAGE")
    monkeypatch.setattr("graphgauge.evaluation.evaluator._MOST_HEIGHTS", 1)
    for target in found.task.targets[1:]:
        alone = found.evaluator.compare({"random": gg.RandomExplainer()}, [target]).rows
        for row in alone:
            if not row.metric.startswith("time"):
                assert alike(row.cell, found.cells["random", target, row.metric])
    for row in found.evaluator.compare(found.explainers, found.task.targets).rows:
        if not row.metric.startswith("time"):
            assert alike(row.cell, found.cells[row.explainer, row.target, row.metric])


@pytest.mark.parametrize("own", ["messages", "induced"])
def test_the_evaluators_scope_holds_whatever_the_models_is(own):
    other = {"messages": "induced", "induced": "messages"}[own]
    task = node_classes(GCNConv, random_graph(30, 60, dtype=torch.float64), edge_scope=own)
    found = Study(
        task,
        gg.Evaluator(task.model, seed=5, **{**FEW, "edge_scope": other}),
        {"random": gg.RandomExplainer()},
    )
    check_curves(found)
    check_stability(found, "random")


#: what to change, in which study, and which metrics may move then (others must not)
MOVES = {
    "edge_removal": ("node_classes", {"edge_removal": "drop"}, ["edge_ec", "edge_pertinence"]),
    "edge_scope": ("node_classes", {"edge_scope": "induced"}, ["edge_ec", "edge_pertinence"]),
    "removal_unit": ("link_values", {"removal_unit": "undirected"}, ["edge_ec", "edge_pertinence"]),
    "order": (
        "node_classes",
        {"order": "magnitude"},
        ["edge_ec", "edge_pertinence", "feature_ec", "feature_pertinence"],
    ),
    "cap": (
        "node_classes",
        {"cap": 3},
        ["edge_ec", "edge_pertinence", "feature_ec", "feature_pertinence"],
    ),
    "flip": (
        "link_values",
        {"flip": 2.0},
        ["edge_ec", "edge_pertinence", "feature_ec", "feature_pertinence"],
    ),
    "tolerance": (
        "node_classes",
        {"tolerance": 0.05},
        ["edge_ec", "edge_pertinence", "feature_ec", "feature_pertinence"],
    ),
    "regression_curve": (
        "link_values",
        {"regression_curve": "abs"},
        ["edge_pertinence", "feature_pertinence"],
    ),
    "pooling": ("node_classes", {"pooling": "sum"}, ["feature_ec", "feature_pertinence"]),
    "medoids": ("node_classes", {"medoids": 3}, ["feature_ec", "feature_pertinence"]),
    "trials": (
        "node_classes",
        {"trials": (4, 5)},
        ["edge_pertinence", "feature_pertinence", "edge_stability", "feature_stability"],
    ),
    "early_stop": (
        "node_classes",
        {"early_stop": "none"},
        ["edge_pertinence", "feature_pertinence", "edge_stab", "feature_stab"],
    ),
    "tau": (
        "node_classes",
        {"tau": None},
        ["edge_pertinence", "feature_pertinence", "edge_stability", "feature_stability"],
    ),
    "epsilon": (
        "node_classes",
        {"epsilon": 0.5},
        ["edge_pertinence", "feature_pertinence", "edge_stability", "feature_stability"],
    ),
    "twin_trials": ("node_classes", {"twin_trials": 2}, ["edge_pertinence_"]),
    "feature_trials": ("node_classes", {"feature_trials": 2}, ["feature_pertinence_"]),
    "random_orders": ("node_classes", {"random_orders": "blocks"}, ["feature_pertinence"]),
    "draws": ("link_existence", {"draws": 3}, ["feature_ec"]),
    "direction": (
        "link_values",
        {"direction": "down"},
        ["edge_ec", "edge_pertinence", "feature_ec", "feature_pertinence"],
    ),
    "stability": (
        "node_classes",
        {"stability": "binomial"},
        ["edge_stability", "feature_stability"],
    ),
    "calls": ("node_classes", {"calls": 4}, ["edge_stability", "feature_stability"]),
    "permutations": (
        "node_classes",
        {"permutations": 2},
        ["edge_stability_corrected", "feature_stability_corrected"],
    ),
}
STILL = {
    "sides",
    "twins",
    "timed",
    "extras",
    "top",
    "headline",
    "keep",
}  #: what is measured, timed, kept or shown; no number moves


def differ(a, b):
    return (a is None) != (b is None) or (a is not None and abs(a - b) > CLOSE)


@pytest.mark.parametrize("name", MOVES)
def test_every_setting_moves_the_numbers_that_it_is_about_and_no_others(name):
    task, changed, about = MOVES[name]
    base = {"stability": "binomial", "calls": 3} if name == "calls" else {}
    before, after = (study(task, "SAGE", **{**base, **own}).cells for own in ({}, changed))
    moved = {key[2] for key, cell in before.items() if differ(cell.value, after[key].value)} - {
        "time_batched"
    }
    assert moved
    assert all(metric.startswith(tuple(about)) for metric in moved)


def test_every_setting_is_known_to_move_numbers_or_not_to():
    assert {field.name for field in fields(Settings)} == MOVES.keys() | STILL
    assert MOVES.keys().isdisjoint(STILL)


def test_betting_stops_where_its_wealth_says():
    found = study(
        "node_classes",
        "GCN",
        early_stop="betting",
        trials=(3, 25),
        tau=0.5,
        explainers=("input_x_gradient",),
    )
    for name, target, question, s, ties, permutations in found.edges():
        order, cell = (
            literal.edge_order(question, s, ties),
            found.cell(name, target, "edge_pertinence"),
        )
        K = literal.equation_ec(question, order, literal.remove_edge)
        C_del, *C_rand = (
            literal.deletion_curve(question, one, K, literal.remove_edge)
            for one in (order, *permutations)
        )
        values = [literal.equation_p(C_del, curve, question.tolerance) for curve in C_rand]
        trials, reason = literal.betting(values[:25], 0.5)
        assert (cell.trials, cell.stop) == ((trials,), (reason,))
        assert abs(cell.value - literal.average(values[:trials])) <= CLOSE
    assert "decided" in stops_of(found)


# --- predictions that are no numbers --------------------------------------------------------------


class Frail(torch.nn.Module):
    """One layer that gives NaN to a node that receives nothing."""

    def __init__(self):
        super().__init__()
        self.net = build(Stack, SAGEConv, 1, seed=3, dtype=torch.float64)

    def forward(self, x, edge_index):
        received = torch.bincount(edge_index[1], minlength=len(x)).to(x)[:, None]
        return self.net(x, edge_index) * (received / received)


def test_nan_is_held_against_those_explanations_only_that_meet_it():
    edges = torch.tensor([[v, (v + d) % 9] for v in range(9) for d in (1, 2, 3, 4)]).t()
    x = 2 * torch.randn(9, FEATURES, generator=make_generator(0), dtype=torch.float64)
    model = gg.NodeClassificationModel(Frail(), Data(x=x, edge_index=edges), output="logits")
    graph = model.computation_graphs([3])[0]
    scores = {
        f"made {k}": torch.randn(4, generator=make_generator(k), dtype=torch.float64)
        for k in range(10)
    }
    xs = {
        name: gg.Xplanation(
            3, graph.nodes, graph.edges, 9, edges.size(1), edge_score=score, explainer=name
        )
        for name, score in scores.items()
    }
    found = {}
    for twins in (True, False):
        evaluator = gg.Evaluator(model, edge_removal="drop", **{**FEW, "twins": twins})
        together = {
            (row.explainer, row.metric): row.cell
            for row in evaluator.evaluate(list(xs.values())).rows
        }
        for name, x in xs.items():
            x.metrics.clear()
            alone = {(name, row.metric): row.cell for row in evaluator.evaluate(x).rows}
            assert all(together[key] == cell for key, cell in alone.items())
        found[twins] = {name: together[name, "edge_pertinence"] for name in xs}
    assert found[True] == found[False]
    assert {cell.status for cell in found[True].values()} == {"ok", "nan_prediction"}
    assert all(
        together[name, "edge_ec"].status == "ok"
        for name, cell in found[True].items()
        if cell.status == "ok"
    )


# --- any graph ------------------------------------------------------------------------------------


@st.composite
def some_settings(draw):
    """Any settings that move curves, with few trials."""
    chosen = {
        name: draw(st.sampled_from(_CHOICES[name]))
        for name in (
            "edge_removal",
            "edge_scope",
            "removal_unit",
            "order",
            "regression_curve",
            "pooling",
        )
    }
    least = draw(st.integers(1, 3))
    chosen |= {
        "trials": (least, draw(st.integers(least, 5))),
        "twin_trials": draw(st.integers(1, 4)),
        "timed": 0,
    }
    if chosen["regression_curve"] == "raw":
        chosen["direction"] = draw(st.sampled_from(_CHOICES["direction"]))
    chosen |= {"draws": draw(st.integers(1, 2)), "feature_trials": draw(st.integers(1, 4))}
    chosen["random_orders"] = draw(st.sampled_from(_CHOICES["random_orders"]))
    return chosen | {
        "cap": draw(st.integers(1, 9)),
        "tau": draw(st.sampled_from([None, 0.5])),
        "twins": draw(st.booleans()),
    }


@st.composite
def some_task(draw, name, layer):
    """A model of any graph or graphs, whose features may be 0 or 1 only, and one or two of its
    targets.
    """
    level = name.split("_")[0]
    data = draw(
        st.lists(graphs(), min_size=1, max_size=4)
        if level == "graph"
        else graphs(min_nodes=2 if level == "link" else 1)
    )
    if draw(st.booleans()):
        for graph in data if level == "graph" else [data]:
            graph.x = (graph.x > 0).to(graph.x)
    number = st.integers(0, (len(data) if level == "graph" else data.num_nodes) - 1)
    link = st.tuples(number, number).filter(lambda ends: ends[0] != ends[1])
    task = TASKS[name](LAYERS[layer], data)
    task.targets = draw(
        st.lists(link if level == "link" else number, min_size=1, max_size=2, unique=True)
    )
    return task


@every_task
@settings(max_examples=10)
@given(draw=st.data())
def test_all_of_it_holds_on_any_graph(task, layer, draw):
    own = draw.draw(some_task(task, layer), label="task")
    assume(
        own.spread is None or own.spread > 1e-3
    )  # of equal predictions, the flip band has no width
    evaluator = gg.Evaluator(
        own.model,
        seed=draw.draw(st.integers(0, 99)),
        **draw.draw(some_settings(), label="settings"),
    )
    found = Study(own, evaluator, {"random": gg.RandomExplainer(), "gradient": gg.InputXGradient()})
    check_curves(found)
    if evaluator.settings.twins:
        check_stability(found, "random")
