"""Files that people write, in YAML or TOML: plain data out, or every mistake at once, each with its
line.

TOML keeps no lines, so its mistakes are told with their place only (``explainers.2.name``).
"""

import sys
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel as Model
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from graphgauge.core.errors import BadFile, BadSetting, GraphgaugeError
from graphgauge.core.json_types import JsonObject

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_ConfigTree = JsonObject
#: the keys that may stand at a place, by the name of the field that leads there; "": at the top
KnownKeys = Mapping[str, type[Model]]
_T = TypeVar("_T", bound=Model)


def read_config_file(path: Path, kind: str, example: str) -> tuple[_ConfigTree, yaml.Node | None]:
    """The content of a file, and the tree that knows the lines (None: TOML).

    Args:
        path: The file. It is read as TOML if its name ends in ".toml", otherwise as YAML.
        kind: What the file should hold, as error messages name it, such as "an experiment".
        example: How such a file begins, as error messages show it, such as "`tasks: ...`".

    Raises:
        BadFile: The file cannot be read.
        BadSetting: It is not YAML or TOML, or it does not hold a mapping at the top.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(f"{kind} was asked for, but {path} cannot be read: {error}.") from error
    tree, node = (
        (_parse_toml(text, path), None) if path.suffix == ".toml" else _parse_yaml(text, path)
    )
    if not isinstance(tree, dict):
        raise BadSetting(f"{path} must hold {kind} ({example}), but holds {type(tree).__name__}.")
    return tree, node


def _parse_yaml(text: str, path: Path) -> tuple[Any, yaml.Node | None]:
    """Plain data and its tree."""
    try:
        return yaml.load(text, StrictYamlLoader), yaml.compose(text, StrictYamlLoader)
    except (yaml.YAMLError, RecursionError) as error:
        raise BadSetting(f"{path} is not YAML: {' '.join(str(error).split())}.") from error


def _parse_toml(text: str, path: Path) -> Any:
    """Plain data."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadSetting(f"{path} is not TOML: {' '.join(str(error).split())}.") from error


class StrictYamlLoader(yaml.SafeLoader):
    """Plain data only, each key once."""


def _construct_unique_mapping(loader: StrictYamlLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    """A mapping; refuses a key that comes twice, of which YAML would keep the last."""
    seen: set[str] = set()
    for key, _ in node.value:
        if key.value in seen:
            raise yaml.constructor.ConstructorError(
                None, None, f"the key {key.value!r} comes twice", key.start_mark
            )
        seen.add(key.value)
    return loader.construct_mapping(node, deep=True)


StrictYamlLoader.add_constructor(
    yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _construct_unique_mapping
)


def validate_config(
    form: type[_T], tree: _ConfigTree, node: yaml.Node | None, path: Path | str, keys: KnownKeys
) -> _T:
    """The data in its form, or all mistakes, one a line.

    Args:
        form: The pydantic model that the data must fit.
        tree: The content of the file, from `read_config_file`.
        node: The YAML tree that knows the lines; None for TOML, whose mistakes have no line.
        path: The file, as error messages name it.
        keys: The form that lists the known keys at each place of the file, by the name of the
            top-level field that leads there; "" is the top. Unknown keys are compared with these.

    Raises:
        BadSetting: The data does not fit. The message lists the mistakes in their order in the
            file.
    """
    try:
        return form.model_validate(tree)
    except ValidationError as error:
        # as they come in the file
        items = sorted(error.errors(), key=lambda item: _line_number(node, item["loc"]) or 0)
        found = [
            f"  {_location_text(node, item['loc'])}{_mistake_text(item, keys)}" for item in items
        ]
        raise BadSetting(
            f"{path} has {len(found)} mistake{'s' if len(found) > 1 else ''}:\n" + "\n".join(found)
        ) from error
    except GraphgaugeError as error:
        raise BadSetting(f"{path}: {error}") from error


def _location_text(node: yaml.Node | None, loc: tuple[int | str, ...]) -> str:
    """Where in the file: 'line 4, explainers.2.name: '."""
    name = ".".join(str(step) for step in loc)
    line = _line_number(node, loc)
    return f"line {line}, {name}: " if line else f"{name}: "


def _line_number(node: yaml.Node | None, loc: tuple[int | str, ...]) -> int | None:
    """The line of the deepest part of a place that the file has."""
    if node is None or not loc:
        return None
    for step in loc:
        inner = _child_node(node, step)
        if inner is None:
            break
        node = inner
    return int(node.start_mark.line) + 1


def _child_node(node: yaml.Node, step: int | str) -> yaml.Node | None:
    """What stands under a key or a number."""
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == step), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        found: yaml.Node = node.value[step]
        return found
    return None


def _mistake_text(item: ErrorDetails, keys: KnownKeys) -> str:
    """A mistake for people."""
    if item["type"] == "extra_forbidden":
        return _unknown_key_text(item["loc"], keys)
    if item["type"] == "missing":
        return "is missing"
    text = (
        str(item["ctx"]["error"])
        if "error" in item.get("ctx", {})
        else f"{item['msg']}, but is {item['input']!r}"
    )
    return text.rstrip(".")


def _unknown_key_text(loc: tuple[int | str, ...], keys: KnownKeys) -> str:
    """A key that means nothing, with the one that was meant."""
    known = list(keys[str(loc[0]) if len(loc) > 1 else ""].model_fields)
    close = get_close_matches(str(loc[-1]), known, n=1)
    return (
        f"is no key here.{f' Did you mean {close[0]!r}?' if close else ''} Known: "
        f"{', '.join(known)}"
    )
