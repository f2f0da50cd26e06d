"""Checks of `graphgauge doctor`: the machine, and a project from its file to its network."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.nn import Module

from graphgauge.checks import check_model
from graphgauge.core import BROKEN, NOTED, OK, DiagnosticLine, GraphgaugeError, JsonObject, Target
from graphgauge.datasets import cache_folder
from graphgauge.lifecycle.assessment import split_usable_explainers
from graphgauge.lifecycle.project import Project
from graphgauge.lifecycle.project_schema import add_project_file_hint
from graphgauge.models import BaseModel
from graphgauge.narrative import check_names_fit_model

_CHECK_STATUS = {"passed": OK, "skipped": OK, "noted": NOTED, "failed": BROKEN}


def machine_lines() -> list[DiagnosticLine]:
    """Check device, threads, and the folders for data and cache."""
    return [
        _device_line(),
        DiagnosticLine(
            "machine", "threads", OK, f"{torch.get_num_threads()} of {os.cpu_count()} cores"
        ),
        *_folder_lines(),
    ]


def _device_line() -> DiagnosticLine:
    """Check the device that computes."""
    if not torch.cuda.is_available():
        return DiagnosticLine("machine", "device", OK, "cpu")
    try:
        torch.zeros(1, device="cuda")
    except RuntimeError as error:
        return DiagnosticLine(
            "machine",
            "device",
            BROKEN,
            f"a GPU is there, but cannot be used: {str(error).splitlines()[0]}",
        )
    return DiagnosticLine("machine", "device", OK, f"cuda: {torch.cuda.get_device_name()}")


def _folder_lines() -> Iterator[DiagnosticLine]:
    """Check the folder with the paper's data sets, and the cache."""
    named = os.environ.get("GRAPHGAUGE_DATA")
    if named is None:
        yield DiagnosticLine(
            "machine", "data", OK, "GRAPHGAUGE_DATA is not set: only the paper's data sets need it"
        )
    elif Path(named).expanduser().is_dir():
        yield DiagnosticLine("machine", "data", OK, named)
    else:
        yield DiagnosticLine(
            "machine", "data", BROKEN, f"GRAPHGAUGE_DATA names {named}, but there is no such folder"
        )
    yield _cache_line(cache_folder())


def _cache_line(folder: Path) -> DiagnosticLine:
    """Check that the cache can be written to, and how much space it has."""
    place = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not os.access(place, os.W_OK):
        return DiagnosticLine(
            "machine",
            "cache",
            NOTED,
            f"{folder} cannot be written to: name another folder in GRAPHGAUGE_CACHE",
        )
    return DiagnosticLine(
        "machine", "cache", OK, f"{folder} ({shutil.disk_usage(place).free / 2**30:.0f} GiB free)"
    )


# --- a project ------------------------------------------------------------------------------------


def project_lines(read: Callable[[], Project]) -> Iterator[DiagnosticLine]:
    """Check a project step by step, up to the first failure, and then its model."""
    steps: dict[str, Callable[[JsonObject], Any]] = {
        "file": lambda made: read(),
        "network": lambda made: made["file"].net(),
        "graph": lambda made: made["file"].data(),
        "model": lambda made: _check_one_prediction(made["file"].model()),
        "targets": lambda made: made["file"].targets(made["model"]),
        "names": lambda made: _count_names(made["file"], made["model"]),
    }
    made: JsonObject = {}
    for name, step in steps.items():
        try:
            made[name] = step(made)
        except GraphgaugeError as error:
            yield DiagnosticLine("project", name, BROKEN, add_project_file_hint(error))
            return
        yield DiagnosticLine("project", name, *_step_outcome(name, made[name]))
    yield _explainers_line(made["file"], made["model"], made["targets"][0])
    yield from _check_lines(made["model"])


def _check_one_prediction(model: BaseModel) -> BaseModel:
    """Return the model after one prediction."""
    model.pred_continuous(model.population()[:1])
    return model


def _explainers_line(project: Project, model: BaseModel, target: Target) -> DiagnosticLine:
    """Check that every explainer can be run on the network, on one target."""
    try:
        able, left_out = split_usable_explainers(project.explainers(), model, target)
    except GraphgaugeError as error:
        return DiagnosticLine("project", "explainers", BROKEN, add_project_file_hint(error))
    told = ", ".join([*able, *(f"not {name}: {why}" for name, why in left_out.items())])
    return DiagnosticLine("project", "explainers", BROKEN if left_out else OK, told)


#: for each kind of thing, how many have a name, and how many there are if that is known
_NameCounts = dict[str, tuple[int, int | None]]


def _count_names(project: Project, model: BaseModel) -> _NameCounts:
    """Count the names of each kind of thing, or raise if something does not exist."""
    names = project.names(model)
    sizes = check_names_fit_model(names, model)
    return {
        kind: (len(getattr(names, kind) or {}), sizes.get(kind))
        for kind in ("features", "nodes", "classes")
    }


def _incomplete_name_lists(counts: _NameCounts) -> list[str]:
    """Describe lists that name some of the things, but not all of them.

    >>> _incomplete_name_lists({"features": (2, 3), "nodes": (0, 9), "classes": (2, 2)})
    ['2 of 3 features have a name']
    """
    return [
        f"{named} of {size} {kind} have a name"
        for kind, (named, size) in counts.items()
        if size and 0 < named < size
    ]


def _step_outcome(name: str, result: object) -> tuple[str, str]:
    """Return the status of a step that succeeded, and a description of its result."""
    if isinstance(result, Project):
        config = result.config
        return OK, f"{config.level} {config.task}, in {result.folder.absolute()}"
    if isinstance(result, Module):
        num_weights = sum(weight.numel() for weight in result.parameters())
        return OK, f"{type(result).__name__}, {num_weights:,} weights"
    if isinstance(result, dict):  # the counts of names
        incomplete = _incomplete_name_lists(result)
        named = ", ".join(f"{count} {kind}" for kind, (count, _) in result.items())
        if not incomplete:
            return OK, named
        return NOTED, f"{named}; {', '.join(incomplete)}: the others are told by their numbers"
    if isinstance(result, list):
        return OK, f"{len(result)} of them" if name == "targets" else f"{len(result)} graphs"
    return OK, repr(result)


def _check_lines(model: BaseModel) -> Iterator[DiagnosticLine]:
    """Run `check_model`, and return its findings."""
    for result in check_model(model, on_fail="return"):
        yield DiagnosticLine("check", result.name, _CHECK_STATUS[result.status], result.reason)
