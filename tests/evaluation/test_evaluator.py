"""Explanations from everywhere, what is refused, and nothing left behind."""

import dataclasses
import random

import numpy as np
import pytest
import torch
from support.hand_computed_networks import OfNodes, explanation, graph, own_features
from support.quick_evaluation import (
    EXPLAINERS,
    MODELS,
    QUICK,
    cells_of,
    constant_scores,
    link_model,
    node_model,
    numbers,
)
from support.small_networks import Stack, build, random_graph
from torch_geometric.nn import GCNConv

import graphgauge as gg
from graphgauge.core.errors import BadExplanation, BadSetting, BadTarget, UnknownName
from graphgauge.metrics import DeletionAuc, Metric

# --- explanations from everywhere -----------------------------------------------------------------


@pytest.mark.parametrize("kind", ["nodes", "values", "links"])
def test_an_explanation_of_the_whole_graph_is_judged_as_the_cut_one(kind):
    make, targets = MODELS[kind]
    model = make()
    x = gg.RandomExplainer().explain(model, targets[:1])[0]
    whole = gg.Xplanation.from_pyg(
        x.to_pyg(), x.target, explainer=x.explainer, params=x.params, seed=x.seed
    )
    assert len(whole.nodes) == 60 > len(x.nodes)
    evaluator = gg.Evaluator(model, **QUICK, extras=True)
    found = numbers(evaluator.evaluate(x))
    assert numbers(evaluator.evaluate(whole)) == found
    assert found[x.explainer, x.target, 0, "feature_sparsity"].status == "ok"


def test_scores_in_another_order_or_precision_are_the_same_scores():
    model = node_model()
    x = gg.RandomExplainer().explain(model, [3])[0]
    nodes, edges = (
        torch.randperm(len(ids), generator=torch.Generator().manual_seed(1))
        for ids in (x.nodes, x.edges)
    )
    turned = dataclasses.replace(
        x,
        metrics={},
        nodes=x.nodes[nodes],
        edges=x.edges[edges],
        feature_score=x.feature_score[nodes].double(),
        edge_score=x.edge_score[edges].double(),
    )
    assert numbers(gg.Evaluator(model, **QUICK).evaluate(turned)) == numbers(
        gg.Evaluator(model, **QUICK).evaluate(x)
    )


def test_scores_too_close_for_single_precision_still_have_an_order():
    data = graph([(1, 0, 9.0), (2, 0, 0.0), (3, 0, 0.0)], [[1.0]] * 4)
    model = gg.NodeClassificationModel(
        OfNodes(lambda x, sent: sent - 5), data, embedding=own_features, output="logits"
    )
    x = explanation(model, 0, [0, 0, 0])
    for decisive in range(1, 4):
        score = torch.ones(3, dtype=torch.float64)
        score[x.edges == 0] += 1e-12 * (2 - decisive)
        score[x.edges == 1] += 0.5e-12
        score[x.edges == 2] += -0.5e-12
        given = dataclasses.replace(x, edge_score=score, metrics={})
        assert cells_of(gg.Evaluator(model, **QUICK).evaluate(given))["edge_ec"].value == decisive


@pytest.mark.parametrize("kind", ["nodes", "values", "links"])
@pytest.mark.parametrize(("sides", "prefix"), [("edges", "edge_"), ("features", "feature_")])
def test_one_side_alone_has_the_numbers_of_both(kind, sides, prefix):
    make, targets = MODELS[kind]
    both, one = (
        gg.Evaluator(make(), **{**QUICK, "stability": "none", "sides": which}).compare(
            gg.RandomExplainer(), targets[:2]
        )
        for which in ("both", sides)
    )
    wanted = {key: cell for key, cell in numbers(both).items() if key[-1].startswith(prefix)}
    found = {key: cell for key, cell in numbers(one).items() if not key[-1].startswith("time")}
    assert found == wanted
    assert wanted


def test_a_target_named_twice_is_judged_twice():
    model = node_model()
    twice = gg.Evaluator(model, **QUICK).compare(gg.RandomExplainer(), [3, 20, 3])
    assert {(row.target, row.occurrence) for row in twice.rows} == {(3, 0), (20, 0), (3, 1)}
    found = numbers(twice)
    once = numbers(gg.Evaluator(model, **QUICK).compare(gg.RandomExplainer(), [3]))
    assert once.items() <= found.items()
    assert (
        found["random", 3, 0, "edge_pertinence_tied"]
        != found["random", 3, 1, "edge_pertinence_tied"]
    )
    assert found["random", 3, 0, "edge_stability"] != found["random", 3, 1, "edge_stability"]


def test_an_explanation_given_twice_has_the_same_curves():
    model = node_model()
    x = gg.Saliency().explain(model, [3])[0]
    found = numbers(gg.Evaluator(model, **QUICK).evaluate([x, dataclasses.replace(x)]))
    for metric in ("edge_ec", "edge_pertinence", "feature_pertinence_rank"):
        assert found["saliency", 3, 0, metric] == found["saliency", 3, 1, metric]


def test_explanations_of_one_name_with_other_parameters_are_told_apart():
    model = node_model()
    xs = [x for steps in (2, 3) for x in gg.IntegratedGradients(steps=steps).explain(model, [3])]
    elsewhere = [explanation_elsewhere(xs[0], "mine", {"alpha": alpha}) for alpha in (1, 2)]
    results = gg.Evaluator(model, **QUICK).evaluate([*xs, *elsewhere])
    labels = list(dict.fromkeys(row.explainer for row in results.rows))
    assert labels == [
        "integrated_gradients(steps=2)",
        "integrated_gradients(steps=3)",
        "mine(alpha=1)",
        "mine(alpha=2)",
    ]
    assert len(numbers(results)) == len(
        [row for row in results.rows if not row.metric.startswith("time")]
    )


def explanation_elsewhere(x, name, params):
    return dataclasses.replace(x, explainer=name, params=params, metrics={})


def test_explanations_with_and_without_their_default_parameters_are_of_one_explainer():
    model = node_model()
    x = gg.Saliency().explain(model, [3])[0]
    results = gg.Evaluator(model, **QUICK).evaluate([x, explanation_elsewhere(x, "saliency", {})])
    assert {(row.explainer, row.occurrence) for row in results.rows} == {
        ("saliency", 0),
        ("saliency", 1),
    }


def test_targets_may_come_from_a_generator():
    model = node_model()
    from_list = numbers(
        gg.Evaluator(model, **QUICK).compare([gg.Saliency(), gg.RandomExplainer()], [3, 20])
    )
    assert from_list == numbers(
        gg.Evaluator(model, **QUICK).compare(
            [gg.Saliency(), gg.RandomExplainer()], (t for t in (3, 20))
        )
    )
    assert from_list == numbers(
        gg.Evaluator(model, **QUICK).compare(
            iter([gg.Saliency(), gg.RandomExplainer()]), np.array([3, 20])
        )
    )


# --- what is refused ------------------------------------------------------------------------------


def test_nothing_to_evaluate_gives_empty_results():
    evaluator = gg.Evaluator(node_model(), **QUICK)
    for results in (
        evaluator.evaluate([]),
        evaluator.compare([gg.Saliency()], []),
        evaluator.compare([], [3]),
    ):
        assert len(results) == len(results.to_pandas()) == len(results.summary()) == 0
        assert len(results.flip_curve()) == 100
        with pytest.raises(UnknownName, match="edge_ec"):
            results.pareto("edge_ec", "time")


def test_unknown_targets_and_explainers_are_refused_by_name():
    evaluator = gg.Evaluator(node_model(), **QUICK)
    with pytest.raises(BadTarget, match="3000"):
        evaluator.compare(gg.Saliency(), [3, 3000])
    for wrong in ("saliency", ["saliency"], 5, [gg.Saliency]):
        with pytest.raises(BadSetting, match=r"gg\.find_explainer"):
            evaluator.compare(wrong, [3])
    with pytest.raises(BadSetting, match="'saliency'"):
        evaluator.compare("saliency", [3])
    with pytest.raises(BadSetting, match="saliency is listed twice"):
        evaluator.compare([gg.Saliency(), gg.Saliency()], [3])


def test_two_explainers_of_one_kind_can_have_names():
    results = gg.Evaluator(node_model(), **QUICK).compare(
        {"a": gg.Saliency(), "b": gg.Saliency()}, [3]
    )
    found = numbers(results)
    assert {key[0] for key in found} == {"a", "b"}
    assert found["a", 3, 0, "edge_ec"] == found["b", 3, 0, "edge_ec"]


def test_all_bad_settings_are_listed_at_once():
    model = node_model()
    with pytest.raises(BadSetting) as error:
        gg.Evaluator(
            model,
            cap=0,
            flip=-1.0,
            pooling="median",
            trials=(3, 2),
            tau="half",
            twins=1,
            keep=0,
            early_stop=None,
            calls=2,
        )
    for name in ("cap", "flip", "pooling", "trials", "tau", "twins", "keep", "early_stop", "calls"):
        assert f"{name} must be" in str(error.value)
    with pytest.raises(UnknownName, match=r"'capp', 'trails'.*Known: .*cap, .*trials"):
        gg.Evaluator(model, capp=3, trails=4)
    with pytest.raises(UnknownName, match="Did you mean 'cap'"):
        gg.Evaluator(model, capp=3)
    with pytest.raises(UnknownName, match="Did you mean 'paper'"):
        gg.Evaluator(model, "papr")
    with pytest.raises(BadSetting, match="seed"):
        gg.Evaluator(model, seed=-1)


def test_an_evaluator_needs_a_wrapped_network():
    with pytest.raises(gg.GraphgaugeError, match="NodeClassificationModel"):
        gg.Evaluator(build(Stack, GCNConv))


def test_explanations_of_other_data_are_refused():
    model, links = node_model(), link_model()
    evaluator, x = gg.Evaluator(model, **QUICK), gg.Saliency().explain(model, [3])[0]
    with pytest.raises(BadExplanation, match="of a link"):
        evaluator.evaluate(gg.Saliency().explain(links, [(3, 20)]))
    with pytest.raises(BadExplanation, match="ndarray"):
        evaluator.evaluate([np.ones(3)])
    smaller = gg.NodeClassificationModel(
        build(Stack, GCNConv), random_graph(num_nodes=40, num_edges=90)
    )
    with pytest.raises(BadExplanation, match=r"101 edges, but the model's has 328"):
        evaluator.evaluate(gg.Saliency().explain(smaller, [3]), check_network=False)
    for scores in (x.feature_score[:, :3], x.feature_score.repeat(1, 2)):
        with pytest.raises(BadExplanation, match=r"features, but the model's has 6"):
            evaluator.evaluate(dataclasses.replace(x, feature_score=scores, metrics={}))


# --- nothing left behind --------------------------------------------------------------------------


def state_of(net):
    """Everything of a network, and of the global random streams, that a user could notice."""
    return {
        "numbers": {name: value.tolist() for name, value in net.state_dict().items()},
        "gradients": [None if p.grad is None else p.grad.tolist() for p in net.parameters()],
        "needs": [p.requires_grad for p in net.parameters()],
        "modes": [module.training for module in net.modules()],
        "hooks": [
            (list(m._forward_hooks), list(m._forward_pre_hooks), list(m._backward_hooks))
            for m in net.modules()
        ],
        "attributes": [sorted(vars(module)) for module in net.modules()],
        "random": (
            torch.get_rng_state().tolist(),
            np.random.get_state()[1].tolist(),
            random.getstate(),
        ),
        "settings": (torch.is_grad_enabled(), torch.get_num_threads()),
    }


def in_use(make):
    """A model in the middle of training: training mode, gradients, a frozen parameter, a hook."""
    model = make()
    model.net.train()
    parameters = list(model.net.parameters())
    parameters[0].grad = torch.ones_like(parameters[0])
    parameters[-1].requires_grad_(False)
    next(model.net.children()).register_forward_hook(lambda module, args, out: None)
    return model


@pytest.mark.parametrize("kind", MODELS)
def test_the_users_network_is_left_as_it_was(kind):
    make, targets = MODELS[kind]
    model = in_use(make)
    before = state_of(model.net)
    results = gg.Evaluator(model, **{**QUICK, "timed": 1}).compare(EXPLAINERS, targets[:2])
    assert any(row.cell.status == "ok" for row in results.rows)
    assert state_of(model.net) == before


class Broken(Exception):
    """Raised by a function under test."""


def test_the_users_network_is_left_as_it_was_after_a_failure():
    model, calls = in_use(node_model), []

    def breaks(given, target):
        calls.append(target)
        given.net.train()
        torch.manual_seed(3)
        next(given.net.parameters()).data.add_(1.0)
        if len(calls) > 3:  # in the middle of stability
            raise Broken
        return constant_scores(given, target)

    before = state_of(model.net)
    with pytest.raises(Broken):
        gg.Evaluator(model, **QUICK).compare(gg.CallableExplainer(breaks), [3, 20])
    assert len(calls) == 4
    assert state_of(model.net) == before
    assert numbers(gg.Evaluator(model, **QUICK).compare(gg.Saliency(), [3])) == numbers(
        gg.Evaluator(node_model(), **QUICK).compare(gg.Saliency(), [3])
    )


# --- metrics of one's own -------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Own(Metric):
    """Where curves end, or how large scores are, in some shape and type."""

    name = "own"
    bounds = (-torch.inf, torch.inf)
    higher_is_better = True
    chance = None
    needs: str = "curves"
    form: str = "double"

    def __call__(self, given):
        whole = (
            DeletionAuc()(given)
            if self.needs == "curves"
            else torch.stack([one.double().abs().sum() for one in given.score])
        )
        return {
            "double": whole,
            "float": whole.float(),
            "gradient": whole.clone().requires_grad_(),
            "list": whole.tolist(),
        }.get(self.form, torch.cat([whole, whole]))


@pytest.mark.parametrize("needs", ["curves", "scores"])
def test_metrics_of_ones_own_may_give_any_floats(needs):
    found = {}
    for form in ("double", "float", "gradient"):
        results = gg.Evaluator(node_model(), **QUICK, metrics=[Own(needs, form)]).compare(
            gg.InputXGradient(), [0, 3]
        )
        found[form] = results.values("edge_own").to_numpy()
    assert found["gradient"].tolist() == found["double"].tolist()
    assert found["float"].tolist() == np.float32(found["double"]).tolist()


@pytest.mark.parametrize("needs", ["curves", "scores"])
@pytest.mark.parametrize(("form", "given"), [("twice", r"of shape \(4,\)"), ("list", "list")])
def test_metrics_of_another_shape_are_refused(needs, form, given):
    with pytest.raises(
        BadSetting,
        match=(
            r"own must give a tensor of shape \(2,\), a number for each target, but gave "
            rf".*{given}"
        ),
    ):
        gg.Evaluator(node_model(), **QUICK, metrics=[Own(needs, form)]).compare(
            gg.InputXGradient(), [0, 3]
        )
