"""The argument ``label`` of ``explain(model, targets, label=...)``: which class is explained.

None, "predicted"    the predicted class
"true"               the class of the target in the data
2, "house"           a class by its number, or by its name in ``data.class_names``
a list or tensor     one of these for each target
"""

import inspect
from collections.abc import Mapping, Sequence
from operator import index
from typing import SupportsIndex, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphgauge.core import BadSetting
from graphgauge.models import BaseModel
from graphgauge.subgraphs import ComputationGraphs, Targets

_PREDICTED, _TRUE = "predicted", "true"
_LABEL_FORMS = (
    "a class number, a class name, 'predicted', 'true', or a list with one of these for each target"
)

#: the argument ``label`` of `explain` and `compare`, as users give it
LabelsLike: TypeAlias = int | str | Sequence[int | str | None] | Tensor | NDArray[np.generic] | None


def classes_to_explain(model: BaseModel, graphs: ComputationGraphs) -> Tensor | None:
    """The class to explain for each graph's target: the chosen class, else the predicted class.

    The predicted class is that on the whole graph.

    Args:
        model: The wrapped network.
        graphs: The computation graphs of T targets, with the chosen classes if there are any.

    Returns:
        The class numbers (T,), or None for regression.
    """
    if model.task == "regression":
        return None
    if graphs.chosen_class is not None:
        return graphs.chosen_class
    return model.pred_discrete(graphs.targets)


def accepts_label(function: object) -> bool:
    """Whether a function has a parameter ``label``."""
    if not callable(function):
        return False
    try:
        return "label" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # functions written in C may have no signature
        return False


def parse_labels(model: BaseModel, targets: Targets, label: LabelsLike) -> Tensor | None:
    """Parse the argument ``label`` into one class number for each target.

    Args:
        model: The wrapped network, whose data holds the names of classes and the true classes.
        targets: T targets.
        label: A class number, a class name, "predicted" or "true" for all targets, or a list or
            tensor with one of these for each.

    Returns:
        The class numbers (T,), or None if ``label`` is None: the predicted classes are explained.

    Raises:
        BadSetting: There is no such class, or the model predicts values.
    """
    if label is None:
        return None
    if model.task == "regression":
        raise BadSetting(
            f"label= chooses a class to explain, but {type(model).__name__} predicts values: leave "
            "label out."
        )
    labels = _broadcast_label(label, len(targets))
    classes = torch.tensor(
        [-1 if _is_label_keyword(one) else _parse_class(model, one) for one in labels],
        dtype=torch.int64,
    ).to(model.source.device)
    for keyword, look_up in ((_PREDICTED, _find_predicted_classes), (_TRUE, _find_true_classes)):
        rows = [
            number
            for number, one in enumerate(labels)
            if _is_label_keyword(one) and (one or _PREDICTED) == keyword
        ]
        if rows:
            classes[rows] = look_up(model, targets[rows])
    _check_known_classes(model, classes, targets)
    return classes


def _broadcast_label(label: LabelsLike, count: int) -> list[object]:
    """Repeat a single label for ``count`` targets, or check that there is one label for each."""
    if isinstance(label, (Tensor, np.ndarray)):
        label = label.tolist()
    if not isinstance(label, (list, tuple)):
        return [label] * count
    if len(label) != count:
        raise BadSetting(
            f"label has {len(label)} entries for {count} targets: give one class, or one for each "
            "target."
        )
    return list(label)


def _is_label_keyword(one: object) -> bool:
    """Whether a label is None, "predicted" or "true"."""
    return one is None or (isinstance(one, str) and one in (_PREDICTED, _TRUE))


def _parse_class(model: BaseModel, one: object) -> int:
    """Parse a class number or a class name."""
    if isinstance(one, str):
        return _find_class_by_name(model, one)
    if isinstance(one, bool) or not isinstance(one, SupportsIndex):
        raise BadSetting(f"label must be {_LABEL_FORMS}, but {one!r} was given.")
    number = index(one)
    _check_class_number(model, number)
    return number


def _find_class_by_name(model: BaseModel, name: str) -> int:
    """Return the number of the class with this name in the data."""
    if model.labels is not None:
        raise BadSetting(
            f"label={name!r} is a name, but targets of this network name a label already: label=1 "
            "explains why it applies."
        )
    data = model.data[0] if model.level == "graph" else model.data
    names = getattr(data, "class_names", None)
    if not names or not isinstance(names, (Mapping, Sequence)):
        raise BadSetting(
            f"label={name!r} is a name, but the data has no class_names: set data.class_names = "
            "[...], or give the class's number."
        )
    numbers = {
        str(called): int(number)
        for number, called in (names.items() if isinstance(names, Mapping) else enumerate(names))
    }
    if name not in numbers:
        raise BadSetting(
            f"label={name!r} is no class of this data. Known: {', '.join(numbers)}, 'predicted' "
            "and 'true'."
        )
    _check_class_number(model, numbers[name])
    return numbers[name]


def _find_predicted_classes(model: BaseModel, targets: Targets) -> Tensor:
    """The predicted classes. (T,)"""
    return model.pred_discrete(targets)


def _find_true_classes(model: BaseModel, targets: Targets) -> Tensor:
    """The classes of the targets in the data. (T,)"""
    if model.labels is not None:
        raise BadSetting(
            "label='true' needs one class for each target, but this network predicts labels: use "
            "label=1 or label=0."
        )
    look_up = {
        "node": _true_node_classes,
        "link": _true_link_classes,
        "graph": _true_graph_classes,
    }[model.level]
    truth = look_up(model, targets.ids.cpu())
    if truth.is_floating_point() and not bool((truth == truth.round()).all()):
        raise BadSetting(
            "label='true' needs whole numbers of classes in the data, but its labels are fractions "
            "or NaN."
        )
    return truth.to(model.source.device, torch.int64)


def _true_node_classes(model: BaseModel, targets: Tensor) -> Tensor:
    """The entries of ``data.y`` for node targets. (T, 1) -> (T,)"""
    data = model.data
    y = data.get("y")
    if not isinstance(y, Tensor) or y.dim() == 0 or y.numel() != data.num_nodes:
        raise BadSetting(
            f"label='true' needs data.y with one class for each of the {data.num_nodes} nodes, "
            f"{_describe_labels_found(y)}."
        )
    return y.reshape(-1).cpu()[targets[:, 0]]


def _true_graph_classes(model: BaseModel, targets: Tensor) -> Tensor:
    """The ``y`` of each graph target. (T, 1) -> (T,)"""
    classes = []
    for number in targets[:, 0].tolist():
        y = model.data[number].get("y")
        if not isinstance(y, Tensor) or y.numel() != 1:
            raise BadSetting(
                f"label='true' needs one class in data[{number}].y, {_describe_labels_found(y)}."
            )
        classes.append(y.reshape(()).cpu())
    return torch.stack(classes) if classes else torch.zeros(0, dtype=torch.int64)


def _true_link_classes(model: BaseModel, targets: Tensor) -> Tensor:
    """The ``data.edge_label`` of link targets in ``data.edge_label_index``. (T, 2) -> (T,)"""
    pairs, y = model.data.get("edge_label_index"), model.data.get("edge_label")
    if not isinstance(pairs, Tensor) or not isinstance(y, Tensor) or y.numel() != pairs.size(1):
        raise BadSetting(
            "label='true' needs data.edge_label with one class for each pair in "
            f"data.edge_label_index, {_describe_labels_found(y)}."
        )
    class_of_link = dict(zip(map(tuple, pairs.t().tolist()), y.reshape(-1).cpu(), strict=True))
    links = [tuple(pair) for pair in targets.tolist()]
    missing = [pair for pair in links if pair not in class_of_link]
    if missing:
        raise BadSetting(
            f"label='true' is not known for link {missing[0]}: it is not in data.edge_label_index. "
            "Give its class."
        )
    if not links:
        return torch.zeros(0, dtype=torch.int64)
    return torch.stack([class_of_link[pair] for pair in links])


def _describe_labels_found(y: object) -> str:
    """Describe the labels that the data has, for an error message."""
    if isinstance(y, Tensor):
        return f"but there is a tensor of shape {tuple(y.shape)}"
    return "but there is none"


def _check_known_classes(model: BaseModel, classes: Tensor, targets: Targets) -> None:
    """Raise BadSetting for true classes that the network does not have, such as -1 for unlabelled
    nodes.
    """
    bad = ((classes < 0) | (classes >= count_classes(model))).nonzero()[:, 0].tolist()
    if bad:
        (target,) = targets[bad[:1]]
        raise BadSetting(
            f"the data has class {int(classes[bad[0]])} for target {target}, but the network's "
            f"{count_classes(model)} classes are 0..{count_classes(model) - 1}: give another class "
            "for it."
        )


def _check_class_number(model: BaseModel, number: int) -> None:
    """Raise BadSetting for a class that the network does not have."""
    if not 0 <= number < count_classes(model):
        raise BadSetting(
            f"label={number} is no class of this network: its {count_classes(model)} classes are "
            f"0..{count_classes(model) - 1}."
        )


def count_classes(model: BaseModel) -> int:
    """The number of classes C of a model."""
    return int(model.num_classes)  # type: ignore[attr-defined]
