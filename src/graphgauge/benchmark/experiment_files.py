"""Reads experiment files: YAML becomes an `Experiment`, or an error that lists every mistake with
its line.

Shipped experiments are read by name (`paper`), others by path (`my.yaml`).
"""

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

from graphgauge.benchmark.experiment import (
    Experiment,
    ExplainerChoice,
    MetricChoice,
    TargetChoice,
    TaskChoice,
)
from graphgauge.core import JsonObject, KnownKeys, UnknownName, read_config_file, validate_config

_EXPERIMENTS_FOLDER = Path(__file__).parent / "experiments"
_KEYS_BY_SECTION: KnownKeys = {
    "": Experiment,
    "tasks": TaskChoice,
    "explainers": ExplainerChoice,
    "metrics": MetricChoice,
    "targets": TargetChoice,
}


def shipped_experiments() -> dict[str, Path]:
    """The experiments that come with the library, by name."""
    return {path.stem: path for path in sorted(_EXPERIMENTS_FOLDER.glob("*.yaml"))}


def read_experiment(name: str | Path, changes: Mapping[str, object] | None = None) -> Experiment:
    """Read a shipped experiment by name, or one from a file.

    Args:
        name: Name or path.
        changes: Values that replace those of the file, such as ``{"targets.number": 5}``.
    """
    path = _find_experiment_path(str(name))
    tree, node = read_config_file(path, "an experiment", "`tasks: ...`, see docs/running.md")
    return validate_config(
        Experiment, _apply_changes(tree, changes or {}, path), node, path, _KEYS_BY_SECTION
    )


def _find_experiment_path(name: str) -> Path:
    """The path of an experiment. Raises `UnknownName` with the known names."""
    known = shipped_experiments()
    if name in known:
        return known[name]
    if name.endswith((".yaml", ".yml")) or "/" in name or Path(name).exists():
        return Path(name)
    close = get_close_matches(name, known, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise UnknownName(
        f"No experiment is called {name!r}.{hint} Known: {', '.join(known)}; or give a file, "
        "my.yaml."
    )


def _apply_changes(tree: JsonObject, changes: Mapping[str, object], path: Path) -> JsonObject:
    """The content with some values replaced; its name is that of the file unless it has one."""
    content: JsonObject = {"name": path.stem, **tree}
    for path_of_value, value in changes.items():
        first, _, rest = path_of_value.partition(".")
        if rest:
            inner = content.get(first)
            content[first] = {**inner, rest: value} if isinstance(inner, dict) else {rest: value}
        else:
            content[first] = value
    return content
