"""The promises of a wrapped network, one small function each, named for what must be true.

A function returns nothing (kept), returns a remark (kept, but people should know), raises
`InapplicableCheck` (says nothing about this model) or an AssertionError with the reason (broken).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphgauge.checks.suite import InapplicableCheck, fail_unless
from graphgauge.core import BadTarget
from graphgauge.execution import ADVICE_WITHOUT_MASKS, ALONE, GraphBatch, GraphCopies
from graphgauge.models import BaseModel, features_matter_beyond, is_close, network_tensors
from graphgauge.subgraphs import HALOS

# --- predictions ----------------------------------------------------------------------------------


def predictions_have_one_row_per_target(model: BaseModel, targets: Tensor) -> None:
    """Probabilities (T, C) with C >= 2, or values (T,)."""
    pred = model.pred_continuous(targets)
    wanted = 2 if model.task == "classification" else 1
    fail_unless(pred.dim() == wanted, f"predictions have shape {tuple(pred.shape)}")
    fail_unless(len(pred) == len(targets), f"{len(targets)} targets gave {len(pred)} rows")


def predictions_are_finite(model: BaseModel, targets: Tensor) -> None:
    """No NaN, no infinity."""
    fail_unless(
        bool(model.pred_continuous(model.population()).isfinite().all()),
        "some predictions are NaN or infinite",
    )


def probabilities_add_up_to_one(model: BaseModel, targets: Tensor) -> None:
    """Each row is a distribution over the classes."""
    _require_task(model, "classification")
    prob = model.pred_continuous(targets)
    fail_unless(bool((prob >= 0).all()), "a probability is negative")
    gap = float((prob.sum(1) - 1).abs().max())
    fail_unless(gap <= 1e-4, f"a row adds up to 1 only within {gap:.2g}")


def classes_are_the_likeliest(model: BaseModel, targets: Tensor) -> None:
    """`pred_discrete` returns the class with the highest probability.

    Among equal probabilities it returns the class with the lowest number.
    """
    _require_task(model, "classification")
    prob, label = model.pred_continuous(targets), model.pred_discrete(targets)
    expected = [int(np.argmax(row.cpu().numpy())) for row in prob]
    fail_unless(
        label.tolist() == expected, f"classes {label.tolist()} where probabilities say {expected}"
    )


def sides_follow_the_flip_band(model: BaseModel, targets: Tensor) -> None:
    """`pred_discrete` of a regression is 0 around the target's own value.

    Far from that value it is -1 or +1.
    """
    _require_task(model, "regression")
    value, width = model.pred_continuous(targets), model.spread  # type: ignore[attr-defined]
    fail_unless(
        bool(model.pred_discrete(targets, around=value).eq(0).all()),
        "a value is not inside the band around itself",
    )
    if width == 0:
        raise InapplicableCheck("all predictions are equal, so there is no band")
    fail_unless(
        bool(model.pred_discrete(targets, around=value + width).eq(-1).all()),
        "a value one SD below is not called below",
    )
    fail_unless(
        bool(model.pred_discrete(targets, around=value - width).eq(1).all()),
        "a value one SD above is not called above",
    )


def more_than_one_answer_is_given(model: BaseModel, targets: Tensor) -> str | None:
    """Not all targets get the same class or value; else no explanation can be told from another."""
    pred = model.pred_continuous(model.population())
    constant = len(pred) > 1 and is_close(pred, pred[:1].expand_as(pred))
    if constant:
        return "the network gives every target the same prediction"
    one_class = (
        model.task == "classification"
        and len(model.pred_discrete(model.population()).unique()) == 1
    )
    return (
        "the network predicts one class only: there is no reference of another class"
        if one_class
        else None
    )


def same_question_same_answer(model: BaseModel, targets: Tensor) -> None:
    """Asking twice, also with forgotten facts, gives the same numbers."""
    first = model.pred_continuous(targets)
    model.refresh()
    fail_unless(
        is_close(first, model.pred_continuous(targets)), "a second call gives other predictions"
    )


def order_of_targets_does_not_matter(model: BaseModel, targets: Tensor) -> None:
    """Reversed targets give reversed rows."""
    fail_unless(
        torch.equal(model.pred_continuous(targets.flip(0)), model.pred_continuous(targets).flip(0)),
        "rows depend on the order",
    )


def repeated_targets_get_equal_rows(model: BaseModel, targets: Tensor) -> None:
    """A target asked for twice gets the same prediction and the same computation graph twice."""
    twice = torch.cat([targets[:1], targets[:1]])
    graphs = model.computation_graphs(twice)
    pred = model.pred_continuous(twice)
    fail_unless(torch.equal(pred[0], pred[1]), "a repeated target gets two predictions")
    fail_unless(
        torch.equal(graphs[0].all_edges, graphs[1].all_edges),
        "a repeated target gets two computation graphs",
    )


def no_targets_give_no_rows(model: BaseModel, targets: Tensor) -> None:
    """An empty list is a valid question."""
    fail_unless(len(model.pred_continuous([])) == 0, "predictions are made for no target")
    fail_unless(len(model.computation_graphs([])) == 0, "computation graphs are made for no target")


def wrong_targets(model: BaseModel) -> list[Any]:
    """Targets that no model of this level and size has."""
    size, labels = model.num_targets(), model.labels
    node: list[Any] = [size, -1, 0.5, True, None, "0", (0, 1)]
    link: list[Any] = [(0, size), (-1, 0), (0, 0), 0, (0, 0.5), (0, 1, 2)]
    if labels is None:
        return link if model.level == "link" else node
    right = (0, 1) if model.level == "link" else (0,)
    return [
        right,
        0,
        (*right, labels.count),
        (*right, -1),
        (*right, 0.5),
        (*right, 0, 0),
        (size, *right[1:], 0),
        (-1, *right[1:], 0),
    ]


def wrong_targets_are_refused(model: BaseModel, targets: Tensor) -> None:
    """Out of range, negative, fractional or of another kind: refused by name."""
    for wrong in wrong_targets(model):
        refusal = _find_refusal(model, wrong)
        fail_unless(refusal is not None, f"target {wrong!r} is accepted")
        fail_unless(
            str(wrong) in str(refusal),
            f"the error about target {wrong!r} does not name it: {refusal}",
        )


# --- the network stays what it was ----------------------------------------------------------------


def network_is_untouched_by_calls(model: BaseModel, targets: Tensor) -> None:
    """A call leaves the network and the global random states as they were.

    This covers parameters, buffers, gradients, hooks and training flags.
    """
    with fail_if_network_changes(model):
        model.refresh()
        model.pred_continuous(targets)
        model.pred_discrete(targets)
        model.pred_copies(model.computation_graphs(targets))
        model.record()


def network_is_untouched_by_failures(model: BaseModel, targets: Tensor) -> None:
    """The same when something raises in the middle of a call."""

    def fail(union: GraphBatch) -> GraphBatch:
        model.executor.outputs(union)
        raise InterruptedError

    graphs = model.computation_graphs(targets)
    with fail_if_network_changes(model):
        try:
            model.pred_copies(graphs, edit=fail)
        except InterruptedError:
            return
    raise AssertionError("an error inside a call was swallowed")


def data_is_untouched(model: BaseModel, targets: Tensor) -> None:
    """No call writes into the data, not even a network that changes its input."""
    tensors = [
        model.source.edge_index,
        *model.source.node_attrs.values(),
        *model.source.edge_attrs.values(),
    ]
    before = [tensor.clone() for tensor in tensors]
    model.refresh()
    model.pred_copies(model.computation_graphs(targets))
    fail_unless(all(map(torch.equal, tensors, before)), "data has changed")


def evaluation_mode_is_used(model: BaseModel, targets: Tensor) -> None:
    """A network in training mode is asked in evaluation mode, and is in training mode again
    afterwards.
    """
    expected = model.pred_continuous(targets)
    flags = {module: module.training for module in model.net.modules()}
    try:
        model.net.train()
        model.refresh()
        pred = model.pred_continuous(targets)
        fail_unless(
            all(module.training for module in model.net.modules()), "training mode was not restored"
        )
    finally:
        for module, flag in flags.items():
            module.training = flag
    fail_unless(is_close(pred, expected), "predictions depend on the training mode")


# --- computation graphs ---------------------------------------------------------------------------


def extracted_graphs_give_the_whole_graphs_prediction(
    model: BaseModel, targets: Tensor
) -> str | None:
    """Within 1e-5 of a probability, or of the SD of predictions."""
    graphs = model.computation_graphs(targets)
    gap = float((model.pred_copies(graphs) - model.pred_continuous(targets)).abs().max())
    fail_unless(
        gap <= model.tolerance(), f"extracted graphs differ from the whole graph by {gap:.2g}"
    )
    whole = graphs.notes().get("whole graph", 0)
    return (
        (
            f"{whole} of {len(graphs)} targets need the whole graph: this network looks further "
            "than its messages"
        )
        if whole
        else None
    )


def hops_go_as_far_as_features_matter(model: BaseModel, targets: Tensor) -> str | None:
    """Features beyond L hops have no gradient, and others in their place change nothing."""
    if model.level == "graph":
        raise InapplicableCheck("a graph target is decided by its whole graph")
    if HALOS[model.base_halo] == "whole graph":
        raise InapplicableCheck("this network looks further than its messages")
    with model.session():
        further = features_matter_beyond(model, model.hops)
    fail_unless(not further, f"num_hops is {model.hops}, but features further away matter")
    chain = model.trace.chain
    return (
        f"{chain} propagations follow each other, but features {model.hops} hops away matter"
        if chain != model.hops
        else None
    )


def features_outside_do_not_matter(model: BaseModel, targets: Tensor) -> None:
    """Changing the features of all nodes beyond L hops leaves the prediction on the whole graph as
    it was.
    """
    if model.level == "graph":
        raise InapplicableCheck("a graph target is decided by its whole graph")
    if HALOS[model.base_halo] == "whole graph":
        raise InapplicableCheck("this network looks further than its messages")
    graph = model.computation_graphs(targets[:1])[0]
    inside = torch.zeros(model.source.num_nodes, dtype=torch.bool, device=targets.device)
    inside[graph.nodes] = True
    changed = torch.where(inside[:, None], model.source.x, 1 - model.source.x)
    before, after = (
        model.pred_continuous(targets[:1]),
        _predict_with_features(model, changed, targets[:1]),
    )
    fail_unless(
        float((before - after).abs().max()) <= model.tolerance(),
        "features beyond the hops change the prediction",
    )


def relevant_edges_carry_messages(model: BaseModel, targets: Tensor) -> None:
    """Every relevant edge ends within L - 1 hops (or, induced, inside the L hops), and none is a
    self-loop.
    """
    graphs = model.computation_graphs(targets)
    for graph in graphs:
        source, end = graph.edge_index[:, : len(graph.edges)]
        fail_unless(
            bool((source != end).all()), f"a self-loop is relevant for target {graph.target}"
        )
        if model.level == "graph" or model.edge_scope == "induced" or model.trace.flow == "both":
            continue
        head = end if model.trace.flow == "source_to_target" else source
        fail_unless(
            bool((graph.hops[head] < model.hops).all()),
            f"an edge of target {graph.target} cannot carry a message to it",
        )


def renumbering_nodes_changes_nothing(model: BaseModel, targets: Tensor) -> None:
    """The whole graph with its nodes in another order gives the same predictions."""
    if model.level == "graph":
        raise InapplicableCheck("graphs are evaluated as they are stored")
    graphs = model.extract_graphs(
        model.parse_targets(targets[:2]), model.hops, HALOS.index("whole graph"), "messages"
    )
    gap = float((model.pred_copies(graphs) - model.pred_continuous(targets[:2])).abs().max())
    fail_unless(gap <= model.tolerance(), f"renumbered nodes change a prediction by {gap:.2g}")


# --- unions ---------------------------------------------------------------------------------------


def copies_in_a_union_answer_as_alone(model: BaseModel, targets: Tensor) -> str | None:
    """Each copy gives in a union what it gives alone."""
    graphs = model.computation_graphs(targets)
    joint = model.pred_copies(graphs)
    alone = torch.cat(
        [
            model.pred_copies(graphs.take(torch.tensor([k], device=targets.device)))
            for k in range(len(graphs))
        ]
    )
    gap = float((joint - alone).abs().max())
    fail_unless(gap <= model.tolerance(), f"a union changes a prediction by {gap:.2g}")
    return (
        "copies run one by one: this network mixes nodes that share no edge"
        if model.joining == ALONE
        else None
    )


def chunks_give_the_same_bits(model: BaseModel, targets: Tensor) -> str | None:
    """Where a union is cut does not change a single bit (CPU)."""
    if model.source.device.type != "cpu":
        raise InapplicableCheck("sums on a GPU come in any order")
    graphs = model.computation_graphs(targets)
    everything = torch.arange(len(graphs))
    with model.session(), torch.no_grad():
        model.executor.joining = model.joining
        size = 1 if model.joining == ALONE else len(graphs)
        whole, singles = (
            torch.cat(
                [
                    model.executor.outputs(
                        model.executor.union(
                            GraphCopies(graphs, everything), k, min(k + n, len(graphs))
                        )
                    )
                    for k in range(0, len(graphs), n)
                ]
            )
            for n in (size, 1)
        )
    if torch.equal(whole, singles):
        return None
    fail_unless(is_close(whole, singles), "predictions change with the size of a union")
    return (
        "the last bits change with the size of a union: this network regroups its rows; results "
        "repeat only with the same batches"
    )


def unedited_copies_are_the_model(model: BaseModel, targets: Tensor) -> None:
    """Dropping no edge, and where masks work multiplying all messages by 1, changes nothing."""
    graphs = model.computation_graphs(targets)
    pred = model.pred_copies(graphs)
    kept = model.pred_copies(
        graphs,
        edit=lambda union: union.without_edges(torch.zeros_like(union.edge_at, dtype=torch.bool)),
    )
    fail_unless(
        float((pred - kept).abs().max()) <= model.tolerance(),
        "dropping no edge changes a prediction",
    )
    if not model.mask_support.startswith("refused"):
        ones = model.pred_copies(
            graphs, edit=lambda union: union.with_mask(union.x.new_ones(union.num_edges))
        )
        fail_unless(
            float((pred - ones).abs().max()) <= model.tolerance(),
            "multiplying messages by 1 changes a prediction",
        )


def messages_can_be_masked(model: BaseModel, targets: Tensor) -> str | None:
    """Silencing messages silences the neighbours; otherwise edges have to be dropped."""
    if model.mask_support == "exact":
        return None
    with_masks = not model.mask_support.startswith("refused")
    return (
        model.mask_support
        if with_masks
        else f"{model.mask_support.rstrip('.')}. For edge scores {ADVICE_WITHOUT_MASKS}"
    )


# --- what explainers and references need ----------------------------------------------------------


def embedding_has_one_row_per_target(model: BaseModel, targets: Tensor) -> None:
    """The last hidden space is found, finite, and does not depend on the order of the targets."""
    hidden = model.embed(targets)
    fail_unless(
        hidden.dim() == 2 and len(hidden) == len(targets),
        f"the embedding has shape {tuple(hidden.shape)}",
    )
    fail_unless(bool(hidden.isfinite().all()), "the embedding has NaN or infinite entries")
    fail_unless(
        is_close(model.embed(targets.flip(0)), hidden.flip(0)),
        "the embedding depends on the order of the targets",
    )


def gradients_reach_the_features(model: BaseModel, targets: Tensor) -> str | None:
    """Predictions have a gradient with respect to the features, which gradient explainers need."""

    def gradient(union: GraphBatch) -> Tensor:
        with torch.enable_grad():
            x = union.x.detach().requires_grad_(True)
            rows = model.interpret(model.executor.outputs(union.with_x(x)))
            best = rows.amax(1) if rows.dim() == 2 else rows
            (grad,) = torch.autograd.grad(best.sum(), x, allow_unused=True)
        size = x.new_zeros(len(union))
        return (
            size
            if grad is None
            else size.index_add(0, union.node_copy, grad[union.node_at].abs().sum(1))
        )

    size = model.map(gradient, model.computation_graphs(targets), kind="gradient")
    fail_unless(bool(size.isfinite().all()), "a gradient is NaN or infinite")
    silent = int((size == 0).sum())
    return (
        (
            f"{silent} of {len(size)} targets have no gradient at all: gradient explainers will "
            "score them 0"
        )
        if silent
        else None
    )


# --- helpers --------------------------------------------------------------------------------------


def _require_task(model: BaseModel, task: str) -> None:
    """Skip the check for models of the other task."""
    if model.task != task:
        raise InapplicableCheck(f"this is a {model.task} model")


def _find_refusal(model: BaseModel, wrong: Any) -> BadTarget | None:
    """The error that a wrong target gets."""
    try:
        model.pred_continuous([wrong])
    except BadTarget as error:
        return error
    return None


def _predict_with_features(model: BaseModel, x: Tensor, targets: Tensor) -> Tensor:
    """Predictions on the whole graph with other features."""
    with model.session(), torch.no_grad():
        every_edge = torch.ones(model.source.num_edges, dtype=torch.bool, device=x.device)
        return model.interpret(model.trial_rows(model.parse_targets(targets), x, every_edge))


@contextmanager
def fail_if_network_changes(model: BaseModel) -> Iterator[None]:
    """Compare the network and the global random states before and after."""
    before = capture_state(model)
    yield
    fail_if_state_differs(before, capture_state(model))


def fail_if_state_differs(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Fail with the names of what differs between two states."""
    changed = [name for name in before if not _is_same_bits(before[name], after.get(name))]
    fail_unless(
        not changed and before.keys() == after.keys(),
        f"changed: {', '.join(changed) or 'attributes came or went'}",
    )


def capture_state(model: BaseModel) -> dict[str, Any]:
    """Everything that must stay: values, flags, hooks, random states."""
    net = model.net
    state: dict[str, Any] = {
        f"value of {name}": value.detach().clone() for name, value in net.state_dict().items()
    }
    state |= {
        f"tensor {number}": (
            id(tensor),
            tensor.requires_grad,
            id(tensor.grad),
            tuple(tensor._backward_hooks or ()),
        )
        for number, tensor in enumerate(network_tensors(net))
    }
    for name, module in net.named_modules():
        hooks = {
            key: tuple(value)
            for key, value in vars(module).items()
            if key.endswith("_hooks") and isinstance(value, dict)
        }
        state[f"hooks of {name or 'net'}"] = hooks
        state[f"mode of {name or 'net'}"] = module.training
        state[f"attributes of {name or 'net'}"] = sorted(vars(module))
        state[f"settings of {name or 'net'}"] = {
            key: value
            for key, value in vars(module).items()
            if value is None or isinstance(value, (bool, int, float, str))
        }
    state["torch's gradient mode"] = torch.is_grad_enabled()
    return state | {
        "torch's random state": torch.get_rng_state(),
        "NumPy's random state": str(np.random.get_state()),
    }


def _is_same_bits(first: Any, second: Any) -> bool:
    """Equal, bit for bit where it is a tensor."""
    return torch.equal(first, second) if isinstance(first, Tensor) else first == second


_ModelCheck = Callable[[BaseModel, Tensor], str | None]

#: every promise, by name
MODEL_CHECKS: dict[str, _ModelCheck] = {
    check.__name__: check
    for check in (
        predictions_have_one_row_per_target,
        predictions_are_finite,
        probabilities_add_up_to_one,
        classes_are_the_likeliest,
        sides_follow_the_flip_band,
        more_than_one_answer_is_given,
        same_question_same_answer,
        order_of_targets_does_not_matter,
        repeated_targets_get_equal_rows,
        no_targets_give_no_rows,
        wrong_targets_are_refused,
        network_is_untouched_by_calls,
        network_is_untouched_by_failures,
        data_is_untouched,
        evaluation_mode_is_used,
        extracted_graphs_give_the_whole_graphs_prediction,
        hops_go_as_far_as_features_matter,
        features_outside_do_not_matter,
        relevant_edges_carry_messages,
        renumbering_nodes_changes_nothing,
        copies_in_a_union_answer_as_alone,
        chunks_give_the_same_bits,
        unedited_copies_are_the_model,
        messages_can_be_masked,
        embedding_has_one_row_per_target,
        gradients_reach_the_features,
    )
}
