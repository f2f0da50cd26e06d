"""Experiment files: YAML in, an `Experiment` out, or every mistake at once with its line.

Shipped experiments are asked for by name (`paper`), people's own by path (`my.yaml`).
"""

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from graphgauge.benchmark.experiment import Experiment, ExplainerChoice, MetricChoice, TargetChoice, TaskChoice
from graphgauge.core.errors import BadFile, BadSetting, GraphgaugeError, UnknownName

FOLDER = Path(__file__).parent / "experiments"
#: the keys that may stand at a place, by the name of the field that leads there
KEYS: Mapping[str, type[Any]] = {
    "": Experiment,
    "tasks": TaskChoice,
    "explainers": ExplainerChoice,
    "metrics": MetricChoice,
    "targets": TargetChoice,
}


def shipped() -> dict[str, Path]:
    """The experiments that come with the library, by name."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.yaml"))}


def read_experiment(name: str | Path, changes: Mapping[str, Any] | None = None) -> Experiment:
    """A shipped experiment by name, or one from a file; ``changes`` replace what the file says (``{"targets.number": 5}``)."""
    path = path_of(str(name))
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(f"the experiment file {path} cannot be read: {error}.") from error
    tree, node = parsed(text, path)
    return validated(changed(tree, changes or {}, path), node, path)


def path_of(name: str) -> Path:
    """Where an experiment is."""
    known = shipped()
    if name in known:
        return known[name]
    if name.endswith((".yaml", ".yml")) or "/" in name or Path(name).exists():
        return Path(name)
    close = get_close_matches(name, known, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise UnknownName(f"No experiment is called {name!r}.{hint} Known: {', '.join(known)}; or give a file, my.yaml.")


class Loader(yaml.SafeLoader):
    """Plain data only, each key once."""


def mapping(loader: Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    """A mapping; refuses a key that comes twice, of which YAML would keep the last."""
    seen: set[str] = set()
    for key, _ in node.value:
        if key.value in seen:
            raise yaml.constructor.ConstructorError(None, None, f"the key {key.value!r} comes twice", key.start_mark)
        seen.add(key.value)
    return loader.construct_mapping(node, deep=True)


Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)


def parsed(text: str, path: Path) -> tuple[dict[str, Any], yaml.Node | None]:
    """The content, and the tree that knows the lines."""
    try:
        tree, node = yaml.load(text, Loader), yaml.compose(text, Loader)
    except (yaml.YAMLError, RecursionError) as error:
        raise BadSetting(f"{path} is not YAML: {' '.join(str(error).split())}.") from error
    if not isinstance(tree, dict):
        raise BadSetting(f"{path} must hold an experiment (`tasks: ...`), but holds {type(tree).__name__}. See docs/running.md.")
    return tree, node


def changed(tree: dict[str, Any], changes: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """With some values replaced, and the file's name where the experiment has none."""
    found: dict[str, Any] = {"name": path.stem, **tree}
    for place, value in changes.items():
        first, _, rest = place.partition(".")
        if rest:
            inner = found.get(first)
            found[first] = {**inner, rest: value} if isinstance(inner, dict) else {rest: value}
        else:
            found[first] = value
    return found


def validated(tree: dict[str, Any], node: yaml.Node | None, path: Path) -> Experiment:
    """The experiment, or all mistakes, one a line."""
    try:
        return Experiment.model_validate(tree)
    except ValidationError as error:
        found = [f"  {place(node, item['loc'])}{told(item)}" for item in error.errors()]
        raise BadSetting(f"{path} has {len(found)} mistake{'s' if len(found) > 1 else ''}:\n" + "\n".join(found)) from error
    except GraphgaugeError as error:
        raise BadSetting(f"{path}: {error}") from error


def place(node: yaml.Node | None, loc: tuple[int | str, ...]) -> str:
    """Where in the file: 'line 4, explainers.2.name: '."""
    name = ".".join(str(step) for step in loc)
    line = line_of(node, loc)
    return f"line {line}, {name}: " if line else f"{name}: "


def line_of(node: yaml.Node | None, loc: tuple[int | str, ...]) -> int | None:
    """The line of the deepest part of a place that the file has."""
    if node is None or not loc:
        return None
    for step in loc:
        inner = child(node, step)
        if inner is None:
            break
        node = inner
    return int(node.start_mark.line) + 1


def child(node: yaml.Node, step: int | str) -> yaml.Node | None:
    """What stands under a key or a number."""
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == step), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        found: yaml.Node = node.value[step]
        return found
    return None


def told(item: ErrorDetails) -> str:
    """A mistake for people."""
    if item["type"] == "extra_forbidden":
        return unknown_key(item["loc"])
    if item["type"] == "missing":
        return "is missing"
    text = str(item["ctx"]["error"]) if "error" in item.get("ctx", {}) else f"{item['msg']}, but is {item['input']!r}"
    return text.rstrip(".")


def unknown_key(loc: tuple[int | str, ...]) -> str:
    """A key that means nothing, with the one that was meant."""
    known = list(KEYS[str(loc[0]) if len(loc) > 1 else ""].model_fields)
    close = get_close_matches(str(loc[-1]), known, n=1)
    return f"is no key here.{f' Did you mean {close[0]!r}?' if close else ''} Known: {', '.join(known)}"
