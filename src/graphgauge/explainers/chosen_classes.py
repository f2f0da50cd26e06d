"""Which class is explained of each target: ``explain(model, targets, label=...)``.

None, "predicted"    the predicted class
"true"               the class that the data has for the target
2, "house"           a class by its number, or by its name in ``data.class_names``
a list or tensor     one of these for each target
"""

import inspect
from collections.abc import Mapping, Sequence
from operator import index
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphgauge.core.errors import BadSetting
from graphgauge.core.xplanation import plain_target
from graphgauge.models import BaseModel, ComputationGraphs

PREDICTED, TRUE = "predicted", "true"
FORMS = (
    "a class number, a class name, 'predicted', 'true', or a list with one of these for each target"
)


def classes_to_explain(model: BaseModel, graphs: ComputationGraphs) -> Tensor | None:
    """The class that is explained of each graph's target: the chosen one, else the one predicted on
    the whole graph.

    None for regression.  (T,)
    """
    if model.task == "regression":
        return None
    return (
        model.pred_discrete(model.asked(graphs.target))
        if graphs.chosen_class is None
        else graphs.chosen_class
    )


def takes_label(function: Any) -> bool:
    """Whether a function has a parameter ``label``."""
    try:
        return "label" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # functions written in C may not say
        return False


def chosen_classes(model: BaseModel, targets: Tensor, label: Any) -> Tensor | None:
    """``label``, as people give it, as the class of each target; None: the predicted ones.  (T, 1) or (T, 2) -> (T,)"""
    if label is None:
        return None
    if model.task == "regression":
        raise BadSetting(
            f"label= chooses a class to explain, but {type(model).__name__} predicts values: leave label out."
        )
    given = one_per_target(label, len(targets))
    wanted = torch.tensor(
        [-1 if is_looked_up(one) else class_number(model, one) for one in given], dtype=torch.int64
    )
    wanted = wanted.to(model.source.device)
    for kind, look_up in ((PREDICTED, predicted_classes), (TRUE, true_classes)):
        rows = [
            number
            for number, one in enumerate(given)
            if (one or PREDICTED) == kind and is_looked_up(one)
        ]
        if rows:
            wanted[rows] = look_up(model, targets[rows])
    check_known(model, wanted, targets)
    return wanted


def one_per_target(label: Any, count: int) -> list[Any]:
    """A class, or a word for one, for each of ``count`` targets."""
    if isinstance(label, (Tensor, np.ndarray)):
        label = label.tolist()
    if not isinstance(label, (list, tuple)):
        return [label] * count
    if len(label) != count:
        raise BadSetting(
            f"label has {len(label)} entries for {count} targets: give one class, or one for each target."
        )
    return list(label)


def is_looked_up(one: Any) -> bool:
    """Whether a class is not named, but is the predicted or the true one."""
    return one is None or (isinstance(one, str) and one in (PREDICTED, TRUE))


def class_number(model: BaseModel, one: Any) -> int:
    """A class by its number, or by its name."""
    if isinstance(one, str):
        return class_named(model, one)
    if isinstance(one, bool) or not hasattr(one, "__index__"):
        raise BadSetting(f"label must be {FORMS}, but {one!r} was given.")
    number = index(one)
    check_number(model, number)
    return number


def class_named(model: BaseModel, name: str) -> int:
    """The number of the class with this name in the data."""
    if model.labels is not None:
        raise BadSetting(
            f"label={name!r} is a name, but targets of this network name a label already: label=1 asks why it applies."
        )
    data = model.data[0] if model.level == "graph" else model.data
    names = getattr(data, "class_names", None)
    if not names or not isinstance(names, (Mapping, Sequence)):
        raise BadSetting(
            f"label={name!r} is a name, but the data has no class_names: set data.class_names = [...], or give the class's number."
        )
    numbers = {
        str(called): int(number)
        for number, called in (names.items() if isinstance(names, Mapping) else enumerate(names))
    }
    if name not in numbers:
        raise BadSetting(
            f"label={name!r} is no class of this data. Known: {', '.join(numbers)}, 'predicted' and 'true'."
        )
    check_number(model, numbers[name])
    return numbers[name]


def predicted_classes(model: BaseModel, targets: Tensor) -> Tensor:
    """The predicted classes.  (T, 1) or (T, 2) -> (T,)"""
    return model.pred_discrete(model.asked(targets))


def true_classes(model: BaseModel, targets: Tensor) -> Tensor:
    """The classes that the data has for these targets.  (T, 1) or (T, 2) -> (T,)"""
    if model.labels is not None:
        raise BadSetting(
            "label='true' needs one class for each target, but this network gives labels: say label=1 or label=0."
        )
    truth = {"node": truth_of_nodes, "link": truth_of_links, "graph": truth_of_graphs}[model.level](
        model.data, targets.cpu()
    )
    if truth.is_floating_point() and not bool((truth == truth.round()).all()):
        raise BadSetting(
            "label='true' needs whole numbers of classes in the data, but its labels are fractions or NaN."
        )
    return truth.to(model.source.device, torch.int64)


def truth_of_nodes(data: Any, targets: Tensor) -> Tensor:
    """Rows of ``data.y``."""
    y = data.get("y")
    if not isinstance(y, Tensor) or y.dim() == 0 or y.numel() != data.num_nodes:
        raise BadSetting(
            f"label='true' needs data.y with one class for each of the {data.num_nodes} nodes, {found_in(y)}."
        )
    return y.reshape(-1).cpu()[targets[:, 0]]


def truth_of_graphs(data: Any, targets: Tensor) -> Tensor:
    """``y`` of each graph."""
    found = []
    for number in targets[:, 0].tolist():
        y = data[number].get("y")
        if not isinstance(y, Tensor) or y.numel() != 1:
            raise BadSetting(f"label='true' needs one class in data[{number}].y, {found_in(y)}.")
        found.append(y.reshape(()).cpu())
    return torch.stack(found) if found else torch.zeros(0, dtype=torch.int64)


def truth_of_links(data: Any, targets: Tensor) -> Tensor:
    """``data.edge_label`` of the pairs in ``data.edge_label_index``."""
    pairs, y = data.get("edge_label_index"), data.get("edge_label")
    if not isinstance(pairs, Tensor) or not isinstance(y, Tensor) or y.numel() != pairs.size(1):
        raise BadSetting(
            f"label='true' needs data.edge_label with one class for each pair in data.edge_label_index, {found_in(y)}."
        )
    known = dict(zip(map(tuple, pairs.t().tolist()), y.reshape(-1).cpu(), strict=True))
    asked = [tuple(pair) for pair in targets.tolist()]
    missing = [pair for pair in asked if pair not in known]
    if missing:
        raise BadSetting(
            f"label='true' is not known for link {missing[0]}: it is not in data.edge_label_index. Give its class."
        )
    return (
        torch.stack([known[pair] for pair in asked]) if asked else torch.zeros(0, dtype=torch.int64)
    )


def found_in(y: Any) -> str:
    """What there is instead of labels."""
    return (
        f"but there is a tensor of shape {tuple(y.shape)}"
        if isinstance(y, Tensor)
        else "but there is none"
    )


def check_known(model: BaseModel, wanted: Tensor, targets: Tensor) -> None:
    """Refuse true classes that the network does not have, such as -1 for nodes without a label."""
    bad = ((wanted < 0) | (wanted >= num_classes(model))).nonzero()[:, 0].tolist()
    if bad:
        target = plain_target(model.asked(targets)[bad[0]].tolist())
        raise BadSetting(
            f"the data has class {int(wanted[bad[0]])} for target {target}, but the network's {num_classes(model)} classes are "
            f"0..{num_classes(model) - 1}: give another class for it."
        )


def check_number(model: BaseModel, number: int) -> None:
    """Refuse a class that the network does not have."""
    if not 0 <= number < num_classes(model):
        raise BadSetting(
            f"label={number} is no class of this network: its {num_classes(model)} classes are 0..{num_classes(model) - 1}."
        )


def num_classes(model: BaseModel) -> int:
    """C."""
    return int(model.num_classes)  # type: ignore[attr-defined]
