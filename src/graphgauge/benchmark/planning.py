"""From an experiment to its shards. Data and networks are loaded once, to know exactly what will be
measured.
"""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

from torch import nn
from torch_geometric.data import Data

from graphgauge.benchmark.experiment import Experiment, TaskChoice
from graphgauge.benchmark.shards import RUN_FORMAT, ComponentSpec, Shard, split_targets
from graphgauge.core import JsonObject, blake2b_hex, digest_of_tensors
from graphgauge.datasets import benchmark_targets, load, trained
from graphgauge.datasets import data_digest as digest_of_data
from graphgauge.evaluation import Evaluator, Preset
from graphgauge.models import (
    BaseModel,
    LinkClassificationModel,
    LinkRegressionModel,
    NodeClassificationModel,
    NodeRegressionModel,
)

_MODEL_WRAPPERS: dict[tuple[str, str], type[BaseModel]] = {
    ("node", "classification"): NodeClassificationModel,
    ("node", "regression"): NodeRegressionModel,
    ("link", "classification"): LinkClassificationModel,
    ("link", "regression"): LinkRegressionModel,
}


@dataclass(frozen=True)
class RunEnvironment:
    """Where a worker finds its files and on which device it computes; changes no number beyond
    rounding.
    """

    data: str | None = None  #: folder with the raw data sets
    networks: str | None = None  #: folder with kept networks; None: those of the library
    device: str = "cpu"
    memory: str | None = None  #: budget of batched calls, such as "2GiB"


@dataclass(frozen=True)
class RunPlan:
    """All shards of an experiment, and everything that decides their numbers as plain data."""

    experiment: Experiment
    config: JsonObject
    shards: list[Shard]

    @property
    def size(self) -> int:
        """The number of explanations of the run, without repetitions for Stability."""
        return sum(shard.size for shard in self.shards)


def plan_run(experiment: Experiment, place: RunEnvironment) -> RunPlan:
    """Load every task and network, and divide the work into shards.

    Args:
        experiment: What is measured on what.
        place: Where the data and the networks are; the plan is the same wherever they are found.
    """
    config, shards = _run_config(experiment), []
    for choice in experiment.tasks:
        data = load(choice.data, choice.level, folder=place.data)
        config["data"][choice.name] = digest_of_data(data)
        for conv in experiment.models:
            net = trained(choice.data, choice.level, conv, folder=place.networks)
            config["networks"][f"{choice.name}-{conv}"] = network_digest(net)
            shards += _create_shards(experiment, config, choice, conv, wrap_network(net, data))
    return RunPlan(experiment, config, shards)


def _run_config(experiment: Experiment) -> JsonObject:
    """Everything that decides the numbers of a run; a run is continued only where all of it is the
    same.
    """
    return {
        "format": RUN_FORMAT,
        "name": experiment.name,
        "tasks": [task.name for task in experiment.tasks],
        "models": list(experiment.models),
        "explainers": {
            component.label: {"name": component.name, **component.parameters}
            for component in _explainer_specs(experiment)
        },
        "metrics": {
            component.label: dict(component.parameters) for component in _metric_specs(experiment)
        },
        "preset": experiment.preset,
        "settings": experiment.full_settings.record(),
        "targets": experiment.targets.model_dump(),
        "block": experiment.block,
        "seed": experiment.seed,
        "data": {},
        "networks": {},
    }


def _explainer_specs(experiment: Experiment) -> tuple[ComponentSpec, ...]:
    """The explainers with all their parameters, also those left at their default."""
    built = [choice.build() for choice in experiment.explainers]
    return tuple(
        ComponentSpec(label, explainer.name, dict(explainer.params))
        for label, explainer in zip(experiment.labels, built, strict=True)
    )


def _metric_specs(experiment: Experiment) -> tuple[ComponentSpec, ...]:
    """The additional metrics with all their parameters."""
    return tuple(
        ComponentSpec(choice.name, choice.name, asdict(choice.build()))
        for choice in experiment.metrics
    )


def _create_shards(
    experiment: Experiment, config: JsonObject, choice: TaskChoice, conv: str, model: BaseModel
) -> list[Shard]:
    """The shards of one task and network."""
    targets = benchmark_targets(model.data, experiment.targets.number, experiment.targets.seed)
    settings, num_before = experiment.full_settings, 0
    metrics = [each.build() for each in experiment.metrics]
    preset = cast(Preset, experiment.preset)
    names = Evaluator(model, preset, metrics=metrics, **experiment.settings).metric_names
    whole = Shard(
        task=choice.name,
        data_set=choice.data,
        level=choice.level,
        model=conv,
        block=0,
        targets=tuple(targets),
        explainers=_explainer_specs(experiment),
        metrics=_metric_specs(experiment),
        names=tuple(names),
        settings=settings.record(),
        timed=0,
        timed_elsewhere=0,
        seed=experiment.seed,
        data=config["data"][choice.name],
        network=config["networks"][f"{choice.name}-{conv}"],
    )
    shards = []
    for number, part in enumerate(split_targets(targets, experiment.block)):
        elsewhere = min(len(part), max(0, settings.timed - num_before))
        shards.append(replace(whole, block=number, targets=part, timed_elsewhere=elsewhere))
        num_before += len(part)
    timed = tuple(targets[: settings.timed])
    if not timed:
        return shards
    return [replace(whole, block=len(shards), targets=timed, timed=len(timed)), *shards]


def wrap_network(net: nn.Module, data: Data, memory: str | None = None) -> BaseModel:
    """Wrap a network for its task. The networks of the benchmark return logits, however far they
    are trained.

    Args:
        net: A network for node or link tasks, on the device of ``data``.
        data: The task; its level and kind choose the class of the wrapper.
        memory: Budget of batched calls, such as "2GiB"; None lets the model choose.
    """
    options: dict[str, Any] = {"output": "logits"} if data.task == "classification" else {}
    return _MODEL_WRAPPERS[data.level, data.task](net, data, memory_budget=memory, **options)


def network_digest(net: nn.Module) -> str:
    """A digest of the structure and the weights of a network."""
    return digest_of_tensors(net.state_dict().values()) + blake2b_hex(repr(net), size=4)


def absolute_folder(folder: str | Path | None) -> str | None:
    """The absolute path of a folder as text, for workers with another working directory."""
    return None if folder is None else str(Path(folder).absolute())
