"""A project: the user's network, data and settings, read from one file.

    project = Project.read("project.yaml")
    model = project.model()
    results = project.evaluator(model).compare(project.explainers(), project.targets(model))

Paths are relative to the file. Random initial weights are drawn with the project's seed, without
changing the global random state.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Data

from graphgauge.benchmark import label_explainers
from graphgauge.core import (
    BadFile,
    BadModel,
    BadSetting,
    BadTarget,
    GraphgaugeError,
    JsonObject,
    Target,
    read_config_file,
    resolve_device,
    temporary_global_seed,
    validate_config,
    warn_renamed,
)
from graphgauge.datasets import load_graph
from graphgauge.evaluation import Evaluator, Preset
from graphgauge.explainers import BaseExplainer
from graphgauge.guidelines import Requirements
from graphgauge.lifecycle.import_string import import_user_object, importable_folder
from graphgauge.lifecycle.project_schema import KNOWN_KEYS, ProjectConfig
from graphgauge.lifecycle.target_names import parse_named_target
from graphgauge.models import (
    BaseModel,
    GraphClassificationModel,
    GraphRegressionModel,
    LinkClassificationModel,
    LinkRegressionModel,
    NodeClassificationModel,
    NodeRegressionModel,
    load_weights,
)
from graphgauge.narrative import Names, complete_names
from graphgauge.subgraphs import TargetLike

_MODEL_WRAPPERS: Mapping[tuple[str, str], type[BaseModel]] = {
    ("node", "classification"): NodeClassificationModel,
    ("node", "regression"): NodeRegressionModel,
    ("link", "classification"): LinkClassificationModel,
    ("link", "regression"): LinkRegressionModel,
    ("graph", "classification"): GraphClassificationModel,
    ("graph", "regression"): GraphRegressionModel,
}
_PROJECT_EXAMPLE = (
    "`model: package.module:function`, `data: graph.safetensors` ...; "
    "`graphgauge init` writes one, see docs/your-model.md"
)


@dataclass(frozen=True)
class Project:
    """The content of a project file, and the folder that its paths start from.

    Args:
        config: The checked content of the file.
        folder: Paths in ``config`` are relative to this folder, and Python modules that it names
            are looked for here first.

    >>> from tempfile import mkdtemp
    >>> folder = mkdtemp()
    >>> _ = gg.datasets.save_graph(data, f"{folder}/graph.safetensors")
    >>> keys = {
    ...     "model": "torch_geometric.nn:GCN",
    ...     "arguments": {
    ...         "in_channels": 700, "hidden_channels": 8, "num_layers": 2, "out_channels": 4
    ...     },
    ...     "data": "graph.safetensors",
    ...     "level": "node",
    ...     "task": "classification",
    ...     "explainers": ["input_x_gradient", "random"],
    ...     "targets": [302, 510],
    ...     "settings": {"timed": 1},
    ... }
    >>> project = gg.Project.from_keys(keys, folder)
    >>> wrapped = project.model()
    >>> targets = project.targets(wrapped)
    >>> results = project.evaluator(wrapped).compare(project.explainers(), targets)
    >>> results.headline().index.tolist()
    ['input_x_gradient', 'random']
    """

    config: ProjectConfig
    folder: Path

    @staticmethod
    def read(
        path: str | os.PathLike[str], changes: Mapping[str, object] | None = None
    ) -> "Project":
        """Read a project from a YAML or TOML file.

        Args:
            path: The file; its ending, ".toml" or another one, says which format it has.
            changes: Values that replace those of the file, by key. A bare number of targets does
                not change where they are drawn from.

        Returns:
            The project, in the folder of the file.

        Raises:
            BadFile: The file cannot be read.
            BadSetting: The file has mistakes; all of them are listed.

        >>> from pathlib import Path
        >>> from tempfile import mkdtemp
        >>> path = Path(mkdtemp()) / "project.yaml"
        >>> _ = path.write_text("{model: 'torch_geometric.nn:GCN', data: g.safetensors, "
        ...                     "level: node, task: regression}")
        >>> gg.Project.read(path, {"seed": 3}).config.seed
        3
        """
        place = Path(path)
        tree, node = read_config_file(place, "a project", _PROJECT_EXAMPLE)
        changed = {**tree, **(changes or {})}
        if isinstance(tree.get("targets"), dict) and isinstance(changed.get("targets"), int):
            changed["targets"] = {
                "number": changed["targets"],
                "among": tree["targets"].get("among"),
            }
        return Project(
            validate_config(ProjectConfig, changed, node, place, KNOWN_KEYS), place.parent
        )

    @staticmethod
    def from_keys(
        keys: Mapping[str, object],
        folder: str | os.PathLike[str] = ".",
        called: str = "the project",
    ) -> "Project":
        """Build a project without a file.

        Args:
            keys: What a file would hold, such as ``{"model": "shop.networks:make_net", ...}``.
            folder: Where relative paths start, and modules are looked for first.
            called: Name of the project in error messages.

        Returns:
            The project; `Project` shows an example.

        Raises:
            BadSetting: The keys have mistakes; all of them are listed.
        """
        return Project(
            validate_config(ProjectConfig, dict(keys), None, called, KNOWN_KEYS), Path(folder)
        )

    @property
    def form(self) -> ProjectConfig:
        """The same as ``config``, which is its new name."""
        warn_renamed("Project.form", "config")
        return self.config

    def net(self) -> Module:
        """Build the network with its weights, on the project's device."""
        form = self.config
        with importable_folder(self.folder), temporary_global_seed(form.seed):
            net = _build_network(
                form.model, import_user_object(form.model, self.folder), form.arguments
            )
        if form.weights is not None:
            load_weights(net, self.folder / form.weights)
        return net.to(self.device)

    def data(self) -> Data | list[Data]:
        """Load the graph, or the list of graphs, to the project's device."""
        found = load_graph(self.folder / self.config.data)
        if isinstance(found, list) != (self.config.level == "graph"):
            held = f"a list of {len(found)} graphs" if isinstance(found, list) else "one graph"
            wanted = "a list of graphs" if self.config.level == "graph" else "one graph"
            raise BadFile(
                f"{self.config.data} holds {held}, but level: {self.config.level} needs {wanted}."
            )
        return (
            [graph.to(self.device) for graph in found]
            if isinstance(found, list)
            else found.to(self.device)
        )

    def model(self) -> BaseModel:
        """Wrap the network with its data."""
        wrapping: JsonObject = self.config.wrapping.model_dump(exclude_none=True)
        if "output" in wrapping and self.config.task == "regression":
            raise BadSetting(
                "wrapping.output says what a classification network returns; "
                "task is regression: leave it out."
            )
        if "output_column" in wrapping and self.config.task == "classification":
            raise BadSetting(
                "wrapping.output_column chooses one of several values; "
                "task is classification: leave it out."
            )
        with importable_folder(self.folder):
            wrapping |= {
                name: import_user_object(wrapping[name], self.folder)
                for name in ("forward", "embedding")
                if name in wrapping
            }
        return _MODEL_WRAPPERS[self.config.level, self.config.task](
            self.net(), self.data(), **wrapping
        )

    @property
    def device(self) -> torch.device:
        """The requested device, or a GPU if there is one."""
        return resolve_device(self.config.device)

    def explainers(self) -> dict[str, BaseExplainer]:
        """Build the explainers, by the labels that results show."""
        return dict(
            zip(
                label_explainers(self.config.explainers),
                (choice.build() for choice in self.config.explainers),
                strict=True,
            )
        )

    def evaluator(self, model: BaseModel | None = None) -> Evaluator:
        """Build an Evaluator with the project's settings.

        Args:
            model: What `model` returned, so that it is not built twice; None: build it.
        """
        form = self.config
        metrics = [choice.build() for choice in form.metrics]
        wrapped = self.model() if model is None else model
        return Evaluator(
            wrapped,
            cast(Preset, form.preset),
            form.seed,
            task=form.name,
            metrics=metrics,
            **form.settings,
        )

    def targets(self, model: BaseModel) -> list[Target]:
        """Return the listed targets, or draw some, spread over classes and confidence.

        Args:
            model: What `model` returned; its predictions decide what is drawn (see
                `sample_targets`).
        """
        wanted = self.config.targets
        if wanted.number is not None:
            among = None if wanted.among is None else candidate_targets(model, wanted.among)
            return self.evaluator(model).sample(wanted.number, among)
        listed = (
            (wanted.chosen or [])
            if wanted.file is None
            else read_target_list(self.folder / wanted.file)
        )
        return self.read_targets(model, listed)

    def read_targets(self, model: BaseModel, given: Sequence[TargetLike]) -> list[Target]:
        """Parse targets that are given by number, or by a name from the project or the data.

        Args:
            model: What `model` returned.
            given: Targets as people write them: 17, "17", "Ada", [3, 5] or "Ada, Bob".

        Raises:
            BadTarget: A target does not exist, or its name is not unique.
        """
        names = self.names(model)
        found = [
            parse_named_target(target, self.config.level, names, has_label=model.labels is not None)
            for target in given
        ]
        return list(model.parse_targets(found))

    def names(self, model: BaseModel) -> Names:
        """Return the names of features, nodes and classes: the file's, completed by the data's.

        Args:
            model: What `model` returned, whose data may hold names.
        """
        return complete_names(self.evaluator(model), self.config.names)

    def requirements(self, model: BaseModel) -> Requirements:
        """Return what the project requires of explanations, for verdicts.

        Args:
            model: What `model` returned, whose number of features some thresholds depend on.
        """
        kind, size = f"{self.config.level}_{self.config.task}", model.source.x.size(1)
        return Requirements(
            task_kind=kind,
            num_features=size,
            limits=self.config.thresholds,
            **self.config.use.model_dump(),
        )


def _build_network(address: str, make: object, arguments: Mapping[str, object]) -> Module:
    """Call the user's function, and check that it returns a network."""
    if not callable(make) or isinstance(make, Module):
        raise BadModel(
            f"{address} must be a function or class that gives the network, "
            f"but is {type(make).__name__}."
        )
    try:
        net = make(**arguments)
    except GraphgaugeError:
        raise
    except Exception as error:
        given = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
        raise BadModel(
            f"{address}({given}) failed: {type(error).__name__}: {error}. "
            "`arguments` are passed by name."
        ) from error
    if not isinstance(net, Module):
        raise BadModel(f"{address} must give a torch.nn.Module, but gave {type(net).__name__}.")
    return net


def candidate_targets(model: BaseModel, name: str) -> Tensor:
    """Return the targets that a tensor in the data selects.

    Args:
        model: The wrapped network with its data.
        name: Name of the tensor: a mask over nodes (N,) bool, node ids (P,), pairs (2, P), or for
            graphs a yes or no in each.

    Returns:
        The targets: node ids or graph numbers (P,), pairs (P, 2).

    Raises:
        BadSetting: The data have no such tensor.
        BadTarget: The tensor selects no target.
    """
    graphs = model.data if model.level == "graph" else [model.data]
    held = [graph.get(name) for graph in graphs]
    if not all(isinstance(value, Tensor) for value in held):
        keys = graphs[0].keys()  # `Data` is no mapping: it iterates over pairs
        known = ", ".join(key for key in keys if isinstance(graphs[0][key], Tensor))
        raise BadSetting(
            f"targets.among is {name!r}, but the data has no such tensor. It has: {known}."
        )
    found = (
        torch.stack([value.reshape(()) for value in held]) if model.level == "graph" else held[0]
    )
    chosen = (
        found.nonzero()[:, 0]
        if found.dtype == torch.bool
        else found.T
        if model.level == "link"
        else found
    )
    if not len(chosen):
        raise BadTarget(
            f"targets.among is {name!r}, but it names no target: "
            "all of it is False, or it is empty."
        )
    return chosen


def read_target_list(path: Path) -> list[TargetLike]:
    """Read targets from a JSON list, or from a text file with one target per line.

    The two ends of a link are separated by a space or a comma. Whether the entries of a JSON list
    are targets is checked where the model parses them.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        found = (
            json.loads(text)
            if path.suffix == ".json"
            else [_parse_target_line(line) for line in text.splitlines() if line.strip()]
        )
    except (OSError, ValueError) as error:
        raise BadFile(
            f"{path} holds no list of targets: {error}. Write one a line, `17`, or for links `3 5`."
        ) from error
    if not isinstance(found, list):
        raise BadFile(
            f"{path} must hold a list of targets, such as [0, 17], "
            f"but holds {type(found).__name__}."
        )
    return found


def _parse_target_line(line: str) -> TargetLike:
    """Parse a line of a list of targets: numbers, or else a name.

    >>> _parse_target_line("17"), _parse_target_line("3, 5"), _parse_target_line("3 5")
    (17, [3, 5], [3, 5])
    >>> _parse_target_line("Ada, Bob")
    'Ada, Bob'
    """
    parts = line.replace(",", " ").split()
    if not all(part.isdecimal() for part in parts):
        return line
    return int(parts[0]) if len(parts) == 1 else [int(part) for part in parts]
