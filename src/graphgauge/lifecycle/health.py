"""Is everything in order: the machine, and a project from its file to its network?"""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from graphgauge.core.errors import GraphgaugeError
from graphgauge.core.packages import BROKEN, NOTED, OK, Line
from graphgauge.core.xplanation import Target
from graphgauge.datasets.files import cache_folder
from graphgauge.lifecycle.assessment import usable
from graphgauge.lifecycle.form import told_for_files
from graphgauge.lifecycle.project import Project
from graphgauge.models import BaseModel, check_model
from graphgauge.narrative.facts import checked_sizes

FROM_CHECK = {"passed": OK, "skipped": OK, "noted": NOTED, "failed": BROKEN}


def machine_lines() -> list[Line]:
    """Device, threads, and the folders for data and cache."""
    return [
        device_line(),
        Line("machine", "threads", OK, f"{torch.get_num_threads()} of {os.cpu_count()} cores"),
        *folder_lines(),
    ]


def device_line() -> Line:
    """What computes."""
    if not torch.cuda.is_available():
        return Line("machine", "device", OK, "cpu")
    try:
        torch.zeros(1, device="cuda")
    except RuntimeError as error:
        return Line(
            "machine",
            "device",
            BROKEN,
            f"a GPU is there, but cannot be used: {str(error).splitlines()[0]}",
        )
    return Line("machine", "device", OK, f"cuda: {torch.cuda.get_device_name()}")


def folder_lines() -> Iterator[Line]:
    """The folder with the paper's data sets, and the cache."""
    named = os.environ.get("GRAPHGAUGE_DATA")
    if named is None:
        yield Line(
            "machine", "data", OK, "GRAPHGAUGE_DATA is not set: only the paper's data sets need it"
        )
    elif Path(named).expanduser().is_dir():
        yield Line("machine", "data", OK, named)
    else:
        yield Line(
            "machine", "data", BROKEN, f"GRAPHGAUGE_DATA names {named}, but there is no such folder"
        )
    yield cache_line(cache_folder())


def cache_line(folder: Path) -> Line:
    """Whether the cache can be written to, and how much room is left there."""
    place = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not os.access(place, os.W_OK):
        return Line(
            "machine",
            "cache",
            NOTED,
            f"{folder} cannot be written to: name another folder in GRAPHGAUGE_CACHE",
        )
    return Line(
        "machine", "cache", OK, f"{folder} ({shutil.disk_usage(place).free / 2**30:.0f} GiB free)"
    )


# --- a project ------------------------------------------------------------------------------------


def project_lines(read: Callable[[], Project]) -> Iterator[Line]:
    """A project step by step, up to the first that fails; then the checks of its model."""
    steps: dict[str, Callable[[dict[str, Any]], Any]] = {
        "file": lambda made: read(),
        "network": lambda made: made["file"].net(),
        "graph": lambda made: made["file"].data(),
        "model": lambda made: called(made["file"].model()),
        "targets": lambda made: made["file"].targets(made["model"]),
        "names": lambda made: checked_names(made["file"], made["model"]),
    }
    made: dict[str, Any] = {}
    for name, step in steps.items():
        try:
            made[name] = step(made)
        except GraphgaugeError as error:
            yield Line("project", name, BROKEN, told_for_files(error))
            return
        yield Line("project", name, status_of(name, made[name]), described(name, made[name]))
    yield explainers_line(made["file"], made["model"], made["targets"][0])
    yield from check_lines(made["model"])


def called(model: BaseModel) -> BaseModel:
    """The model, after one prediction."""
    model.pred_continuous(model.population()[:1])
    return model


def explainers_line(project: Project, model: BaseModel, target: Target) -> Line:
    """Whether every explainer can be run on the network, tried on one target."""
    try:
        able, left_out = usable(project.explainers(), model, target)
    except GraphgaugeError as error:
        return Line("project", "explainers", BROKEN, told_for_files(error))
    told = ", ".join([*able, *(f"not {name}: {why}" for name, why in left_out.items())])
    return Line("project", "explainers", BROKEN if left_out else OK, told)


Counts = dict[
    str, tuple[int, int | None]
]  #: for each kind of thing, how many have a name, and how many there are if that is known


def checked_names(project: Project, model: BaseModel) -> Counts:
    """How many of each kind of thing have a name; refuses names of what is not there, as sentences
    would.
    """
    names = project.names(model)
    sizes = checked_sizes(names, model)
    return {
        kind: (len(getattr(names, kind) or {}), sizes.get(kind))
        for kind in ("features", "nodes", "classes")
    }


def short_lists(counts: Counts) -> list[str]:
    """Lists that name some of the things, but not all of them.

    >>> short_lists({"features": (2, 3), "nodes": (0, 9), "classes": (2, 2)})
    ['2 of 3 features have a name']
    """
    return [
        f"{named} of {size} {kind} have a name"
        for kind, (named, size) in counts.items()
        if size and 0 < named < size
    ]


def status_of(name: str, made: Any) -> str:
    """In order; names that are short are noted."""
    return NOTED if name == "names" and short_lists(made) else OK


def described(name: str, made: Any) -> str:
    """What a step gave, for people."""
    if name == "file":
        return f"{made.form.level} {made.form.task}, in {made.folder.absolute()}"
    if name == "network":
        return f"{type(made).__name__}, {sum(weight.numel() for weight in made.parameters()):,} weights"
    if name == "targets":
        return f"{len(made)} of them"
    if name == "names":
        short = (
            f"; {', '.join(short_lists(made))}: the others are told by their numbers"
            if short_lists(made)
            else ""
        )
        return ", ".join(f"{named} {kind}" for kind, (named, _) in made.items()) + short
    return f"{len(made)} graphs" if isinstance(made, list) else repr(made)


def check_lines(model: BaseModel) -> Iterator[Line]:
    """What `check_model` finds."""
    for result in check_model(model, on_fail="return"):
        yield Line("check", result.name, FROM_CHECK[result.status], result.reason)
