"""Promises of an explainer that are tried on tiny networks and graphs of our own (`stages`), where
the answer is known.

An explainer that refuses such a network by an error of its own kind (an attention explainer has no
use for a GCN) is skipped.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from graphgauge.checks import explainer_toy_models as stages
from graphgauge.checks.explainer_trial import (
    SCORE_TOLERANCE,
    ExplainerTrial,
    ensure_same_scores,
    have_same_scores,
    list_scores,
    relative_difference,
    require_deterministic,
    require_scores,
    require_side,
)
from graphgauge.checks.suite import InapplicableCheck, fail_unless
from graphgauge.core import BadExplanation, GraphgaugeError, GraphgaugeWarning, Xplanation
from graphgauge.explainers import RandomExplainer
from graphgauge.models import BaseModel

_TOY_TARGETS = [0, 4, 9]  #: nodes of a stage with many edges around them
_NUM_REPEATS = 8  #: explanations that are averaged where they are random
_MAX_TIED_VALUES = 3  #: a ranking needs more different values than this


def _explain_quietly(trial: ExplainerTrial, model: BaseModel, targets: Any) -> Sequence[Xplanation]:
    """Explanations on a stage, without warnings about networks that are not the user's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphgaugeWarning)
        return trial.explainer.explain(model, targets, seed=0)


def _explain_toy_model(
    trial: ExplainerTrial, model: BaseModel, targets: list[int] | None = None
) -> Sequence[Xplanation]:
    """Explanations on a stage; skips the check if the explainer refuses the network, or gives no
    scores.
    """
    try:
        return require_scores(
            _explain_quietly(trial, model, _TOY_TARGETS if targets is None else targets)
        )
    except BadExplanation:
        raise
    except GraphgaugeError as error:
        raise InapplicableCheck(f"it refuses this check's network: {error}") from error


def _explain_plain_model(trial: ExplainerTrial) -> Sequence[Xplanation]:
    """Explanations on the plain stage, made once."""
    if "plain" not in trial.cached_explanations:
        trial.cached_explanations["plain"] = _explain_toy_model(trial, stages.toy_node_model())
    return trial.cached_explanations["plain"]


# --- every kind of model --------------------------------------------------------------------------


def _check_model_type(
    trial: ExplainerTrial,
    model: BaseModel,
    targets: list[int] | list[tuple[int, int]],
    other: BaseModel | None = None,
) -> str | None:
    """Finite scores of the right form, different for an ``other`` network; or a remark that such
    models are refused.
    """
    try:
        xs = _explain_quietly(trial, model, targets)
    except BadExplanation:
        raise
    except GraphgaugeError as error:
        return f"such models are refused: {error}"
    fail_unless(
        [x.target for x in xs] == targets,
        f"targets {targets} gave explanations of {[x.target for x in xs]}",
    )
    for x, graph in zip(xs, model.computation_graphs(targets), strict=True):
        fail_unless(
            torch.equal(x.nodes, graph.nodes) and torch.equal(x.edges, graph.edges),
            f"ids of {x.target} are wrong",
        )
        fail_unless(
            all(bool(score.isfinite().all()) for score in list_scores(x)),
            f"scores of {x.target} are NaN or infinite",
        )
    if (
        other is not None
        and any(list_scores(x) for x in xs)
        and not isinstance(trial.explainer, RandomExplainer)
    ):
        fail_unless(
            not have_same_scores(xs, _explain_quietly(trial, other, targets)),
            "two networks with different weights get the same scores",
        )
    return None


def link_models_are_handled(trial: ExplainerTrial) -> str | None:
    """Classes of links, by encode and decode."""
    return _check_model_type(
        trial, stages.toy_link_model(), [(0, 4), (9, 2)], stages.toy_link_model(seed=1)
    )


def graph_models_are_handled(trial: ExplainerTrial) -> str | None:
    """Classes of whole graphs."""
    return _check_model_type(
        trial, stages.toy_graph_model(), [0, 2], stages.toy_graph_model(seed=1)
    )


def regression_models_are_handled(trial: ExplainerTrial) -> str | None:
    """Values of nodes."""
    return _check_model_type(trial, stages.toy_regression_model(), _TOY_TARGETS)


def one_column_models_are_handled(trial: ExplainerTrial) -> str | None:
    """Two classes as one logit."""
    return _check_model_type(trial, stages.toy_one_column_model(), _TOY_TARGETS)


def weighted_models_are_handled(trial: ExplainerTrial) -> str | None:
    """Networks that take weights of edges."""
    return _check_model_type(trial, stages.toy_weighted_model(), _TOY_TARGETS)


def graphs_without_edges_are_handled(trial: ExplainerTrial) -> str | None:
    """Nothing to score is no error."""
    return _check_model_type(trial, stages.toy_edgeless_model(), _TOY_TARGETS)


def isolated_targets_are_handled(trial: ExplainerTrial) -> str | None:
    """A node without neighbours has an explanation without edges."""
    return _check_model_type(trial, stages.toy_node_model(), [stages.ISOLATED, 0])


def double_precision_is_kept(trial: ExplainerTrial) -> None:
    """Features in double precision have scores in double precision."""
    kinds = {
        score.dtype
        for x in _explain_toy_model(trial, stages.toy_double_model())
        for score in list_scores(x)
    }
    fail_unless(kinds == {torch.float64}, f"float64 became {kinds}")


# --- scores stay with what they are scores of -----------------------------------------------------


def renumbering_nodes_moves_scores_along(trial: ExplainerTrial) -> None:
    """Nodes in another order have the same scores at their new places."""
    require_deterministic(trial.explainer)
    data, number = stages.renumber_nodes(stages.tiny_graph())
    before, after = (
        _explain_plain_model(trial),
        _explain_toy_model(trial, stages.toy_node_model(data=data), number[_TOY_TARGETS].tolist()),
    )
    for x, y in zip(before, after, strict=True):
        if x.feature_score is not None:
            _ensure_scores_close(
                x.feature_matrix(),
                y.feature_matrix()[number],
                f"feature scores of target {x.target} change with the numbering",
            )
        if x.edge_score is not None:
            _ensure_scores_close(
                x.edge_vector(),
                y.edge_vector(),
                f"edge scores of target {x.target} change with the numbering of the nodes",
            )


def permuting_features_moves_scores_along(trial: ExplainerTrial) -> None:
    """Features in another order have the same scores at their new places."""
    require_deterministic(trial.explainer)
    model, order = stages.toy_permuted_features_model()
    for x, y in zip(_explain_plain_model(trial), _explain_toy_model(trial, model), strict=True):
        if x.feature_score is not None and y.feature_score is not None:
            _ensure_scores_close(
                x.feature_score[:, order],
                y.feature_score,
                f"feature scores of target {x.target} do not follow their columns",
            )


def opposite_edges_are_told_apart(trial: ExplainerTrial) -> None:
    """Of two opposite edges between two nodes, the one that carries something scores higher."""
    require_deterministic(trial.explainer)
    (carries, idle) = require_side(
        _explain_toy_model(trial, stages.toy_opposite_edges_model(), [0]), "edge_score"
    )[0].abs()
    fail_unless(
        carries > idle,
        "the edge that carries nothing is scored above the opposite one, which decides",
    )


def shuffling_edges_moves_scores_along(trial: ExplainerTrial) -> None:
    """Edges in another order have the same scores at their new places."""
    require_deterministic(trial.explainer)
    data, order = stages.shuffle_edges(stages.tiny_graph())
    before, after = (
        _explain_plain_model(trial),
        _explain_toy_model(trial, stages.toy_node_model(data=data)),
    )
    for x, y in zip(before, after, strict=True):
        if x.feature_score is not None:
            _ensure_scores_close(
                x.feature_matrix(),
                y.feature_matrix(),
                f"feature scores of target {x.target} change with the order of the edges",
            )
        if x.edge_score is not None:
            _ensure_scores_close(
                x.edge_vector()[order],
                y.edge_vector(),
                f"edge scores of target {x.target} do not follow their edges",
            )


def stored_loops_leave_scores_at_their_edges(trial: ExplainerTrial) -> None:
    """A self-loop stored at every node, where the layers add one anyway, changes no score.

    Random explainers: the edge that alone decides stays on top, if it was there.
    """
    if not trial.explainer.deterministic:
        return _ensure_decisive_edge_stays_on_top(trial)
    plain, looped = stages.tiny_graph(), stages.add_self_loops(stages.tiny_graph())
    before, after = (
        _explain_plain_model(trial),
        _explain_toy_model(trial, stages.toy_node_model(data=looped)),
    )
    require_side(before, "edge_score")
    for x, y in zip(before, after, strict=True):
        _ensure_scores_close(
            x.edge_vector(),
            y.edge_vector()[plain.num_nodes :],
            f"stored loops move the edge scores of target {x.target}",
        )
    return None


def _ensure_decisive_edge_stays_on_top(trial: ExplainerTrial) -> None:
    """The version for random explainers."""
    data = stages.star_graph()
    without, with_them = (
        _star_edge_scores(trial, graph) for graph in (data, stages.add_self_loops(data))
    )
    if not bool((without.argmax(1) == stages.DECISIVE - 1).all()):
        raise InapplicableCheck("without loops the decisive edge is not always on top either")
    found = int(with_them.mean(0)[data.num_nodes :].argmax())
    fail_unless(
        found == stages.DECISIVE - 1,
        f"with stored loops edge {found} is on top instead of edge {stages.DECISIVE - 1}",
    )


def parallel_edges_are_scored_alike(trial: ExplainerTrial) -> None:
    """An edge that is stored twice has twice the same score."""
    require_deterministic(trial.explainer)
    data = stages.tiny_graph()
    xs = _explain_toy_model(trial, stages.toy_node_model(data=stages.duplicate_edges(data)))
    require_side(xs, "edge_score")
    for x in xs:
        first, second = x.edge_vector().split(data.num_edges)
        _ensure_scores_close(
            first, second, f"parallel edges of target {x.target} have different scores"
        )


def strangers_do_not_matter(trial: ExplainerTrial) -> None:
    """A part of the graph that cannot reach the target has no influence on its scores."""
    require_deterministic(trial.explainer)
    before = _explain_plain_model(trial)
    after = _explain_toy_model(
        trial, stages.toy_node_model(data=stages.add_unreachable_part(stages.tiny_graph()))
    )
    ensure_same_scores(before, after, "what cannot reach the target changes its scores")


def cached_layers_are_not_believed(trial: ExplainerTrial) -> None:
    """Layers that remember the edges of another graph are explained on this one."""
    ensure_same_scores(
        _explain_plain_model(trial),
        _explain_toy_model(trial, stages.toy_cached_model()),
        "scores are those of a cached graph",
    )


def kind_of_activation_does_not_matter(trial: ExplainerTrial) -> None:
    """Networks get the same scores with `torch.relu` and with `torch.nn.ReLU`."""
    modular = stages.toy_node_model(stages.build_network(stages.ModuleReLUNet))
    ensure_same_scores(
        _explain_plain_model(trial),
        _explain_toy_model(trial, modular),
        "torch.nn.ReLU gives other scores than torch.relu",
    )


def _ensure_scores_close(first: Tensor, second: Tensor, reason: str) -> None:
    """Fail with ``reason`` where scores differ."""
    fail_unless(relative_difference(first, second) <= SCORE_TOLERANCE, reason)


# --- scores are about the model -------------------------------------------------------------------


def feature_scores_depend_on_the_model(trial: ExplainerTrial) -> str | None:
    """With the same seed, a network with other weights gets other feature scores: no mask stays
    what it was at the start.
    """
    return _ensure_model_dependence(trial, "feature_score")


def edge_scores_depend_on_the_model(trial: ExplainerTrial) -> str | None:
    """With the same seed, a network with other weights gets other edge scores."""
    return _ensure_model_dependence(trial, "edge_score")


def _ensure_model_dependence(trial: ExplainerTrial, side: str) -> str | None:
    """Fail where two networks get the same scores; random scores are meant to."""
    one, other = (
        _explain_plain_model(trial),
        _explain_toy_model(
            trial, stages.toy_node_model(stages.build_network(stages.ToyNet, seed=1))
        ),
    )
    same = all(
        torch.equal(*pair)
        for pair in zip(require_side(one, side), require_side(other, side), strict=True)
    )
    if same and isinstance(trial.explainer, RandomExplainer):
        return "scores do not depend on the model, as it should be with random ones"
    fail_unless(not same, f"{side} is bit for bit the same for two networks with different weights")
    return None


def feature_scores_can_be_ranked(trial: ExplainerTrial) -> None:
    """They are not tied in mass."""
    _ensure_rankable(trial, "feature_score")


def edge_scores_can_be_ranked(trial: ExplainerTrial) -> None:
    """They are not tied in mass: a dozen and more edges have more than three different scores."""
    _ensure_rankable(trial, "edge_score")


def _ensure_rankable(trial: ExplainerTrial, side: str) -> None:
    """Fail where scores take a handful of values."""
    for score in require_side(_explain_plain_model(trial), side):
        values = len(score.unique())
        fail_unless(
            values > _MAX_TIED_VALUES,
            f"{side} takes only {values} different values for {score.numel()} elements",
        )


def decisive_feature_comes_first(trial: ExplainerTrial) -> str | None:
    """Where one feature alone decides, it is on top; it is never below all those that cannot
    matter.
    """
    xs = _explain_toy_model(trial, stages.toy_decisive_feature_model(), [0] * _num_repeats(trial))
    mean = torch.stack(require_side(xs, "feature_score")).mean(0).sum(0)
    return _remark_on_rank(trial, mean, stages.DECISIVE, "feature")


def decisive_edge_comes_first(trial: ExplainerTrial) -> str | None:
    """Where one edge alone carries anything, it is on top; it is never below all those that carry
    nothing.
    """
    return _remark_on_rank(
        trial, _star_edge_scores(trial, stages.star_graph()).mean(0), stages.DECISIVE - 1, "edge"
    )


def _star_edge_scores(trial: ExplainerTrial, data: Data) -> Tensor:
    """Edge scores of the star's centre, repeated where they are random.  (repeats, E)"""
    xs = _explain_toy_model(trial, stages.toy_star_model(data), [0] * _num_repeats(trial))
    require_side(xs, "edge_score")
    return torch.stack([x.edge_vector() for x in xs])


def _num_repeats(trial: ExplainerTrial) -> int:
    """How often a target is explained."""
    return 1 if trial.explainer.deterministic else _NUM_REPEATS


def _remark_on_rank(trial: ExplainerTrial, mean: Tensor, decisive: int, what: str) -> str | None:
    """On top: nothing to say; at the bottom: upside down; in between: a remark, since quality is
    what metrics measure.
    """
    above = int((mean > mean[decisive]).sum())
    tied = int((mean == mean[decisive]).sum()) - 1
    others = len(mean) - 1
    if above == 0 and tied == 0:
        return None
    fail_unless(
        above < others or isinstance(trial.explainer, RandomExplainer),
        f"the {what} that alone decides is the last of all",
    )
    return (
        f"{above} of {others} {what}s that cannot matter are above the one that alone decides, "
        f"{tied} are level with it"
    )


TOY_MODEL_CHECKS = (
    link_models_are_handled,
    graph_models_are_handled,
    regression_models_are_handled,
    one_column_models_are_handled,
    weighted_models_are_handled,
    graphs_without_edges_are_handled,
    isolated_targets_are_handled,
    double_precision_is_kept,
    renumbering_nodes_moves_scores_along,
    permuting_features_moves_scores_along,
    opposite_edges_are_told_apart,
    shuffling_edges_moves_scores_along,
    stored_loops_leave_scores_at_their_edges,
    parallel_edges_are_scored_alike,
    strangers_do_not_matter,
    cached_layers_are_not_believed,
    kind_of_activation_does_not_matter,
    feature_scores_depend_on_the_model,
    edge_scores_depend_on_the_model,
    feature_scores_can_be_ranked,
    edge_scores_can_be_ranked,
    decisive_feature_comes_first,
    decisive_edge_comes_first,
)
