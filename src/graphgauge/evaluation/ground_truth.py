"""A known truth beside the explanations: which edges, nodes or features truly matter for a target,
and how well scores agree.

    truth = {"edge": mask}                    (E,) bool, for all targets; edges as in ``edge_index``
            {"node": mask}                    (N,) bool
            {"feature": mask}                 (F,) bool, or (N, F)
            {"edge": {target: mask, ...}}     masks of single targets; a target that is left out has
                                              no truth
            {"edge": [mask, ...]}             a mask for each target, in their order; in graph tasks
                                              a mask for each graph of the data

Masks are over the whole graph, in graph tasks over the target's own graph; None says that there is
no truth. Only what an explanation scores is compared: the edges that can carry a message to the
target, and the nodes within its reach.

    edges            the scores of the explanation
    nodes            a node's score is the sum of the scores of its features
    features (F,)    a feature's score is the sum of its scores over nodes
    features (N, F)  every feature of every node by itself

With ``order="magnitude"`` scores count by their magnitude. ``k`` is the setting ``top``. Where all
or none of the scored things are true, there is nothing to tell apart: no value, status
``one_sided_truth``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor

from graphgauge.core import (
    BadSetting,
    Target,
    Xplanation,
    digest_of_tensors,
    digest_of_texts,
    target_tuple,
)
from graphgauge.evaluation.candidate_scores import edge_scores, feature_scores
from graphgauge.evaluation.explanation_set import ExplanationSet
from graphgauge.evaluation.metric_value import MetricValue, missing_value
from graphgauge.evaluation.settings import Settings
from graphgauge.metrics import (
    auroc,
    average_precision,
    effective_top,
    f1_at_k,
    jaccard,
    precision_at_k,
    recall_at_k,
    selects_all,
    top_counts,
)
from graphgauge.models import BaseModel
from graphgauge.subgraphs import ComputationGraph

TRUTH_KINDS = ("edge", "node", "feature")
#: one mask for all targets, one for each, or masks by target
MaskLike: TypeAlias = Tensor | Sequence[Tensor | None] | Mapping[Target, Tensor | None]
#: masks of what truly matters, by kind: "edge", "node", "feature"
TruthLike: TypeAlias = Mapping[str, MaskLike]
_RANKING_METRICS = {"auroc": auroc, "average_precision": average_precision, "jaccard": jaccard}
_TOP_K_METRICS = {"precision_at_k": precision_at_k, "recall_at_k": recall_at_k, "f1_at_k": f1_at_k}
_TRUTH_METRICS = (*_RANKING_METRICS, *_TOP_K_METRICS)
#: for people
TRUTH_METRIC_MEANINGS = {
    "auroc": "chance that a true one has a higher score than another, ties half; 0.5 is chance",
    "average_precision": (
        "mean share of true ones among those scored at least as high as each true one"
    ),
    "jaccard": "overlap of the true ones with as many top scores",
    "precision_at_k": "share of the k highest scores that are true; k is the setting `top`",
    "recall_at_k": "share of the true ones among the k highest scores",
    "f1_at_k": "harmonic mean of precision and recall at k",
}
_TARGETS_AT_ONCE = 256  #: targets whose computation graphs are held at once


@dataclass(frozen=True)
class GroundTruth:
    """The masks of each target, by kind. A target without a mask has no truth of this kind."""

    masks: Mapping[str, Mapping[Target, Tensor]]

    @staticmethod
    def from_masks(given: TruthLike, model: BaseModel, targets: Sequence[Target]) -> "GroundTruth":
        """What people give, checked; ``targets`` as they were asked for."""
        if (
            not isinstance(given, Mapping)
            or not given
            or any(kind not in TRUTH_KINDS for kind in given)
        ):
            shown = (
                f"the keys {list(given)}" if isinstance(given, Mapping) else type(given).__name__
            )
            raise BadSetting(
                "truth must be a dictionary with masks for 'edge', 'node' or 'feature', but got "
                f"{shown}."
            )
        return GroundTruth(
            {
                kind: _masks_by_target(kind, given[kind], model, targets)
                for kind in TRUTH_KINDS
                if kind in given
            }
        )

    @property
    def metric_names(self) -> list[str]:
        """In the order of the rows."""
        return [f"{kind}_{name}" for kind in self.masks for name in _TRUTH_METRICS]

    def record(self) -> dict[str, str]:
        """A short name of exactly these masks, by kind."""
        found = {}
        for kind, own in self.masks.items():
            names = {
                id(mask): digest_of_tensors([mask])
                for mask in {id(mask): mask for mask in own.values()}.values()
            }
            found[kind] = digest_of_texts(
                f"{target}: {names[id(mask)]}" for target, mask in own.items()
            )
        return found

    def metric_values(
        self, model: BaseModel, entries: Sequence[ExplanationSet], settings: Settings
    ) -> dict[tuple[int, Target], dict[str, MetricValue]]:
        """How well the scores of each entry and target agree with the truth."""
        found: dict[tuple[int, Target], dict[str, MetricValue]] = {}
        targets = list(dict.fromkeys(target for entry in entries for target in entry.xs))
        for start in range(0, len(targets), _TARGETS_AT_ONCE):
            chosen = targets[start : start + _TARGETS_AT_ONCE]
            graphs = model.computation_graphs(chosen, settings.edge_scope)
            for t, target in enumerate(chosen):
                for e, entry in enumerate(entries):
                    if target in entry.xs:
                        found[e, target] = self._cells_of(entry, target, graphs[t], settings)
        return found

    def _cells_of(
        self, entry: ExplanationSet, target: Target, graph: ComputationGraph, settings: Settings
    ) -> dict[str, MetricValue]:
        """The cells of one explanation."""
        found: dict[str, MetricValue] = {}
        for kind, masks in self.masks.items():
            count = len(graph.edges) if kind == "edge" else graph.batch.source.x.size(1)
            why = (
                "no_truth"
                if target not in masks
                else entry.status(target, "edge" if kind == "edge" else "feature", count)
            )
            cells = (
                dict.fromkeys(_TRUTH_METRICS, missing_value(why))
                if why
                else _truth_agreement(
                    *_scores_and_truth(
                        kind, entry.xs[target], graph, masks[target], settings.order
                    ),
                    settings,
                )
            )
            found |= {f"{kind}_{name}": cell for name, cell in cells.items()}
        return found


def _scores_and_truth(
    kind: str, x: Xplanation, graph: ComputationGraph, mask: Tensor, order: str
) -> tuple[Tensor, Tensor]:
    """What is scored, as vectors on the CPU."""
    score = (edge_scores if kind == "edge" else feature_scores)(x, graph).cpu()
    score = score.abs() if order == "magnitude" else score
    if kind == "edge":
        return score, mask[graph.edges.cpu()]
    if kind == "node":
        return score.sum(1), mask[graph.nodes.cpu()]
    if mask.dim() == 1:
        return score.sum(0), mask
    return score.flatten(), mask[graph.nodes.cpu()].flatten()


def _truth_agreement(score: Tensor, is_true: Tensor, settings: Settings) -> dict[str, MetricValue]:
    """The value of each metric, or why there is none."""
    if bool(is_true.all()) or not bool(is_true.any()):
        return dict.fromkeys(_TRUTH_METRICS, missing_value("one_sided_truth"))
    found = {
        name: MetricValue(float(value(score, is_true))) for name, value in _RANKING_METRICS.items()
    }
    count = torch.tensor(len(score))
    if bool(selects_all(effective_top(settings), count)):
        return found | dict.fromkeys(_TOP_K_METRICS, missing_value("all_selected"))
    k = int(top_counts(effective_top(settings), count))
    return found | {
        name: MetricValue(float(value(score, is_true, k))) for name, value in _TOP_K_METRICS.items()
    }


# --- what people give -----------------------------------------------------------------------------


def _masks_by_target(
    kind: str, given: Any, model: BaseModel, targets: Sequence[Target]
) -> dict[Target, Tensor]:
    """One kind of masks by target."""
    distinct = list(dict.fromkeys(targets))
    if isinstance(given, Mapping):
        known = {
            tuple(target) if isinstance(target, list) else target: mask
            for target, mask in given.items()
        }
        by_target = {target: known[target] for target in distinct if target in known}
        if not by_target and distinct:
            raise BadSetting(
                f"truth['{kind}'] names {_format_first_few(known)}, but none of the targets "
                f"{_format_first_few(distinct)}."
            )
    elif isinstance(given, Tensor):
        _refuse_one_mask_for_many_graphs(kind, given, model)
        by_target = dict.fromkeys(distinct, given)
    elif isinstance(given, Sequence) and not isinstance(given, str):
        by_target = _masks_from_list(kind, given, model, targets)
    else:
        raise BadSetting(
            f"truth['{kind}'] must be a mask, a list of masks or a dictionary of them by target, "
            f"but is {given!r}."
        )
    masks = {target: mask for target, mask in by_target.items() if mask is not None}
    checked: dict[int, Tensor] = {}
    for target, mask in masks.items():
        if id(mask) not in checked or model.level == "graph":
            checked[id(mask)] = _check_mask(kind, mask, model, target)
    return {target: checked[id(mask)] for target, mask in masks.items()}


def _masks_from_list(
    kind: str, given: Sequence[Any], model: BaseModel, targets: Sequence[Target]
) -> dict[Target, Any]:
    """A list of masks by target: one for each graph in graph tasks, else one for each target."""
    wanted = range(model.source.num_graphs) if model.level == "graph" else targets
    if len(given) != len(wanted):
        things = "graphs of the data" if model.level == "graph" else "targets"
        raise BadSetting(
            f"truth['{kind}'] lists {len(given)} masks, but there are {len(wanted)} {things}: "
            "give one for each."
        )
    if model.level == "graph":
        return {target: given[target_tuple(target)[0]] for target in dict.fromkeys(targets)}
    found: dict[Target, Any] = {}
    for target, mask in zip(targets, given, strict=True):
        old = found.setdefault(target, mask)
        if old is not mask and not (
            isinstance(old, Tensor) and isinstance(mask, Tensor) and torch.equal(old, mask)
        ):
            raise BadSetting(
                f"truth['{kind}'] lists two different masks for target {target}: give one for "
                "each target."
            )
    return found


def _refuse_one_mask_for_many_graphs(kind: str, given: Tensor, model: BaseModel) -> None:
    """One mask of edges or nodes cannot be that of several graphs."""
    if model.source.num_graphs > 1 and (kind != "feature" or given.dim() != 1):
        raise BadSetting(
            f"truth['{kind}'] is one mask, but the data are {model.source.num_graphs} graphs: "
            "give a list with a mask for each graph."
        )


def _check_mask(kind: str, mask: Any, model: BaseModel, target: Target) -> Tensor:
    """The mask on the CPU; refuses another type or shape."""
    graph = target_tuple(target)[0] if model.level == "graph" else 0
    nodes, edges = (ptr[graph + 1] - ptr[graph] for ptr in model.source.pointer_lists)
    if model.level != "graph":
        nodes, edges = model.source.num_nodes, model.source.num_edges
    features = model.source.x.size(1)
    by_kind: dict[str, list[tuple[int, ...]]] = {
        "edge": [(edges,)],
        "node": [(nodes,)],
        "feature": [(features,), (nodes, features)],
    }
    shapes = by_kind[kind]
    whose = f" for target {target}" if model.level == "graph" else ""
    if not isinstance(mask, Tensor):
        raise BadSetting(
            f"truth['{kind}']{whose} must be a torch.bool tensor, but is {type(mask).__name__}: "
            "use torch.tensor(...)."
        )
    if mask.dtype != torch.bool:
        raise BadSetting(
            f"truth['{kind}']{whose} must be torch.bool, but is {mask.dtype}: use mask > 0.5 or "
            "mask.bool()."
        )
    if tuple(mask.shape) not in shapes:
        shown = " or ".join(str(shape) for shape in shapes)
        raise BadSetting(
            f"truth['{kind}']{whose} must have the shape {shown}, one entry for each {kind} of "
            f"the whole graph, but has {tuple(mask.shape)}."
        )
    return mask.detach().cpu()


def _format_first_few(things: Iterable[Any]) -> str:
    """The first few of some things."""
    listed = list(things)
    return ", ".join(map(repr, listed[:5])) + (", ..." if len(listed) > 5 else "")
