"""check_model passes networks that are right and names what is wrong with others."""

import pytest
import torch
from support.small_networks import (
    CLASSES,
    FEATURES,
    HIDDEN,
    LAYERS,
    EncodeDecode,
    LinkForward,
    Pooled,
    Propagated,
    Stack,
    build,
    random_graph,
)
from torch import nn
from torch_geometric.nn import GATConv, GCNConv, GraphNorm, MFConv, SAGEConv

import graphgauge as gg
from graphgauge.checks import MODEL_CHECKS, model_checks
from graphgauge.core.errors import BadModel, BadSetting, FailedCheck, UnknownName

MODELS = {
    **{
        f"node {name}": lambda layer=layer, depth=depths[-1]: gg.NodeClassificationModel(
            build(Stack, layer, depth), random_graph()
        )
        for name, (layer, _, depths) in LAYERS.items()
    },
    "node APPNP": lambda: gg.NodeClassificationModel(build(Propagated), random_graph()),
    "node regression": lambda: gg.NodeRegressionModel(build(Stack, GATConv, out=1), random_graph()),
    "link encode": lambda: gg.LinkClassificationModel(
        build(EncodeDecode), random_graph(), output="logits"
    ),
    "link forward": lambda: gg.LinkClassificationModel(build(LinkForward), random_graph()),
    "link regression": lambda: gg.LinkRegressionModel(build(LinkForward, out=1), random_graph()),
    "graph": lambda: gg.GraphClassificationModel(
        build(Pooled), [random_graph(5 + seed, 9, seed=seed) for seed in range(9)]
    ),
    "graph regression": lambda: gg.GraphRegressionModel(
        build(Pooled, out=1), [random_graph(5, 9, seed=seed) for seed in range(9)]
    ),
    "norm over all nodes": lambda: gg.NodeClassificationModel(
        build(Stack, GCNConv, norm=GraphNorm(HIDDEN)), random_graph()
    ),
    "no edges": lambda: gg.NodeClassificationModel(build(Stack, GCNConv), random_graph(9, 0)),
    "double": lambda: gg.NodeClassificationModel(
        build(Stack, GCNConv, dtype=torch.float64), random_graph(dtype=torch.float64)
    ),
    "induced": lambda: gg.NodeClassificationModel(
        build(Stack, GCNConv), random_graph(), edge_scope="induced"
    ),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_good_models_pass(make):
    results = gg.check_model(make())
    assert [result.name for result in results] == list(MODEL_CHECKS)
    assert {result.status for result in results} <= {"passed", "noted", "skipped"}
    assert sum(result.status == "passed" for result in results) >= 17
    assert all(result.reason for result in results if result.status != "passed")


def status_of(model, name):
    (result,) = gg.check_model(model, only=[name], on_fail="return")
    return result.status, result.reason


def test_every_check_function_is_listed_and_says_what_it_checks():
    functions = {
        name
        for name, value in vars(model_checks).items()
        if callable(value)
        and getattr(value, "__annotations__", {}).keys() == {"model", "targets", "return"}
    }
    assert functions == set(MODEL_CHECKS)
    assert all(check.__doc__ for check in MODEL_CHECKS.values())
    assert len(MODEL_CHECKS) >= 25


def test_failures_are_raised_together_with_their_reasons(monkeypatch):
    model = gg.NodeClassificationModel(build(Stack, GCNConv), random_graph())
    monkeypatch.setattr(model, "embed", lambda targets: torch.full((len(targets), 2), torch.nan))
    monkeypatch.setattr(
        model, "pred_discrete", lambda targets: torch.zeros(len(targets), dtype=torch.int64)
    )
    with pytest.raises(
        FailedCheck,
        match=(
            r"fails 2 of 26 checks:\nfailed  classes_are_the_likeliest: .*\nfailed  "
            r"embedding_has_one_row"
        ),
    ):
        gg.check_model(model)


def test_a_wrong_call_is_refused():
    model = gg.NodeClassificationModel(build(Stack, GCNConv), random_graph())
    with pytest.raises(BadModel, match="check_model needs a wrapped network such as"):
        gg.check_model(model.net)
    with pytest.raises(BadSetting, match="on_fail must be 'raise' or 'return'"):
        gg.check_model(model, on_fail="warn")
    with pytest.raises(UnknownName, match="Did you mean 'predictions_are_finite'"):
        gg.check_model(model, only=["prediction_is_finite"])


# --- each check can fail, skip or remark ----------------------------------------------------------


def good():
    return gg.NodeClassificationModel(build(Stack, GCNConv), random_graph())


class Sloppy(gg.NodeClassificationModel):
    """Does one thing wrong."""

    broken = ""

    def pred_continuous(self, targets):
        rows = super().pred_continuous(targets)
        if self.broken == "rows":
            return rows[:-1]
        if self.broken == "finite":
            return rows * torch.nan
        if self.broken == "sum":
            return rows * 1.5
        if self.broken == "order":
            return rows.roll(1, 0)
        if self.broken == "random":
            return rows + torch.rand(1)
        if self.broken == "weights":
            self.net.convs[0].bias.data.add_(1.0)
        if self.broken == "hooks":
            self.net.register_forward_hook(lambda *_: None)
        if self.broken == "mode":
            self.net.eval()
        return rows

    def pred_copies(self, graphs, of=None, edit=None):
        if self.broken == "swallow":
            try:
                return super().pred_copies(graphs, of, edit)
            except InterruptedError:
                return None
        if self.broken == "data":
            self.source.x.add_(1.0)
        rows = super().pred_copies(graphs, of, edit)
        return rows + 0.01 * len(graphs) if self.broken == "copies" else rows

    def parse_targets(self, targets):
        return super().parse_targets([0] if self.broken == "targets" else targets)

    def computation_graphs(self, targets, edge_scope=None):
        batch = super().computation_graphs(targets, edge_scope)
        if self.broken == "loops":
            batch.edge_index[:] = 0
        if self.broken == "scope":
            return self.extract_graphs(self.parse_targets(targets), 3, 4, "induced")
        return batch


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        ("rows", "predictions_have_one_row_per_target"),
        ("finite", "predictions_are_finite"),
        ("sum", "probabilities_add_up_to_one"),
        ("random", "same_question_same_answer"),
        ("order", "order_of_targets_does_not_matter"),
        ("targets", "wrong_targets_are_refused"),
        ("targets", "no_targets_give_no_rows"),
        ("weights", "network_is_untouched_by_calls"),
        ("hooks", "network_is_untouched_by_calls"),
        ("swallow", "network_is_untouched_by_failures"),
        ("data", "data_is_untouched"),
        ("mode", "evaluation_mode_is_used"),
        ("copies", "extracted_graphs_give_the_whole_graphs_prediction"),
        ("copies", "copies_in_a_union_answer_as_alone"),
        ("loops", "relevant_edges_carry_messages"),
        ("scope", "relevant_edges_carry_messages"),
    ],
)
def test_what_is_broken_is_found(broken, check):
    model = Sloppy(build(Stack, GCNConv), random_graph())
    assert status_of(model, check)[0] in ("passed", "noted", "skipped")
    model = Sloppy(build(Stack, GCNConv), random_graph())
    model.broken = broken
    status, reason = status_of(model, check)
    assert (status, bool(reason)) == ("failed", True)
    assert "AttributeError" not in reason  # the check found it; nothing was called by a wrong name


def test_hops_that_are_too_few_are_found():
    model = gg.NodeClassificationModel(build(Stack, SAGEConv), random_graph(300, 300), num_hops=1)
    with pytest.warns(UserWarning, match="num_hops=1 was given"):
        assert model.hops == 1
    expected = ("failed", "num_hops is 1, but features further away matter")
    assert status_of(model, "hops_go_as_far_as_features_matter") == expected


def test_remarks_tell_what_people_should_know():
    constant = gg.NodeClassificationModel(build(Stack, GCNConv, final=Zero()), random_graph())
    assert status_of(constant, "more_than_one_answer_is_given") == (
        "noted",
        "the network gives every target the same prediction",
    )
    assert (
        "12 of 12 targets have no gradient"
        in status_of(constant, "gradients_reach_the_features")[1]
    )
    by_max = MODELS["node SAGE max"]()
    assert "use drop" in status_of(by_max, "messages_can_be_masked")[1]
    norm = MODELS["norm over all nodes"]()
    assert (
        "need the whole graph"
        in status_of(norm, "extracted_graphs_give_the_whole_graphs_prediction")[1]
    )
    assert "one by one" in status_of(norm, "copies_in_a_union_answer_as_alone")[1]
    assert status_of(norm, "features_outside_do_not_matter")[0] == "skipped"
    regroups = gg.NodeClassificationModel(build(MFConv, FEATURES, CLASSES), random_graph(200, 600))
    assert status_of(regroups, "chunks_give_the_same_bits")[0] in ("passed", "noted")


class Zero(nn.Module):
    def forward(self, x):
        return 0 * x


def test_a_skipped_check_says_why():
    assert status_of(good(), "sides_follow_the_flip_band") == (
        "skipped",
        "this is a classification model",
    )
    assert status_of(MODELS["graph"](), "hops_go_as_far_as_features_matter")[0] == "skipped"


def test_results_read_as_lines():
    results = gg.check_model(good())
    assert str(results[0]) == "passed  predictions_have_one_row_per_target"
