"""The checks of an explainer on the user's own model.

Each check is one small function, named for what must be true. A check that passes returns nothing,
or a remark if people should know something. Otherwise it raises `InapplicableCheck` (the check says
nothing about this explainer) or an AssertionError with the reason (the check fails).
Those in `explainer_toy_checks` are about networks of our own.
"""

import json
import math
import pickle
import random
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from graphgauge.checks.explainer_toy_checks import TOY_MODEL_CHECKS
from graphgauge.checks.explainer_trial import (
    SCORE_SIDES,
    ExplainerTrial,
    ModuleCallCounter,
    ensure_same_scores,
    fresh_predictions,
    have_same_scores,
    is_deeply_equal,
    list_scores,
    raises_error,
    require_scores,
)
from graphgauge.checks.model_checks import (
    capture_state,
    fail_if_network_changes,
    fail_if_state_differs,
    wrong_targets,
)
from graphgauge.checks.suite import InapplicableCheck, fail_unless
from graphgauge.core import (
    BadSetting,
    BadTarget,
    GraphgaugeError,
    OutOfMemory,
    Xplanation,
    preserve_rng_state,
    to_json_value,
)
from graphgauge.explainers import (
    ENTRY_POINT_GROUP,
    InputXGradient,
    OtherTaskExplainer,
    explainer_sources,
    find_explainer_class,
)

_MOST_ATTEMPTS = 3  #: runs in which a call is made to fail, where runs differ in their calls

# --- what an explanation holds --------------------------------------------------------------------


def one_explanation_per_target_in_order(trial: ExplainerTrial) -> None:
    """As many as targets, each of its own, at the model's level."""
    fail_unless(
        all(isinstance(x, Xplanation) for x in trial.xs),
        "not everything that is returned is an Xplanation",
    )
    found = [x.target for x in trial.xs]
    fail_unless(found == trial.targets, f"targets {trial.targets} gave explanations of {found}")
    fail_unless(
        all(x.level == trial.model.level for x in trial.xs),
        f"not all are explanations of a {trial.model.level}",
    )


def ids_are_those_of_the_computation_graph(trial: ExplainerTrial) -> None:
    """Nodes and edges are listed as the model lists them."""
    for x, graph in zip(trial.xs, trial.model.computation_graphs(trial.targets), strict=False):
        fail_unless(
            torch.equal(x.nodes, graph.nodes),
            f"nodes of target {x.target} are not those of its computation graph",
        )
        fail_unless(
            torch.equal(x.edges, graph.edges),
            f"edges of target {x.target} are not those of its computation graph",
        )
        sizes = (x.num_nodes, x.num_edges)
        whole = (graph.num_source_nodes, graph.num_source_edges)
        fail_unless(
            sizes == whole,
            f"target {x.target} is said to lie in a graph of {sizes} nodes and edges, but it has "
            f"{whole}",
        )


def scores_fit_their_ids(trial: ExplainerTrial) -> None:
    """(n, F) for the features, (E_rel,) for the edges."""
    F = trial.model.source.x.size(1)
    for x in trial.scored:
        for side, shape in (("feature_score", (len(x.nodes), F)), ("edge_score", (len(x.edges),))):
            score = getattr(x, side)
            found = None if score is None else tuple(score.shape)
            fail_unless(
                found in (None, shape),
                f"{side} of target {x.target} has shape {found} instead of {shape}",
            )


def scores_are_given(trial: ExplainerTrial) -> None:
    """Features or edges are scored, unless the explainer is of a kind that has no scores."""
    has_scores = any(list_scores(x) for x in trial.xs) or isinstance(
        trial.explainer, OtherTaskExplainer
    )
    fail_unless(
        has_scores,
        "there are neither feature nor edge scores; an OtherTaskExplainer may do without",
    )


def every_target_has_the_same_sides(trial: ExplainerTrial) -> str | None:
    """Features, or edges, are scored for all targets or for none."""
    has = {tuple(getattr(x, side) is not None for side in SCORE_SIDES) for x in trial.scored}
    fail_unless(
        len(has) == 1, "some targets have scores of features or of edges that others do not have"
    )
    missing = [
        side for side, is_there in zip(SCORE_SIDES, next(iter(has)), strict=True) if not is_there
    ]
    return f"there is no {missing[0]}" if missing else None


def scores_are_finite(trial: ExplainerTrial) -> None:
    """No NaN, no infinity."""
    bad = [
        x.target
        for x in trial.scored
        if not all(bool(score.isfinite().all()) for score in list_scores(x))
    ]
    fail_unless(
        not bad, f"scores of {len(bad)} targets are NaN or infinite, the first is {bad[:1]}"
    )


def scores_are_like_the_features(trial: ExplainerTrial) -> None:
    """Of their type and on their device."""
    x, places = (
        trial.model.source.x,
        {(score.dtype, score.device) for item in trial.scored for score in list_scores(item)},
    )
    fail_unless(
        places == {(x.dtype, x.device)}, f"features are {x.dtype} on {x.device}, scores {places}"
    )


def scores_carry_no_gradient(trial: ExplainerTrial) -> None:
    """They hold no history of how they were computed."""
    fail_unless(
        not any(score.requires_grad for x in trial.scored for score in list_scores(x)),
        "scores require a gradient",
    )


def scores_have_memory_of_their_own(trial: ExplainerTrial) -> None:
    """Writing into one explanation changes neither another one nor the data."""
    scores = [score for x in trial.scored for score in list_scores(x) if score.numel()]
    places = [score.untyped_storage().data_ptr() for score in scores]
    fail_unless(len(set(places)) == len(places), "two sides, or explanations, share their memory")
    fail_unless(
        trial.model.source.x.untyped_storage().data_ptr() not in places,
        "scores are the features themselves",
    )


def scores_are_not_all_zero(trial: ExplainerTrial) -> str | None:
    """Something matters for each target."""
    silent = [
        x.target for x in trial.scored if not any(bool(score.any()) for score in list_scores(x))
    ]
    return (
        f"all scores of {len(silent)} of {len(trial.xs)} targets are 0, the first is {silent[0]}"
        if silent
        else None
    )


def scores_are_not_all_equal(trial: ExplainerTrial) -> str | None:
    """Something matters more than something else."""
    flat = [
        x.target
        for x in trial.scored
        if all(score.numel() < 2 or len(score.unique()) == 1 for score in list_scores(x))
    ]
    return (
        f"all scores of {len(flat)} of {len(trial.xs)} targets are equal, the first is {flat[0]}"
        if flat
        else None
    )


def signs_are_as_declared(trial: ExplainerTrial) -> str | None:
    """Scores below 0 only where scores carry a direction."""
    negative = any(bool((score < 0).any()) for x in trial.scored for score in list_scores(x))
    fail_unless(
        not negative or trial.explainer.signed, "some scores are negative, but signed is False"
    )
    return (
        "signed is True, but no score is negative here"
        if trial.explainer.signed and not negative
        else None
    )


def predictions_are_the_models(trial: ExplainerTrial) -> None:
    """An explanation stores what it explains."""
    for x, pred in zip(trial.xs, trial.model.pred_continuous(trial.targets), strict=False):
        found = torch.empty(0) if x.prediction is None else x.prediction
        fail_unless(
            found.shape == pred.shape, f"target {x.target} has no prediction like the model's"
        )
        fail_unless(
            bool(torch.allclose(found, pred, atol=1e-5)),
            f"the prediction of target {x.target} is not the model's",
        )


def explanations_say_how_they_were_made(trial: ExplainerTrial) -> None:
    """By which explainer, with which parameters and from which seed."""
    for x in trial.xs:
        fail_unless(
            x.explainer == trial.explainer.name,
            f"{x.explainer!r} is named instead of {trial.explainer.name!r}",
        )
        fail_unless(
            is_deeply_equal(x.params, trial.explainer.params),
            f"params {x.params!r} are not those of the explainer",
        )
        fail_unless(isinstance(x.seed, int) and x.seed >= 0, f"seed is {x.seed!r}")


def seconds_are_positive(trial: ExplainerTrial) -> None:
    """The time that an explanation took is measured."""
    seconds = [x.seconds for x in trial.xs]
    fail_unless(
        all(isinstance(s, float) and 0 < s < math.inf for s in seconds), f"seconds are {seconds}"
    )


def explanations_can_be_saved(trial: ExplainerTrial) -> None:
    """And read again as they were."""
    with TemporaryDirectory() as folder:
        for x in trial.xs[:1]:
            x.save(Path(folder) / "x")
            again = Xplanation.load(Path(folder) / "x")
            ensure_same_scores([x], [again], "scores changed on the way")
            fail_unless(
                (again.target, again.params) == (x.target, x.params),
                f"params {x.params!r} came back as {again.params!r}",
            )


# --- what an explainer is -------------------------------------------------------------------------


def explainer_says_what_it_is(trial: ExplainerTrial) -> None:
    """A name, and whether scores are signed and deterministic."""
    name, flags = trial.explainer.name, (trial.explainer.signed, trial.explainer.deterministic)
    fail_unless(isinstance(name, str) and bool(name.strip()), f"name is {name!r}")
    fail_unless(
        all(isinstance(flag, bool) for flag in flags), f"signed and deterministic are {flags}"
    )


def explainer_cannot_be_changed(trial: ExplainerTrial) -> None:
    """It is frozen, and can be a key of a dictionary."""
    hash(trial.explainer)
    name = fields(trial.explainer)[0].name if fields(trial.explainer) else "anything"
    value = getattr(trial.explainer, name, None)
    fail_unless(
        raises_error(lambda: setattr(trial.explainer, name, value), FrozenInstanceError),
        f"{name} can be set: freeze the dataclass",
    )


def params_rebuild_the_explainer(trial: ExplainerTrial) -> str | None:
    """``type(explainer)(**explainer.params)`` is the same explainer."""
    try:
        again = type(trial.explainer)(**trial.explainer.params)
    except GraphgaugeError as error:
        return f"it cannot be made again from a stored explanation: {error}"
    fail_unless(
        is_deeply_equal(again, trial.explainer), f"params make {again!r} of {trial.explainer!r}"
    )
    return None


def params_are_plain(trial: ExplainerTrial) -> None:
    """Numbers, texts, lists and dictionaries, so that they can be stored."""
    fail_unless(
        isinstance(trial.explainer.params, dict),
        f"params are a {type(trial.explainer.params).__name__}",
    )
    json.dumps(to_json_value(trial.explainer.params), allow_nan=False)


def name_is_its_own(trial: ExplainerTrial) -> str | None:
    """In the registry the name means this explainer."""
    name = trial.explainer.name
    if name not in explainer_sources():
        return (
            f"{name!r} is not a registered name: experiment files cannot use it "
            f"(see entry points `{ENTRY_POINT_GROUP}`)"
        )
    owner = find_explainer_class(name)
    fail_unless(
        owner is type(trial.explainer),
        f"{name!r} is the name of {owner.__module__}.{owner.__qualname__}",
    )
    return None


def explainer_can_travel(trial: ExplainerTrial) -> str | None:
    """To a worker process and back."""
    try:
        text = pickle.dumps(trial.explainer)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        return f"it cannot be sent to worker processes: {error}"
    fail_unless(
        is_deeply_equal(pickle.loads(text), trial.explainer),
        "it comes back from a worker process as another one",
    )
    return None


def explainer_is_unchanged_by_use(trial: ExplainerTrial) -> None:
    """It keeps nothing between two calls."""
    before = repr(vars(trial.explainer))
    trial.run(trial.targets[:1])
    fail_unless(repr(vars(trial.explainer)) == before, "its attributes have changed")


# --- what scores may depend on --------------------------------------------------------------------


def same_seed_gives_the_same_scores(trial: ExplainerTrial) -> None:
    """A second run is a repetition of the first."""
    ensure_same_scores(trial.scored, trial.run(), "a second run differs")


def seed_matters_as_declared(trial: ExplainerTrial) -> None:
    """Another seed gives other scores, unless the explainer is deterministic."""
    same = have_same_scores(trial.scored, trial.run(seed=1))
    if trial.explainer.deterministic:
        fail_unless(same, "another seed gives other scores, but deterministic is True")
    fail_unless(
        same == trial.explainer.deterministic,
        "another seed gives the same scores, but deterministic is False",
    )


def repetitions_are_independent_as_declared(trial: ExplainerTrial) -> None:
    """A target named twice gets two explanations, which differ unless the explainer is
    deterministic.
    """
    first, second = require_scores(trial.run([trial.targets[0]] * 2))
    same = have_same_scores([first], [second])
    if trial.explainer.deterministic:
        fail_unless(same, "two explanations of a target differ, but deterministic is True")
    fail_unless(
        same == trial.explainer.deterministic,
        "two explanations of a target are copies, but deterministic is False",
    )


def repetitions_do_not_depend_on_the_batch(trial: ExplainerTrial) -> None:
    """The second explanation of a target is the same whatever else is explained."""
    first = trial.targets[0]
    among, alone = trial.run([first, *trial.targets[1:], first]), trial.run([first, first])
    ensure_same_scores(
        require_scores(alone),
        [among[0], among[-1]],
        "other targets in the batch change a repetition",
    )


def batch_is_what_its_targets_get_alone(trial: ExplainerTrial) -> None:
    """Targets do not influence each other."""
    ensure_same_scores(
        trial.scored,
        [x for target in trial.targets for x in trial.run([target])],
        "alone scores differ",
    )


def order_of_targets_does_not_matter(trial: ExplainerTrial) -> None:
    """Reversed targets get reversed explanations."""
    ensure_same_scores(
        trial.scored,
        trial.run(trial.targets[::-1])[::-1],
        "scores depend on the order of the targets",
    )


def memory_budget_does_not_matter(trial: ExplainerTrial) -> None:
    """One copy at a time gives the same scores."""
    expected, engine = trial.scored, trial.model.executor
    budget = engine.budget
    try:
        engine.budget = 1
        tight = trial.run()
    except OutOfMemory as error:
        raise InapplicableCheck(f"this model cannot do with less memory: {error}") from error
    finally:
        engine.budget = budget
    ensure_same_scores(expected, tight, "scores depend on the memory budget")


def global_seed_does_not_matter(trial: ExplainerTrial) -> None:
    """The random states of torch, NumPy and Python play no role."""
    expected = trial.scored
    with preserve_rng_state():
        torch.manual_seed(12345)
        np.random.seed(12345)
        random.seed(12345)
        ensure_same_scores(expected, trial.run(), "scores depend on the global random states")


def gradient_mode_does_not_matter(trial: ExplainerTrial) -> None:
    """Under `torch.no_grad` the scores are the same."""
    expected = trial.scored
    with torch.no_grad():
        ensure_same_scores(expected, trial.run(), "scores differ under torch.no_grad")


def training_mode_does_not_matter(trial: ExplainerTrial) -> None:
    """A network in training mode is explained as it answers in evaluation mode, and is in training
    mode again afterwards.
    """
    expected, flags = (
        trial.scored,
        {module: module.training for module in trial.model.net.modules()},
    )
    try:
        trial.model.net.train()
        ensure_same_scores(expected, trial.run(), "scores depend on the training mode")
        fail_unless(all(module.training for module in flags), "training mode is not restored")
    finally:
        for module, flag in flags.items():
            module.training = flag


def other_explainers_do_not_matter(trial: ExplainerTrial) -> None:
    """The scores are the same after another explainer has run."""
    expected = trial.scored
    InputXGradient().explain(trial.model, trial.targets)
    ensure_same_scores(expected, trial.run(), "scores differ after input_x_gradient has run")


# --- the network stays what it was ----------------------------------------------------------------


def network_is_untouched(trial: ExplainerTrial) -> None:
    """Parameters, buffers, gradients, hooks, settings and random states are as before anything was
    explained.
    """
    trial.run()
    fail_if_state_differs(trial.state, capture_state(trial.model))


def network_is_untouched_by_failures(trial: ExplainerTrial) -> str | None:
    """The same when a call inside the network fails, half-way and at the end; and the failure is
    not swallowed.
    """
    trial.run()  # what is found out only once is known now
    if not trial.num_calls():
        raise InapplicableCheck("the network is not called")
    not_reached = []
    for place, share in (("first", 0.0), ("middle", 0.5), ("last", 1.0)):
        with fail_if_network_changes(trial.model):
            if not _try_failing_call(trial, place, share):
                not_reached.append(place)
    return (
        f"runs make different numbers of calls: no failure of the {' or '.join(not_reached)} one "
        "was tried"
        if not_reached
        else None
    )


def _try_failing_call(trial: ExplainerTrial, place: str, share: float) -> bool:
    """Make a call fail, that share of the way through a run; whether a run came so far.

    Two runs can differ in their calls: copies are planned anew once more is known of the memory
    that they take.
    """
    for _ in range(_MOST_ATTEMPTS):
        number = trial.num_calls()
        with ModuleCallCounter(fail_at=max(1, math.ceil(share * number))) as calls:
            is_raised = raises_error(trial.run, Exception)
        if calls.has_failed:
            fail_unless(is_raised, f"a failure of the {place} of {number} calls is swallowed")
            return True
    return False


def predictions_stay_the_same(trial: ExplainerTrial) -> None:
    """Called once more, the network gives the same answer as before anything was explained."""
    trial.run()
    fail_unless(
        torch.equal(fresh_predictions(trial.model), trial.answer),
        "the network answers differently afterwards",
    )


def data_is_untouched(trial: ExplainerTrial) -> None:
    """No explainer writes into the data."""
    source = trial.model.source
    tensors = [source.edge_index, *source.node_attrs.values(), *source.edge_attrs.values()]
    before = [tensor.clone() for tensor in tensors]
    trial.run()
    fail_unless(all(map(torch.equal, tensors, before)), "data has changed")


# --- what is asked for ----------------------------------------------------------------------------


def no_targets_give_no_explanations(trial: ExplainerTrial) -> None:
    """An empty list is a valid question."""
    fail_unless(trial.run([]) == [], "explanations are made for no target")


def wrong_targets_are_refused(trial: ExplainerTrial) -> None:
    """Out of range, negative, or of another kind."""
    for target in wrong_targets(trial.model):
        fail_unless(
            raises_error(partial(trial.run, [target]), BadTarget),
            f"target {target!r} is accepted",
        )


def wrong_seeds_are_refused(trial: ExplainerTrial) -> None:
    """Negative, fractional, or no number."""
    for seed in (-1, 0.5, True, "0", None):
        refused = raises_error(
            lambda seed=seed: trial.run(trial.targets[:1], seed=seed),  # type: ignore[misc]
            BadSetting,
        )
        fail_unless(refused, f"seed {seed!r} is accepted")


_ExplainerCheck = Callable[[ExplainerTrial], str | None]

#: every promise, by name
EXPLAINER_CHECKS: dict[str, _ExplainerCheck] = {
    check.__name__: check
    for check in (
        one_explanation_per_target_in_order,
        ids_are_those_of_the_computation_graph,
        scores_fit_their_ids,
        scores_are_given,
        every_target_has_the_same_sides,
        scores_are_finite,
        scores_are_like_the_features,
        scores_carry_no_gradient,
        scores_have_memory_of_their_own,
        scores_are_not_all_zero,
        scores_are_not_all_equal,
        signs_are_as_declared,
        predictions_are_the_models,
        explanations_say_how_they_were_made,
        seconds_are_positive,
        explanations_can_be_saved,
        explainer_says_what_it_is,
        explainer_cannot_be_changed,
        params_rebuild_the_explainer,
        params_are_plain,
        name_is_its_own,
        explainer_can_travel,
        explainer_is_unchanged_by_use,
        same_seed_gives_the_same_scores,
        seed_matters_as_declared,
        repetitions_are_independent_as_declared,
        repetitions_do_not_depend_on_the_batch,
        batch_is_what_its_targets_get_alone,
        order_of_targets_does_not_matter,
        memory_budget_does_not_matter,
        global_seed_does_not_matter,
        gradient_mode_does_not_matter,
        training_mode_does_not_matter,
        other_explainers_do_not_matter,
        network_is_untouched,
        network_is_untouched_by_failures,
        predictions_stay_the_same,
        data_is_untouched,
        no_targets_give_no_explanations,
        wrong_targets_are_refused,
        wrong_seeds_are_refused,
        *TOY_MODEL_CHECKS,
    )
}
