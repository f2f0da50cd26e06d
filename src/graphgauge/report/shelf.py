"""The runs under a folder, found by the files that runs are made of, and named by where they lie.

    run.sqlite                     a run of `graphgauge benchmark`
    rows.csv and settings.json     what `Results.save` wrote; rows.csv.xz: a published run

Hidden folders and links are not entered, so that every run lies under the folder itself, not
somewhere else on the machine.
"""

import os
from pathlib import Path

from graphgauge.core.errors import BadFile
from graphgauge.core.registry import lookup
from graphgauge.evaluation.results import ROWS, RUN, SETTINGS
from graphgauge.report.cleaned import tidy_names

DEEPEST = 4  #: folders below the root that are looked into


def runs_under(root: str | os.PathLike[str]) -> dict[str, Path]:
    """The runs under a folder: name -> where it is, in the order of names. A name is the path below
    the root, safe to show.
    """
    top = Path(root)
    if not top.is_dir():
        raise BadFile(
            f"{top} is no folder: name one that holds runs, such as the 'runs' that `graphgauge evaluate` writes to."
        )
    found = {str(place.relative_to(top)): place for place in folders(top, DEEPEST) if is_run(place)}
    return {tidied: found[name] for name, tidied in tidy_names(sorted(found)).items()}


def folders(top: Path, depth: int) -> list[Path]:
    """A folder and those in it, so deep; what may not be read is left out."""
    if depth == 0:
        return [top]
    try:
        inside = [
            Path(entry)
            for entry in os.scandir(top)
            if entry.is_dir(follow_symlinks=False) and entry.name[0] != "."
        ]
    except OSError:
        inside = []
    return [top, *(deeper for place in inside for deeper in folders(place, depth - 1))]


def is_run(place: Path) -> bool:
    """Whether a folder holds the files of a run."""
    return is_own_file(place / RUN) or (
        is_own_file(place / SETTINGS) and any(is_own_file(place / name) for name in ROWS)
    )


def is_own_file(path: Path) -> bool:
    """Whether there is such a file, and no link to another."""
    return path.is_file() and not path.is_symlink()


def run_under(root: str | os.PathLike[str], name: str) -> Path:
    """The folder of the run with a name that `runs_under` gives; no other folder can be had."""
    return lookup(runs_under(root), name, f"run under {root}")


def last_change(run: Path) -> float:
    """When a run was written to last, in seconds since 1970."""
    files = [run / name for name in (RUN, f"{RUN}-wal", *ROWS, SETTINGS, "project.json")]
    return max(path.stat().st_mtime for path in files if path.exists())
