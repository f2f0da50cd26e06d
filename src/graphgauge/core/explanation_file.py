"""The file format of an explanation.

Tensors are stored as safetensors, and all other fields as JSON in the header of the file.
"""

import json
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from torch import Tensor

from graphgauge.core.errors import BadExplanation, BadFile
from graphgauge.core.json_types import JsonValue

_FLOAT_KEY = "$float"  #: marks a number that JSON does not know
_T = TypeVar("_T")


def write_explanation_file(
    path: str | os.PathLike[str], tensors: Mapping[str, Tensor], header: Mapping[str, object]
) -> None:
    """Write a complete file, or none.

    Args:
        path: The file.
        tensors: Tensors by the name of their field.
        header: The other fields: numbers, texts, and lists and dictionaries of these.

    Raises:
        BadExplanation: The header holds something that JSON cannot hold.
        BadFile: The file could not be written.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    text = json.dumps(to_json_value(header), allow_nan=False)
    whole, part = Path(path), Path(f"{os.fspath(path)}.part")
    own = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}
    try:
        save_file(own, part, metadata={"graphgauge.xplanation": text})
        part.replace(whole)
    except (OSError, SafetensorError) as error:
        part.unlink(missing_ok=True)
        raise BadFile(f"{os.fspath(path)} could not be written: {error}.") from error


def read_explanation_file(path: str | os.PathLike[str], build: Callable[..., _T]) -> _T:
    """Read what `write_explanation_file` wrote. Nothing in the file is executed.

    Args:
        path: The file.
        build: Called with every field as a keyword; makes the explanation.

    Raises:
        BadFile: There is no such file, or ``build`` refuses what it holds.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(os.fspath(path), "pt") as file:
            header = json.loads((file.metadata() or {})["graphgauge.xplanation"])
            # The file is not a mapping, so its names come from keys().
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        fields: Any = from_json_value(header)
        return build(**fields, **tensors)
    except FileNotFoundError as error:
        raise BadFile(f"{os.fspath(path)} does not exist.") from error
    except (
        OSError,
        SafetensorError,
        LookupError,
        ValueError,
        TypeError,
        AttributeError,
    ) as error:
        raise BadFile(
            f"{os.fspath(path)} is not an explanation that graphgauge saved: {error}."
        ) from error


def to_json_value(value: object) -> JsonValue:
    """``value`` as JSON; NaN and infinities are kept under their names.

    Numbers of NumPy and torch become Python's.

    Raises:
        BadExplanation: It holds something else than numbers, texts, lists and dictionaries.

    >>> to_json_value({"top": 3, "share": float("nan")})
    {'top': 3, 'share': {'$float': 'nan'}}
    """
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {_FLOAT_KEY: repr(value)}
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise BadExplanation(
                f"names in params and metrics must be texts, but are {list(value)!r}."
            )
        return {key: to_json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json_value(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise BadExplanation(
        "params and metrics must hold numbers, texts and lists to be saved, "
        f"but one is {type(value).__name__}."
    )


def from_json_value(value: object) -> object:
    """What `to_json_value` made, with NaN and infinities as floats again.

    Args:
        value: Plain data.
    """
    if isinstance(value, dict):
        return (
            float(value[_FLOAT_KEY])
            if value.keys() == {_FLOAT_KEY}
            else {key: from_json_value(item) for key, item in value.items()}
        )
    return [from_json_value(item) for item in value] if isinstance(value, list) else value
