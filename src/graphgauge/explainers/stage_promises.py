"""Promises of an explainer that are tried on tiny networks and graphs of our own (`stages`), where
the answer is known.

An explainer that refuses such a network by an error of its own kind (an attention explainer has no
use for a GCN) is skipped.
"""

import warnings
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from graphgauge.core.errors import BadExplanation, GraphgaugeError, GraphgaugeWarning
from graphgauge.core.xplanation import Xplanation
from graphgauge.explainers import stages
from graphgauge.explainers.random_scores import RandomExplainer
from graphgauge.explainers.trials import (
    CLOSE,
    Trial,
    ensure_same,
    gap,
    is_same,
    need_deterministic,
    scored,
    side_of,
    sides_of,
)
from graphgauge.models import BaseModel
from graphgauge.models.promises import Inapplicable, ensure

TARGETS = [0, 4, 9]  #: nodes of a stage with many edges around them
REPEATS = 8  #: explanations that are averaged where they are random
MANY_VALUES = 3  #: a ranking needs more different values than this


def explained(trial: Trial, model: BaseModel, targets: Any) -> list[Xplanation]:
    """Explanations on a stage, without warnings about networks that are not the user's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphgaugeWarning)
        return trial.explainer.explain(model, targets, seed=0)


def played(trial: Trial, model: BaseModel, targets: list[int] | None = None) -> list[Xplanation]:
    """Explanations on a stage; skips the check if the explainer refuses the network, or gives no
    scores.
    """
    try:
        return scored(explained(trial, model, TARGETS if targets is None else targets))
    except BadExplanation:
        raise
    except GraphgaugeError as error:
        raise Inapplicable(f"it refuses this check's network: {error}") from error


def reference(trial: Trial) -> list[Xplanation]:
    """Explanations on the plain stage, made once."""
    if "plain" not in trial.kept:
        trial.kept["plain"] = played(trial, stages.node_stage())
    return trial.kept["plain"]


# --- every kind of model --------------------------------------------------------------------------


def handled(
    trial: Trial,
    model: BaseModel,
    targets: list[int] | list[tuple[int, int]],
    other: BaseModel | None = None,
) -> str | None:
    """Finite scores of the right form, different for an ``other`` network; or a remark that such
    models are refused.
    """
    try:
        xs = explained(trial, model, targets)
    except BadExplanation:
        raise
    except GraphgaugeError as error:
        return f"such models are refused: {error}"
    ensure(
        [x.target for x in xs] == targets,
        f"targets {targets} gave explanations of {[x.target for x in xs]}",
    )
    for x, graph in zip(xs, model.computation_graphs(targets), strict=True):
        ensure(
            torch.equal(x.nodes, graph.nodes) and torch.equal(x.edges, graph.edges),
            f"ids of {x.target} are wrong",
        )
        ensure(
            all(bool(score.isfinite().all()) for score in sides_of(x)),
            f"scores of {x.target} are NaN or infinite",
        )
    if (
        other is not None
        and any(sides_of(x) for x in xs)
        and not isinstance(trial.explainer, RandomExplainer)
    ):
        ensure(
            not is_same(xs, explained(trial, other, targets)),
            "two networks with different weights get the same scores",
        )
    return None


def link_models_are_handled(trial: Trial) -> str | None:
    """Classes of links, by encode and decode."""
    return handled(trial, stages.link_stage(), [(0, 4), (9, 2)], stages.link_stage(seed=1))


def graph_models_are_handled(trial: Trial) -> str | None:
    """Classes of whole graphs."""
    return handled(trial, stages.graph_stage(), [0, 2], stages.graph_stage(seed=1))


def regression_models_are_handled(trial: Trial) -> str | None:
    """Values of nodes."""
    return handled(trial, stages.regression_stage(), TARGETS)


def one_column_models_are_handled(trial: Trial) -> str | None:
    """Two classes as one logit."""
    return handled(trial, stages.one_column_stage(), TARGETS)


def weighted_models_are_handled(trial: Trial) -> str | None:
    """Networks that take weights of edges."""
    return handled(trial, stages.weighted_stage(), TARGETS)


def graphs_without_edges_are_handled(trial: Trial) -> str | None:
    """Nothing to score is no error."""
    return handled(trial, stages.bare_stage(), TARGETS)


def isolated_targets_are_handled(trial: Trial) -> str | None:
    """A node without neighbours has an explanation without edges."""
    return handled(trial, stages.node_stage(), [stages.ISOLATED, 0])


def double_precision_is_kept(trial: Trial) -> None:
    """Features in double precision have scores in double precision."""
    kinds = {score.dtype for x in played(trial, stages.double_stage()) for score in sides_of(x)}
    ensure(kinds == {torch.float64}, f"float64 became {kinds}")


# --- scores stay with what they are scores of -----------------------------------------------------


def renumbering_nodes_moves_scores_along(trial: Trial) -> None:
    """Nodes in another order have the same scores at their new places."""
    need_deterministic(trial.explainer)
    data, number = stages.renumbered(stages.tiny_graph())
    before, after = (
        reference(trial),
        played(trial, stages.node_stage(data=data), number[TARGETS].tolist()),
    )
    for x, y in zip(before, after, strict=True):
        if x.feature_score is not None:
            close(
                x.feature_matrix(),
                y.feature_matrix()[number],
                f"feature scores of target {x.target} change with the numbering",
            )
        if x.edge_score is not None:
            close(
                x.edge_vector(),
                y.edge_vector(),
                f"edge scores of target {x.target} change with the numbering of the nodes",
            )


def permuting_features_moves_scores_along(trial: Trial) -> None:
    """Features in another order have the same scores at their new places."""
    need_deterministic(trial.explainer)
    model, order = stages.with_permuted_features()
    for x, y in zip(reference(trial), played(trial, model), strict=True):
        if x.feature_score is not None and y.feature_score is not None:
            close(
                x.feature_score[:, order],
                y.feature_score,
                f"feature scores of target {x.target} do not follow their columns",
            )


def opposite_edges_are_told_apart(trial: Trial) -> None:
    """Of two opposite edges between two nodes, the one that carries something scores higher."""
    need_deterministic(trial.explainer)
    (carries, idle) = side_of(played(trial, stages.there_and_back(), [0]), "edge_score")[0].abs()
    ensure(
        carries > idle,
        "the edge that carries nothing is scored above the opposite one, which decides",
    )


def shuffling_edges_moves_scores_along(trial: Trial) -> None:
    """Edges in another order have the same scores at their new places."""
    need_deterministic(trial.explainer)
    data, order = stages.shuffled(stages.tiny_graph())
    before, after = reference(trial), played(trial, stages.node_stage(data=data))
    for x, y in zip(before, after, strict=True):
        if x.feature_score is not None:
            close(
                x.feature_matrix(),
                y.feature_matrix(),
                f"feature scores of target {x.target} change with the order of the edges",
            )
        if x.edge_score is not None:
            close(
                x.edge_vector()[order],
                y.edge_vector(),
                f"edge scores of target {x.target} do not follow their edges",
            )


def stored_loops_leave_scores_at_their_edges(trial: Trial) -> None:
    """A self-loop stored at every node, where the layers add one anyway, changes no score.

    Random explainers: the edge that alone decides stays on top, if it was there.
    """
    if not trial.explainer.deterministic:
        return loops_leave_the_decisive_edge_on_top(trial)
    plain, looped = stages.tiny_graph(), stages.with_loops(stages.tiny_graph())
    before, after = reference(trial), played(trial, stages.node_stage(data=looped))
    side_of(before, "edge_score")
    for x, y in zip(before, after, strict=True):
        close(
            x.edge_vector(),
            y.edge_vector()[plain.num_nodes :],
            f"stored loops move the edge scores of target {x.target}",
        )
    return None


def loops_leave_the_decisive_edge_on_top(trial: Trial) -> None:
    """The version for random explainers."""
    data = stages.star()
    without, with_them = (edge_scores(trial, graph) for graph in (data, stages.with_loops(data)))
    if not bool((without.argmax(1) == stages.DECISIVE - 1).all()):
        raise Inapplicable("without loops the decisive edge is not always on top either")
    found = int(with_them.mean(0)[data.num_nodes :].argmax())
    ensure(
        found == stages.DECISIVE - 1,
        f"with stored loops edge {found} is on top instead of edge {stages.DECISIVE - 1}",
    )


def parallel_edges_are_scored_alike(trial: Trial) -> None:
    """An edge that is stored twice has twice the same score."""
    need_deterministic(trial.explainer)
    data = stages.tiny_graph()
    xs = played(trial, stages.node_stage(data=stages.doubled(data)))
    side_of(xs, "edge_score")
    for x in xs:
        first, second = x.edge_vector().split(data.num_edges)
        close(first, second, f"parallel edges of target {x.target} have different scores")


def strangers_do_not_matter(trial: Trial) -> None:
    """A part of the graph that cannot reach the target has no influence on its scores."""
    need_deterministic(trial.explainer)
    before = reference(trial)
    after = played(trial, stages.node_stage(data=stages.with_stranger(stages.tiny_graph())))
    ensure_same(before, after, "what cannot reach the target changes its scores")


def cached_layers_are_not_believed(trial: Trial) -> None:
    """Layers that remember the edges of another graph are explained on this one."""
    ensure_same(
        reference(trial), played(trial, stages.cached_stage()), "scores are those of a cached graph"
    )


def kind_of_activation_does_not_matter(trial: Trial) -> None:
    """Networks get the same scores with `torch.relu` and with `torch.nn.ReLU`."""
    modular = stages.node_stage(stages.built(stages.Modular))
    ensure_same(
        reference(trial), played(trial, modular), "torch.nn.ReLU gives other scores than torch.relu"
    )


def close(first: Tensor, second: Tensor, reason: str) -> None:
    """Fail with ``reason`` where scores differ."""
    ensure(gap(first, second) <= CLOSE, reason)


# --- scores are about the model -------------------------------------------------------------------


def feature_scores_depend_on_the_model(trial: Trial) -> str | None:
    """With the same seed, a network with other weights gets other feature scores: no mask stays
    what it was at the start.
    """
    return depends(trial, "feature_score")


def edge_scores_depend_on_the_model(trial: Trial) -> str | None:
    """With the same seed, a network with other weights gets other edge scores."""
    return depends(trial, "edge_score")


def depends(trial: Trial, side: str) -> str | None:
    """Fail where two networks get the same scores; random scores are meant to."""
    one, other = (
        reference(trial),
        played(trial, stages.node_stage(stages.built(stages.Functional, seed=1))),
    )
    same = all(
        torch.equal(*pair) for pair in zip(side_of(one, side), side_of(other, side), strict=True)
    )
    if same and isinstance(trial.explainer, RandomExplainer):
        return "scores do not depend on the model, as it should be with random ones"
    ensure(not same, f"{side} is bit for bit the same for two networks with different weights")
    return None


def feature_scores_can_be_ranked(trial: Trial) -> None:
    """They are not tied in mass."""
    can_be_ranked(trial, "feature_score")


def edge_scores_can_be_ranked(trial: Trial) -> None:
    """They are not tied in mass: a dozen and more edges have more than three different scores."""
    can_be_ranked(trial, "edge_score")


def can_be_ranked(trial: Trial, side: str) -> None:
    """Fail where scores take a handful of values."""
    for score in side_of(reference(trial), side):
        values = len(score.unique())
        ensure(
            values > MANY_VALUES,
            f"{side} takes only {values} different values for {score.numel()} elements",
        )


def decisive_feature_comes_first(trial: Trial) -> str | None:
    """Where one feature alone decides, it is on top; it is never below all those that cannot
    matter.
    """
    xs = played(trial, stages.decisive_feature_stage(), [0] * repeats(trial))
    mean = torch.stack(side_of(xs, "feature_score")).mean(0).sum(0)
    return verdict(trial, mean, stages.DECISIVE, "feature")


def decisive_edge_comes_first(trial: Trial) -> str | None:
    """Where one edge alone carries anything, it is on top; it is never below all those that carry
    nothing.
    """
    return verdict(trial, edge_scores(trial, stages.star()).mean(0), stages.DECISIVE - 1, "edge")


def edge_scores(trial: Trial, data: Data) -> Tensor:
    """Edge scores of the star's centre, repeated where they are random.  (repeats, E)"""
    xs = played(trial, stages.star_stage(data), [0] * repeats(trial))
    side_of(xs, "edge_score")
    return torch.stack([x.edge_vector() for x in xs])


def repeats(trial: Trial) -> int:
    """How often a target is explained."""
    return 1 if trial.explainer.deterministic else REPEATS


def verdict(trial: Trial, mean: Tensor, decisive: int, what: str) -> str | None:
    """On top: nothing to say; at the bottom: upside down; in between: a remark, since quality is
    what metrics measure.
    """
    above = int((mean > mean[decisive]).sum())
    tied = int((mean == mean[decisive]).sum()) - 1
    others = len(mean) - 1
    if above == 0 and tied == 0:
        return None
    ensure(
        above < others or isinstance(trial.explainer, RandomExplainer),
        f"the {what} that alone decides is the last of all",
    )
    return (
        f"{above} of {others} {what}s that cannot matter are above the one that alone decides, "
        f"{tied} are level with it"
    )


STAGE_CHECKS = (
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
