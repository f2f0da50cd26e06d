"""Find the runs below a folder, by the files that a run consists of.

    run.sqlite                     a run of `graphgauge benchmark`
    rows.csv and settings.json     what `Results.save` wrote; rows.csv.xz: a published run

The search enters no hidden folders and no links, so every run lies below the folder itself, not
somewhere else on the machine.
"""

import os
from pathlib import Path

from graphgauge.core import BadFile, lookup
from graphgauge.evaluation import ROWS_FILES, RUN_FILE, SETTINGS_FILE
from graphgauge.report.sanitize import tidy_names

_MAX_DEPTH = 4  #: folders below the root that are looked into


def find_runs(root: str | os.PathLike[str]) -> dict[str, Path]:
    """Return the folder of each run below ``root`` by its name, in the order of names.

    A name is the path below the root, changed where that makes it safe to show.
    """
    top = Path(root)
    if not top.is_dir():
        raise BadFile(
            f"{top} is no folder: name one that holds runs, such as the 'runs' that "
            "`graphgauge evaluate` writes to."
        )
    run_folders = {
        str(place.relative_to(top)): place
        for place in _list_folders(top, _MAX_DEPTH)
        if _is_run_folder(place)
    }
    return {
        tidy_name: run_folders[name] for name, tidy_name in tidy_names(sorted(run_folders)).items()
    }


def _list_folders(top: Path, depth: int) -> list[Path]:
    """Return a folder and those in it to a depth; unreadable ones are left out."""
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
    return [top, *(deeper for place in inside for deeper in _list_folders(place, depth - 1))]


def _is_run_folder(place: Path) -> bool:
    """Whether a folder holds the files of a run."""
    return _is_regular_file(place / RUN_FILE) or (
        _is_regular_file(place / SETTINGS_FILE)
        and any(_is_regular_file(place / name) for name in ROWS_FILES)
    )


def _is_regular_file(path: Path) -> bool:
    """Whether the path is a file, and no link to another."""
    return path.is_file() and not path.is_symlink()


def find_run(root: str | os.PathLike[str], name: str) -> Path:
    """Return the folder of a run by a name from `find_runs`; no other folder can be reached."""
    return lookup(find_runs(root), name, f"run under {root}")


def last_modified(run: Path) -> float:
    """Return when a run was last written to, in seconds since 1970."""
    files = [
        run / name
        for name in (RUN_FILE, f"{RUN_FILE}-wal", *ROWS_FILES, SETTINGS_FILE, "project.json")
    ]
    return max(path.stat().st_mtime for path in files if path.exists())
