"""Studies of the literal metrics: one comparison by the Evaluator, and the same question asked on
the whole graph, point by point, with everything that the Evaluator draws by its seeds.
"""

import os
from dataclasses import dataclass, field
from functools import cache, cached_property
from statistics import pstdev

import torch
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

import graphgauge as gg
from graphgauge.core.seeds import derive_seed, make_generator
from graphgauge.evaluation.stability import _pair_schedule, _permutation_seed
from graphgauge.perturbation import draw_donors, find_references, random_orders
from graphgauge.perturbation.edit_orders import draw_uniform
from support import literal_metrics
from support.small_networks import (
    FEATURES,
    EncodeDecode,
    LinkForward,
    Pooled,
    Stack,
    build,
    random_graph,
)

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
    #: predictions of edited graphs; they depend on no other setting than the removal
    answers: dict = field(default_factory=dict)

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
            literal_metrics.run(self.model.net, self.ask(t), *inputs(self.data(t))).item()
            for t in everything
        )

    def question(self, target, chosen):
        known = self.answers.setdefault((target, chosen.edge_removal), {})
        basis = self.model.net, self.data(target), self.ask(target), self.ends(target)
        return literal_metrics.Question(*basis, self.hops, chosen, self.spread, known)


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
            found.append(literal_metrics.within_blocks(order, names))
        return found

    def references(self, count, question):
        """All candidates, by kind."""
        model, chosen = self.evaluator.model, self.evaluator.settings
        found = find_references(model, [self.target], chosen.medoids)

        def seed(reference, purpose):
            return self.evaluator.seed_of(self.target, "features", reference, purpose)

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
                    pull=literal_metrics.way_of(question, kind),
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
        size = len(literal_metrics.priority_vector(question, self.anything(target)))
        candidates = self.drawn[target].references(size, question)
        kinds = sorted({ref.kind for ref in candidates})
        used = []
        for kind in kinds:
            own = [ref for ref in candidates if ref.kind == kind]
            used.append(
                own[
                    literal_metrics.easiest(
                        question, [(ref.phi, ref.choosing, ref.pull) for ref in own]
                    )
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
                size = len(literal_metrics.priority_vector(question, f))
                found_seed = self.evaluator.seed_of(target, "candidates", seed, 0)
                f = literal_metrics.Candidates(draw_uniform(found_seed, size).tolist())
            if references:
                yield (
                    name,
                    target,
                    question,
                    f,
                    self.drawn[target].ties(
                        len(literal_metrics.priority_vector(question, f)), "features"
                    ),
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
