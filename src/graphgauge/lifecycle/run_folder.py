"""The folder of a run or a validation: nothing is overwritten, and no signed decision is lost.

Without ``replace`` a folder that holds a run is refused. With it, the files of the earlier run are
removed, unless its decision is signed: then all of them move to ``earlier/DATE-DIGEST`` in the same
folder, the decision together with the rows behind it. A decision that cannot be read (because it
was edited, for example) is kept in the same way. Other files in the folder stay where they are.
"""

import os
from pathlib import Path
from tempfile import TemporaryFile

from graphgauge.core import BadFile
from graphgauge.evaluation import EXAMPLES_FILE, ORIGIN_FILE, ROWS_FILES, RUN_FILE, SETTINGS_FILE
from graphgauge.lifecycle.decision import DECISION_FILE, Decision

PROJECT_RECORD_FILE = "project.json"  #: what `Assessment.save` adds to results
VALIDATION_PAGE = "validation.md"  #: what `Validation.save` adds to results
PRODUCTION_FOLDER = "production"  #: folder of the second measurement of a validation
_REPORT_FILES = tuple(f"report.{suffix}" for suffix in ("html", "md", "json", "csv", "pdf"))
#: where a run with a signed decision goes when another run takes its place
_EARLIER_FOLDER = "earlier"
_RESULT_FILES = (*ROWS_FILES, SETTINGS_FILE, ORIGIN_FILE, EXAMPLES_FILE)
_RUN_FILES = (
    *_RESULT_FILES,
    PROJECT_RECORD_FILE,
    DECISION_FILE,
    VALIDATION_PAGE,
    *_REPORT_FILES,
    *(f"{PRODUCTION_FOLDER}/{name}" for name in _RESULT_FILES),
)


def check_folder(folder: str | os.PathLike[str], replace: bool = False) -> Path:
    """Make the folder for results before measuring, so that a bad folder does not cost an hour.

    Args:
        folder: Where results will be written; missing folders are made.
        replace: Whether the folder may hold an earlier run.

    Raises:
        BadFile: The folder cannot be written to, holds a benchmark run, or holds a run and
            ``replace`` is False.
    """
    place = Path(folder)
    if (place / RUN_FILE).exists():
        raise BadFile(
            f"{place} holds a benchmark run, which would hide other results there: "
            "name another folder."
        )
    if not replace:
        _check_empty(place)
    try:
        place.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=place).close()
    except OSError as error:
        raise BadFile(f"{place} cannot be written to: {error}.") from error
    return place


def clear_folder(folder: str | os.PathLike[str], replace: bool = False) -> Path:
    """Remove or archive the files of an earlier run, and return the folder.

    Args:
        folder: Where results will be written.
        replace: Whether the folder may hold an earlier run; a signed one is archived, not removed.

    Raises:
        BadFile: As in `check_folder`, or the earlier run cannot be moved.
    """
    place = check_folder(folder, replace)
    names = [name for name in _RUN_FILES if (place / name).is_file()] if _holds_run(place) else []
    is_kept = (place / DECISION_FILE).exists() and _describe_signature(place) is not None
    try:
        archive = _free_archive(place) if is_kept else None
        for name in names:
            if archive is None:
                (place / name).unlink()
            else:
                (archive / name).parent.mkdir(parents=True, exist_ok=True)
                (place / name).rename(archive / name)
    except OSError as error:
        raise BadFile(f"the earlier run in {place} could not be put aside: {error}.") from error
    return place


def _check_empty(place: Path) -> None:
    """Raise `BadFile` if a folder holds a run or a decision."""
    if not _holds_run(place):
        return
    what, kept = "a run", "the earlier one is then removed"
    if (place / DECISION_FILE).exists():
        signature = _describe_signature(place)
        signed = f", signed {signature}" if signature else ""
        kept = f"the earlier one is then kept in {place / _EARLIER_FOLDER}" if signature else kept
        what = f"a decision{signed}"
    raise BadFile(
        f"{place} holds {what}: name another folder (--output), or give --replace "
        f"(in Python replace=True); {kept}."
    )


def _holds_run(place: Path) -> bool:
    """Whether a folder holds results or a decision."""
    return any((place / name).exists() for name in (*ROWS_FILES, DECISION_FILE))


def _describe_signature(place: Path) -> str | None:
    """Say who signed the decision in a folder, and when; None if nobody did."""
    try:
        decision = Decision.read(place)
    except BadFile:
        return "by somebody or edited, for it cannot be read"
    return f"by {decision.signed_by} on {decision.signed}" if decision.signed_by else None


def _free_archive(place: Path) -> Path:
    """Return a new folder for the earlier run, named after its decision."""
    try:
        decision = Decision.read(place)
        name = f"{decision.made[:19].replace(':', '-')}-{decision.digest[:8]}"
    except BadFile:
        name = "unreadable"
    names = (name, *(f"{name}-{number}" for number in range(2, 10_000)))
    return next(
        place / _EARLIER_FOLDER / own
        for own in names
        if not (place / _EARLIER_FOLDER / own).exists()
    )
