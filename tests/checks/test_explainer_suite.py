"""check_explainer passes explainers that are right and names what is wrong with others.

Defects of PyG's own explainers are among them.
"""

import sys
from copy import deepcopy
from dataclasses import dataclass, fields
from typing import ClassVar

import pytest
import torch
from support.small_networks import EncodeDecode, Pooled, Stack, build, random_graph
from torch import nn
from torch_geometric.explain import Explainer, GNNExplainer, GraphMaskExplainer
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

import graphgauge as gg
from graphgauge.checks import EXPLAINER_CHECKS, explainer_checks, explainer_toy_checks
from graphgauge.checks.explainer_trial import is_deeply_equal
from graphgauge.core.errors import BadModel, BadSetting, BadTarget, FailedCheck, UnknownName
from graphgauge.core.seeds import check_seed, make_generator
from graphgauge.explainers import EXPLAINERS
from graphgauge.explainers.base import Scores, zero_edge_scores, zero_feature_scores


@pytest.fixture(autouse=True)
def gradients_again():
    """Some explainers here leave gradients switched off."""
    yield
    torch.set_grad_enabled(True)


def good_model():
    return gg.NodeClassificationModel(build(Stack, GCNConv), random_graph())


MODELS = {
    "node": lambda: good_model(),
    "regression": lambda: gg.NodeRegressionModel(build(Stack, GATConv, out=1), random_graph()),
    "link": lambda: gg.LinkClassificationModel(
        build(EncodeDecode, SAGEConv), random_graph(), output="logits"
    ),
    "graph": lambda: gg.GraphClassificationModel(
        build(Pooled), [random_graph(5 + seed, 9, seed=seed) for seed in range(5)]
    ),
}
ON_ANY_MODEL = [
    name
    for name in EXPLAINER_CHECKS
    if name not in {check.__name__ for check in explainer_toy_checks.TOY_MODEL_CHECKS}
]


def outcome(explainer, name, model=None):
    (result,) = gg.check_explainer(explainer, model or good_model(), only=[name], on_fail="return")
    return result.status, result.reason


def failures(results):
    return {result.name for result in results if result.status == "failed"}


# --- what passes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("explainer", EXPLAINERS.values(), ids=EXPLAINERS)
def test_every_built_in_passes_and_the_checks_leave_no_trace(explainer):
    before = torch.get_rng_state()
    is_learned = "epochs" in {field.name for field in fields(explainer)}
    results = gg.check_explainer(explainer(**{"epochs": 20} if is_learned else {}), good_model())
    assert torch.equal(torch.get_rng_state(), before)
    assert [result.name for result in results] == list(EXPLAINER_CHECKS)
    assert sum(result.status == "passed" for result in results) >= 45
    assert all(result.reason for result in results if result.status != "passed")


@pytest.mark.parametrize(
    "model", [make for name, make in MODELS.items() if name != "node"], ids=lambda make: ""
)
def test_built_ins_pass_on_every_kind_of_model(model):
    for explainer in (gg.InputXGradient(), gg.RandomExplainer()):
        gg.check_explainer(explainer, model(), only=ON_ANY_MODEL)


def test_pygs_gnnexplainer_passes_through_the_adapter():
    results = gg.check_explainer(
        gg.PyGExplainer("GNNExplainer", {"epochs": 10}), good_model(), targets=[3, 17]
    )
    assert {result.status for result in results} == {"passed", "skipped"}


def test_an_explainer_without_scores_passes_with_what_can_be_said_of_it():
    @dataclass(frozen=True)
    class Sentence(gg.OtherTaskExplainer):
        name = "sentence"
        deterministic = True

        def outcome(self, model, target, seed):
            return f"{target} is what it is"

    results = gg.check_explainer(Sentence(), good_model())
    assert {result.reason for result in results if result.status == "skipped"} >= {
        "there are no scores"
    }
    assert sum(result.status == "passed" for result in results) >= 20


class LossWithout:
    """A function of an object that defines no ``==``: what masking each edge takes from the
    prediction, by `pred_copies`.
    """

    def __init__(self, weights):
        self.weights = weights

    def __call__(self, model, target):
        graphs = model.computation_graphs([target])
        of = torch.zeros(len(graphs[0].edges), dtype=torch.int64)

        def without(union):
            return union.with_mask((union.edge_row != union.copy[union.edge_copy]).to(union.x))

        return None, (
            model.pred_continuous([target]) - model.pred_copies(graphs, of, without)
        ) @ self.weights


WEIGHTS = torch.tensor([1.0, 0.5, 0.25, 0.125])


def test_an_explainer_whose_runs_make_different_numbers_of_calls_is_not_accused():
    """The engine plans copies anew once it knows what they take, so calls come and go between equal
    runs.
    """
    explainer = gg.CallableExplainer(LossWithout(WEIGHTS), name="loss without", deterministic=True)
    assert outcome(explainer, "network_is_untouched_by_failures") == ("passed", "")
    big = gg.NodeClassificationModel(build(Stack, GATConv), random_graph(300, 1500))
    assert outcome(explainer, "network_is_untouched_by_failures", big) == ("passed", "")


def test_swallowing_the_last_call_is_found_though_runs_differ():
    calls = LossWithout(WEIGHTS)

    def swallowing(model, target):
        zeros = torch.zeros(len(model.computation_graphs([target])[0].edges))
        try:
            return calls(model, target)
        except OSError:
            return None, zeros

    explainer = gg.CallableExplainer(swallowing, deterministic=True)
    check = ["network_is_untouched_by_failures"]
    (result,) = gg.check_explainer(explainer, good_model(), [0, 4, 9], only=check, on_fail="return")
    assert (result.status, "is swallowed" in result.reason) == ("failed", True)


def test_calls_that_are_never_made_again_are_a_remark_not_an_accusation():
    """Runs that get shorter each time never reach their last call again."""
    left = [40]

    def shorter(model, target):
        for _ in range(left[0]):
            model.net.convs[0](model.source.x, model.source.edge_index)
        left[0] -= 1
        return None, torch.ones(len(model.computation_graphs([target])[0].edges))

    status, reason = outcome(
        gg.CallableExplainer(shorter, deterministic=True), "network_is_untouched_by_failures"
    )
    assert (status, reason) == (
        "noted",
        "runs make different numbers of calls: no failure of the last one was tried",
    )


def test_an_explainer_that_holds_an_object_without_equality_can_travel():
    explainer = gg.CallableExplainer(LossWithout(WEIGHTS), name="loss without", deterministic=True)
    assert outcome(explainer, "explainer_can_travel") == ("passed", "")
    assert outcome(OwnTool(tool=Tool(2.0)), "explainer_can_travel") == ("passed", "")
    assert outcome(OwnTool(tool=Tool(2.0)), "params_rebuild_the_explainer") == ("passed", "")
    assert outcome(OwnTool(tool=Tool(2.0)), "explanations_say_how_they_were_made") == ("passed", "")


class Tool:
    """A plain class."""

    __slots__ = ("strength",)

    def __init__(self, strength):
        self.strength = strength


class LeakyTool(Tool):
    """Loses what it is on the way."""

    def __reduce__(self):
        return LeakyTool, (1.0,)

    def __deepcopy__(self, memo):
        return LeakyTool(self.strength + 1)


@dataclass(frozen=True)
class OwnTool(gg.InputXGradient):
    name = "own tool"
    tool: Tool = None


def test_an_object_that_comes_back_as_another_one_is_found():
    for name in ("explainer_can_travel", "params_rebuild_the_explainer"):
        assert outcome(OwnTool(tool=LeakyTool(2.0)), name)[0] == "failed"
    parts = {"a": [1.0, torch.ones(2)], "b": float("nan")}
    ring = [parts]
    ring.append(ring)
    assert is_deeply_equal(ring, deepcopy(ring))
    assert not is_deeply_equal(parts, {**parts, "a": [1.0, torch.zeros(2)]})
    assert not is_deeply_equal(Tool(1.0), Tool(2.0))
    assert not is_deeply_equal(Tool(1.0), LeakyTool(1.0))


# --- what does not: defects of PyG that are caught by name ----------------------------------------


def test_pygs_graphmask_fails_for_the_right_reasons():
    """Its feature mask is never trained, and neither are its gates if layer widths differ."""
    results = gg.check_explainer(
        gg.PyGExplainer("GraphMaskExplainer", {"epochs": 3}),
        good_model(),
        [3, 17],
        on_fail="return",
    )
    # a random start may be anywhere
    by_chance = {"decisive_feature_comes_first", "decisive_edge_comes_first"}
    assert failures(results) - by_chance == {
        "feature_scores_depend_on_the_model",
        "edge_scores_can_be_ranked",
    }
    reasons = {result.name: result.reason for result in results}
    assert "bit for bit the same for two networks" in reasons["feature_scores_depend_on_the_model"]
    assert "takes only" in reasons["edge_scores_can_be_ranked"]


def as_people_use_it(model, target, algorithm):
    """PyG's Explainer on the user's own network, without a copy."""
    explainer = Explainer(
        model.net,
        algorithm=algorithm,
        explanation_type="model",
        node_mask_type="attributes",
        edge_mask_type="object",
        model_config={
            "mode": "multiclass_classification",
            "task_level": "node",
            "return_type": "raw",
        },
    )
    found = explainer(model.source.x, model.source.edge_index, index=target)
    return found.node_mask, found.edge_mask


def graphmask():
    return GraphMaskExplainer(num_layers=2, epochs=2, log=False)


@dataclass(frozen=True)
class Naked(gg.BaseExplainer):
    """GraphMask outside of every guard."""

    name = "naked"
    signed = False
    deterministic = False

    def explain(self, model, targets, seed=0):
        return self.explain_in_session(model, targets, seed)

    def scores(self, model, graphs, seeds):
        feature, edge = zero_feature_scores(graphs), zero_edge_scores(graphs)
        for graph, seed in zip(graphs, seeds, strict=True):
            with torch.random.fork_rng():
                torch.manual_seed(seed)
                for_nodes, for_edges = as_people_use_it(model, graph.target, graphmask())
            feature[graph.node_slice][: len(graph.nodes)] = for_nodes[graph.nodes]
            edge[graph.edge_slice][: len(graph.edges)] = for_edges[graph.edges]
        return Scores(feature, edge)


#: what is wrong without a guard only: CallableExplainer, like the adapter, runs inside one that
#: undoes these
UNGUARDED = (
    "network_is_untouched",
    "predictions_stay_the_same",
    "gradient_mode_does_not_matter",
    "cached_layers_are_not_believed",
)


def test_graphmask_on_the_network_itself_is_caught_where_no_guard_undoes_it():
    """PyG's GraphMask leaves the user's network frozen and in explain mode."""
    for name in UNGUARDED:
        assert outcome(Naked(), name, plain_model())[0] == "failed"
    reason = outcome(Naked(), "network_is_untouched", plain_model())[1]
    # frozen, and conv.explain is still True
    assert ("tensor 0" in reason, "settings of convs.0" in reason) == (True, True)
    guarded = gg.CallableExplainer(
        lambda model, target: as_people_use_it(model, target, graphmask()), signed=False
    )
    for name in UNGUARDED:
        assert outcome(guarded, name, plain_model())[0] == "passed"
    assert outcome(guarded, "feature_scores_depend_on_the_model")[0] == "failed"


def plain_model():
    """Without stored self-loops, which GraphMask cannot count."""
    data = random_graph()
    data.edge_index = data.edge_index[:, data.edge_index[0] != data.edge_index[1]]
    return gg.NodeClassificationModel(build(Stack, GCNConv), data)


def test_pygs_loop_permutation_is_caught():
    """If every node stores a self-loop, PyG's edge mask is shifted."""
    raw = gg.CallableExplainer(
        lambda model, target: as_people_use_it(model, target, GNNExplainer(epochs=30)),
        signed=False,
        scope="whole graph",
    )
    status, reason = outcome(raw, "stored_loops_leave_scores_at_their_edges")
    assert (status, "is on top instead of edge 2" in reason) == ("failed", True)
    adapted = gg.PyGExplainer("GNNExplainer", {"epochs": 30})
    assert outcome(adapted, "stored_loops_leave_scores_at_their_edges")[0] == "passed"


def test_captums_blindness_for_functional_relu_is_caught():
    guided = gg.PyGExplainer("CaptumExplainer", {"attribution_method": "GuidedBackprop"})
    status, reason = outcome(guided, "kind_of_activation_does_not_matter")
    assert (status, "torch.nn.ReLU gives other scores" in reason) == ("failed", True)


def test_pygs_random_explainer_is_no_explainer():
    dummy = gg.PyGExplainer("DummyExplainer")
    for side in ("feature", "edge"):
        assert outcome(dummy, f"{side}_scores_depend_on_the_model")[0] == "failed"
        status, reason = outcome(gg.RandomExplainer(), f"{side}_scores_depend_on_the_model")
        assert (status, "as it should be" in reason) == ("noted", True)


# --- each check can fail --------------------------------------------------------------------------


@dataclass(frozen=True)
class Sloppy(gg.InputXGradient):
    """Does one thing wrong, when its explanations are made."""

    name = "sloppy"
    broken: str = ""

    def explain(self, model, targets, seed=0):
        if self.broken == "empty" and targets == []:
            targets = [0]
        if self.broken == "any seed":
            seed = 0
        try:
            # outside of the guard that `explain` is
            xs = self.explain_in_session(model, targets, check_seed(seed))
        except BadTarget:
            if self.broken != "any target":
                raise
            return []
        edit = EDITS.get(self.broken)
        return xs if edit is None else edit(xs)

    def scores(self, model, graphs, seeds):
        work = WORK.get(self.broken)
        return (
            super().scores(model, graphs, seeds)
            if work is None
            else work(super().scores, model, graphs, seeds)
        )


def each(edit):
    """An edit of explanations, one by one."""

    def run(xs):
        for x in xs:
            edit(x)
        return xs

    return run


def set_to(**values):
    def edit(x):
        for name, value in values.items():
            setattr(x, name, value(x) if callable(value) else value)

    return each(edit)


def shared(xs):
    memory = torch.rand(10000)
    for x in xs:
        x.edge_score = memory[: len(x.edges)]
    return xs


def first_without_edges(xs):
    xs[0].edge_score = None
    return xs


EDITS = {
    "fewer": lambda xs: xs[:-1],
    "reversed": lambda xs: xs[::-1],
    "level": set_to(level="graph"),
    "nodes": set_to(nodes=lambda x: x.nodes.flip(0)),
    "edges": set_to(edges=lambda x: x.edges.flip(0)),
    "sizes": set_to(num_edges=10**6),
    "width": set_to(feature_score=lambda x: x.feature_score[:, :1]),
    "sides": first_without_edges,
    "nan": set_to(feature_score=lambda x: x.feature_score * torch.nan),
    "infinite": set_to(edge_score=lambda x: x.edge_score + torch.inf),
    "type": set_to(edge_score=lambda x: x.edge_score.double()),
    "gradient": set_to(feature_score=lambda x: x.feature_score.requires_grad_()),
    "memory": shared,
    "prediction": set_to(prediction=lambda x: x.prediction.flip(0)),
    "no prediction": set_to(prediction=None),
    "maker": set_to(explainer="somebody"),
    "other params": set_to(params={"steps": 3}),
    "no seed": set_to(seed=None),
    "no time": set_to(seconds=0.0),
    "nan time": set_to(seconds=float("nan")),
    "cannot be saved": set_to(params={"net": nn.Linear(1, 1)}),
    "single": set_to(
        edge_score=lambda x: x.edge_score.float(), feature_score=lambda x: x.feature_score.float()
    ),
}


def changed(edit):
    """Work that edits the packed scores."""

    def run(scores, model, graphs, seeds):
        found = scores(model, graphs, seeds)
        return edit(found.feature, found.edge, model, graphs, seeds)

    return run


def times(factor):
    """Work that multiplies all scores by a number that should not matter."""
    return changed(
        lambda f, e, model, graphs, seeds: Scores(
            f * factor(model, graphs), e * factor(model, graphs)
        )
    )


def crash_where(condition):
    def run(scores, model, graphs, seeds):
        if condition(model, graphs):
            raise KeyError("not thought of")
        return scores(model, graphs, seeds)

    return run


def noisy(f, e, seeds):
    """One stream for the whole batch."""
    stream = make_generator(seeds[0]) if seeds else make_generator(0)
    return Scores(
        f + torch.rand(f.shape, generator=stream).to(f),
        e + torch.rand(e.shape, generator=stream).to(e),
    )


def leaves(act):
    """Work that leaves something behind."""

    def run(scores, model, graphs, seeds):
        act(model)
        return scores(model, graphs, seeds)

    return run


def leaves_on_failure(scores, model, graphs, seeds):
    handle = model.net.register_forward_hook(lambda *_: None)
    found = scores(model, graphs, seeds)
    handle.remove()
    return found


def swallows(scores, model, graphs, seeds):
    try:
        return scores(model, graphs, seeds)
    except OSError:
        return Scores(zero_feature_scores(graphs), zero_edge_scores(graphs))


def unguarded(scores, model, graphs, seeds):
    """Gradients of the network as it stands, with whatever it has in its caches."""
    feature = zero_feature_scores(graphs)
    for graph in graphs:
        x = model.source.x.clone().requires_grad_(True)
        out = model.net(x, model.source.edge_index)[graph.target].max()
        feature[graph.node_slice][: len(graph.nodes)] = torch.autograd.grad(out, x)[0][graph.nodes]
    return Scores(feature, None)


def has_loops(model):
    return bool((model.source.edge_index[0] == model.source.edge_index[1]).any())


def modules(model, kind):
    return sum(isinstance(module, kind) for module in model.net.modules())


WORK = {
    "zero": changed(lambda f, e, *_: Scores(0 * f, 0 * e)),
    "equal": changed(lambda f, e, *_: Scores(0 * f + 1, 0 * e + 1)),
    "global noise": changed(lambda f, e, *_: Scores(f + torch.rand(f.shape), e)),
    "batch stream": changed(lambda f, e, model, graphs, seeds: noisy(f, e, seeds)),
    "batch size": times(lambda model, graphs: len(graphs)),
    "first target": times(lambda model, graphs: 1 + int(graphs.target[0, 0]) if len(graphs) else 1),
    "budget": times(lambda model, graphs: 1 + (model.executor.budget is None)),
    "grad mode": times(lambda model, graphs: 1 + torch.is_grad_enabled()),
    "training": times(lambda model, graphs: 1 + model.net.training),
    "evaluates": leaves(lambda model: model.net.eval()),
    "weights": leaves(lambda model: model.net.convs[0].bias.data.add_(1.0)),
    "frozen": leaves(lambda model: model.net.requires_grad_(False)),
    "setting": leaves(lambda model: setattr(model.net.convs[0], "_explain", True)),
    "hook": leaves(lambda model: model.net.register_forward_hook(lambda *_: None)),
    "random state": leaves(lambda model: torch.rand(1)),
    "leaves on failure": leaves_on_failure,
    "swallows": swallows,
    "exits": leaves(lambda model: sys.exit(0)),
    "data": leaves(lambda model: model.source.x.add_(1.0)),
    "links": crash_where(lambda model, graphs: model.level == "link"),
    "graphs": crash_where(lambda model, graphs: model.level == "graph"),
    "values": crash_where(lambda model, graphs: model.task == "regression"),
    "one column": crash_where(
        lambda model, graphs: model.whole_rows(model.population_rows[:1]).size(1) == 1
    ),
    "edge weights": crash_where(lambda model, graphs: bool(model.source.edge_attrs)),
    "no edges": crash_where(lambda model, graphs: model.source.num_edges == 0),
    "isolated": crash_where(lambda model, graphs: bool((graphs.num_edges == 0).any())),
    "numbers": changed(lambda f, e, model, graphs, seeds: Scores(f + graphs.node[:, None], e)),
    "edge numbers": changed(lambda f, e, model, graphs, seeds: Scores(f, e + graphs.edge)),
    "loops": changed(
        lambda f, e, model, graphs, seeds: Scores(f, e.roll(1) if has_loops(model) else e)
    ),
    "strangers": times(lambda model, graphs: 1 / model.source.x.abs().max()),
    "caches": unguarded,
    "activation": times(lambda model, graphs: 1 + modules(model, nn.ReLU)),
    "one start": changed(lambda f, e, model, graphs, seeds: noisy(0 * f, 0 * e, [0])),
    "hard": changed(lambda f, e, *_: Scores(f.sign(), e.sign())),
    "upside down": changed(lambda f, e, *_: Scores(-f, -e)),
    "no scores": changed(lambda f, e, *_: Scores(None, None)),
    "short": changed(lambda f, e, *_: Scores(f[:-1], e)),
    "columns": changed(lambda f, e, *_: Scores(f.roll(1, 1), e)),
    "opposite": changed(lambda f, e, *_: Scores(f, e.flip(0))),
    "tensor hook": leaves(
        lambda model: model.net.convs[0].bias.register_hook(lambda gradient: None)
    ),
    "no gradients": leaves(lambda model: torch.set_grad_enabled(False)),
}

TABLE = [
    ("fewer", "one_explanation_per_target_in_order", "failed"),
    ("reversed", "one_explanation_per_target_in_order", "failed"),
    ("level", "one_explanation_per_target_in_order", "failed"),
    ("nodes", "ids_are_those_of_the_computation_graph", "failed"),
    ("edges", "ids_are_those_of_the_computation_graph", "failed"),
    ("sizes", "ids_are_those_of_the_computation_graph", "failed"),
    ("width", "scores_fit_their_ids", "failed"),
    ("sides", "every_target_has_the_same_sides", "failed"),
    ("nan", "scores_are_finite", "failed"),
    ("infinite", "scores_are_finite", "failed"),
    ("type", "scores_are_like_the_features", "failed"),
    ("gradient", "scores_carry_no_gradient", "failed"),
    ("memory", "scores_have_memory_of_their_own", "failed"),
    ("zero", "scores_are_not_all_zero", "noted"),
    ("equal", "scores_are_not_all_equal", "noted"),
    ("prediction", "predictions_are_the_models", "failed"),
    ("no prediction", "predictions_are_the_models", "failed"),
    ("maker", "explanations_say_how_they_were_made", "failed"),
    ("other params", "explanations_say_how_they_were_made", "failed"),
    ("no seed", "explanations_say_how_they_were_made", "failed"),
    ("no time", "seconds_are_positive", "failed"),
    ("nan time", "seconds_are_positive", "failed"),
    ("cannot be saved", "explanations_can_be_saved", "failed"),
    ("global noise", "same_seed_gives_the_same_scores", "failed"),
    ("batch stream", "seed_matters_as_declared", "failed"),
    ("global noise", "repetitions_are_independent_as_declared", "failed"),
    ("batch size", "repetitions_do_not_depend_on_the_batch", "failed"),
    ("batch size", "batch_is_what_its_targets_get_alone", "failed"),
    ("batch stream", "batch_is_what_its_targets_get_alone", "failed"),
    ("first target", "order_of_targets_does_not_matter", "failed"),
    ("budget", "memory_budget_does_not_matter", "failed"),
    ("global noise", "global_seed_does_not_matter", "failed"),
    ("grad mode", "gradient_mode_does_not_matter", "failed"),
    ("training", "training_mode_does_not_matter", "failed"),
    ("evaluates", "training_mode_does_not_matter", "failed"),
    ("weights", "other_explainers_do_not_matter", "failed"),
    ("weights", "network_is_untouched", "failed"),
    ("frozen", "network_is_untouched", "failed"),
    ("setting", "network_is_untouched", "failed"),
    ("hook", "network_is_untouched", "failed"),
    ("random state", "network_is_untouched", "failed"),
    ("leaves on failure", "network_is_untouched_by_failures", "failed"),
    ("swallows", "network_is_untouched_by_failures", "failed"),
    ("weights", "predictions_stay_the_same", "failed"),
    ("exits", "network_is_untouched", "failed"),
    ("data", "data_is_untouched", "failed"),
    ("empty", "no_targets_give_no_explanations", "failed"),
    ("any target", "wrong_targets_are_refused", "failed"),
    ("any seed", "wrong_seeds_are_refused", "failed"),
    ("no scores", "scores_are_given", "failed"),
    ("tensor hook", "network_is_untouched", "failed"),
    ("no gradients", "network_is_untouched", "failed"),
    ("columns", "permuting_features_moves_scores_along", "failed"),
    ("opposite", "opposite_edges_are_told_apart", "failed"),
    ("one start", "link_models_are_handled", "failed"),
    ("one start", "graph_models_are_handled", "failed"),
    ("short", "graph_models_are_handled", "failed"),
    ("links", "link_models_are_handled", "failed"),
    ("graphs", "graph_models_are_handled", "failed"),
    ("values", "regression_models_are_handled", "failed"),
    ("one column", "one_column_models_are_handled", "failed"),
    ("edge weights", "weighted_models_are_handled", "failed"),
    ("no edges", "graphs_without_edges_are_handled", "failed"),
    ("isolated", "isolated_targets_are_handled", "failed"),
    ("single", "double_precision_is_kept", "failed"),
    ("numbers", "renumbering_nodes_moves_scores_along", "failed"),
    ("edge numbers", "shuffling_edges_moves_scores_along", "failed"),
    ("loops", "stored_loops_leave_scores_at_their_edges", "failed"),
    ("edge numbers", "parallel_edges_are_scored_alike", "failed"),
    ("strangers", "strangers_do_not_matter", "failed"),
    ("caches", "cached_layers_are_not_believed", "failed"),
    ("activation", "kind_of_activation_does_not_matter", "failed"),
    ("one start", "feature_scores_depend_on_the_model", "failed"),
    ("one start", "edge_scores_depend_on_the_model", "failed"),
    ("hard", "feature_scores_can_be_ranked", "failed"),
    ("hard", "edge_scores_can_be_ranked", "failed"),
    ("upside down", "decisive_feature_comes_first", "failed"),
    ("upside down", "decisive_edge_comes_first", "failed"),
    ("zero", "decisive_edge_comes_first", "noted"),
]


@pytest.mark.parametrize(("broken", "check", "expected"), TABLE, ids=lambda value: str(value))
def test_what_is_broken_is_found(broken, check, expected):
    (result,) = gg.check_explainer(
        Sloppy(broken=broken), good_model(), [3, 17, 18], only=[check], on_fail="return"
    )
    assert (result.status, bool(result.reason)) == (expected, True)
    assert "AttributeError" not in result.reason


@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        ("", set()),
        ("frozen", {"network_is_untouched"}),
        ("hard", {"feature_scores_can_be_ranked", "edge_scores_can_be_ranked"}),
        ("upside down", {"decisive_feature_comes_first", "decisive_edge_comes_first"}),
        ("leaves on failure", {"network_is_untouched_by_failures"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_nothing_else_is_blamed(broken, expected):
    assert (
        failures(gg.check_explainer(Sloppy(broken=broken), good_model(), [3, 17], on_fail="return"))
        == expected
    )


class Thawed(gg.InputXGradient):
    __setattr__ = object.__setattr__


class Unhashable(gg.InputXGradient):
    __hash__ = None


class Forgetful(Sloppy):
    params: ClassVar[dict] = {}


class Crooked(gg.InputXGradient):
    params: ClassVar[list] = [1]


class Impostor(gg.InputXGradient):
    name = "saliency"


class Nameless(gg.InputXGradient):
    name = " "


class Undecided(gg.InputXGradient):
    signed = "yes"


class Unsigned(gg.InputXGradient):
    signed = False


class ClaimsToBeRandom(gg.InputXGradient):
    deterministic = False


class Lost(gg.InputXGradient):
    def __reduce__(self):
        return gg.Saliency, ()


class Remembers(gg.InputXGradient):
    def scores(self, model, graphs, seeds):
        object.__setattr__(self, "last", len(graphs) + getattr(self, "last", 0))
        return super().scores(model, graphs, seeds)


class Jealous(gg.RandomExplainer):
    """Its scores say whether a gradient explainer was here before."""

    def scores(self, model, graphs, seeds):
        found = super().scores(model, graphs, seeds)
        return Scores(
            found.feature, found.edge + 9 * (repr(gg.InputXGradient()) in model.executor.costs)
        )


@pytest.mark.parametrize(
    ("explainer", "check"),
    [
        (Thawed(), "explainer_cannot_be_changed"),
        (Unhashable(), "explainer_cannot_be_changed"),
        (Forgetful(broken="x"), "params_rebuild_the_explainer"),
        (Crooked(), "params_are_plain"),
        (Impostor(), "name_is_its_own"),
        (Nameless(), "explainer_says_what_it_is"),
        (Undecided(), "explainer_says_what_it_is"),
        (Unsigned(), "signs_are_as_declared"),
        (ClaimsToBeRandom(), "seed_matters_as_declared"),
        (ClaimsToBeRandom(), "repetitions_are_independent_as_declared"),
        (Lost(), "explainer_can_travel"),
        (Remembers(), "explainer_is_unchanged_by_use"),
        (Jealous(), "other_explainers_do_not_matter"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_class_that_is_not_what_it_says_is_found(explainer, check):
    status, reason = outcome(explainer, check)
    assert (status, bool(reason)) == ("failed", True)


def test_every_check_is_listed_says_what_it_checks_and_was_seen_to_fail_or_remark():
    functions = {
        name
        for module in (explainer_checks, explainer_toy_checks)
        for name, value in vars(module).items()
        if callable(value)
        and not name.startswith("_")
        and getattr(value, "__annotations__", {}).keys() == {"trial", "return"}
    }
    assert functions == set(EXPLAINER_CHECKS)
    assert all(check.__doc__ for check in EXPLAINER_CHECKS.values())
    (marks,) = [
        mark
        for mark in test_a_class_that_is_not_what_it_says_is_found.pytestmark
        if mark.name == "parametrize"
    ]
    seen = {check for _, check, _ in TABLE} | {check for _, check in marks.args[1]}
    assert seen == set(EXPLAINER_CHECKS)
    assert len(EXPLAINER_CHECKS) >= 35


# --- what is said ---------------------------------------------------------------------------------


def test_failures_are_raised_together_with_their_reasons():
    with pytest.raises(
        FailedCheck,
        match=r"Sloppy.*fails 1 of 2 checks:\nfailed  seconds_are_positive: seconds are",
    ):
        gg.check_explainer(
            Sloppy(broken="no time"),
            good_model(),
            only=["seconds_are_positive", "scores_are_finite"],
        )


def test_remarks_and_skips_tell_why():
    function = gg.CallableExplainer(
        lambda model, target: (None, torch.ones(model.source.num_edges)),
        name="own",
        scope="whole graph",
    )
    assert "cannot be made again" in outcome(function, "params_rebuild_the_explainer")[1]
    assert "cannot be sent to worker processes" in outcome(function, "explainer_can_travel")[1]
    assert "'own' is not a registered name" in outcome(function, "name_is_its_own")[1]
    assert outcome(function, "every_target_has_the_same_sides") == (
        "noted",
        "there is no feature_score",
    )
    assert outcome(function, "feature_scores_can_be_ranked") == (
        "skipped",
        "there is no feature_score",
    )
    assert outcome(function, "signs_are_as_declared") == (
        "noted",
        "signed is True, but no score is negative here",
    )
    attention = gg.PyGExplainer("AttentionExplainer")
    assert outcome(attention, "edge_scores_can_be_ranked")[0] == "skipped"
    assert "such models are refused" in outcome(attention, "link_models_are_handled")[1]


def test_a_wrong_call_is_refused():
    with pytest.raises(
        BadSetting, match=r"needs an explainer such as gg.Saliency\(\), but got <class"
    ):
        gg.check_explainer(gg.Saliency, good_model())
    with pytest.raises(BadModel, match="check_explainer needs a wrapped network such as"):
        gg.check_explainer(gg.Saliency(), good_model().net)
    with pytest.raises(BadSetting, match="on_fail must be 'raise' or 'return'"):
        gg.check_explainer(gg.Saliency(), good_model(), on_fail="warn")
    with pytest.raises(BadSetting, match="needs a target to explain"):
        gg.check_explainer(gg.Saliency(), good_model(), targets=[])
    with pytest.raises(UnknownName, match="Did you mean 'scores_are_finite'"):
        gg.check_explainer(gg.Saliency(), good_model(), only=["score_is_finite"])
