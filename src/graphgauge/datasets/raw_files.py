"""Finds raw files, and reads their content only after comparing its checksum.

Folders are searched in this order: the one that is named (``folder=``, ``--data``), the one in
`GRAPHGAUGE_DATA`, and the folder of downloads in the cache. The first two are only read. The cache
(`GRAPHGAUGE_CACHE`, else ``graphgauge`` in `XDG_CACHE_HOME` or ``~/.cache``) is the only folder
that is ever written to.

A file is read once, its sha256 is compared, and the same bytes are parsed: nothing can change in
between.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4

from graphgauge.core import BadFile, sha256_hex
from graphgauge.datasets.catalogue import DatasetDescription, RawFile
from graphgauge.datasets.downloads import download_files

_FILES_GUIDE = "docs/datasets.md says where the files come from"


def cache_folder() -> Path:
    """The only folder that the library writes to; it may not exist yet."""
    if chosen := os.environ.get("GRAPHGAUGE_CACHE"):
        return Path(chosen).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "graphgauge"


def _data_folders(folder: str | Path | None = None) -> list[Path]:
    """The folders to search, in order. Raises `BadFile` if a folder that people name does not
    exist.
    """
    folder_by_origin = {
        "folder= (--data)": folder,
        "GRAPHGAUGE_DATA": os.environ.get("GRAPHGAUGE_DATA"),
    }
    return [
        *(
            _check_folder(Path(path).expanduser(), by)
            for by, path in folder_by_origin.items()
            if path
        ),
        _downloads_folder(),
    ]


def _downloads_folder() -> Path:
    """The folder in which downloaded files are kept."""
    return cache_folder() / "data"


def _check_folder(path: Path, named_by: str) -> Path:
    """Return ``path`` if it is a folder; otherwise raise `BadFile`."""
    if path.is_dir():
        return path
    raise BadFile(
        f"{named_by} names {path} as data folder, but there is no such folder. {_FILES_GUIDE}."
    )


def _has_files(folder: Path, files: Iterable[RawFile]) -> bool:
    """Whether the folder holds all these files."""
    return all((folder / file.path).is_file() for file in files)


def find_data_folder(
    description: DatasetDescription, folder: str | Path | None = None
) -> Path | None:
    """The first folder that holds all files of a data set, or None.

    Args:
        description: The data set.
        folder: Searched first, before `GRAPHGAUGE_DATA` and the cache.
    """
    return next(
        (
            candidate
            for candidate in _data_folders(folder)
            if _has_files(candidate, description.files)
        ),
        None,
    )


def dataset_state(
    description: DatasetDescription, folder: str | Path | None = None
) -> tuple[str, Path | None]:
    """Whether a data set can be loaded without a download, and from which folder.

    Args:
        description: The data set.
        folder: Searched first, before `GRAPHGAUGE_DATA` and the cache.

    Returns:
        "generated", "ready", "damaged", "missing" or "no embeddings", and the folder or None. "no
        embeddings" means that a language model would have to compute them, because none of the
        files in ``one_of`` exists.
    """
    if description.is_generated:
        return "generated", None
    data_folder = find_data_folder(description, folder)
    return (
        ("missing", None)
        if data_folder is None
        else (_checked_state(description, data_folder, _data_folders(folder)), data_folder)
    )


def _checked_state(description: DatasetDescription, data_folder: Path, others: list[Path]) -> str:
    """Compare the checksums of the files in ``place``: "ready", "damaged" or "no embeddings"."""
    try:
        contents = _read_checked_files(description, data_folder, others)
    except BadFile:
        return "damaged"
    return (
        "no embeddings"
        if description.one_of and len(contents) == len(description.files)
        else "ready"
    )


def read_raw_files(
    description: DatasetDescription, folder: str | Path | None = None
) -> dict[str, bytes]:
    """The checked content of every file of a data set, by file name. Missing files are downloaded
    first.

    Args:
        description: The data set.
        folder: Searched first, before `GRAPHGAUGE_DATA` and the cache.
    """
    data_folder = find_data_folder(description, folder) or _download_dataset(description, folder)
    return _read_checked_files(description, data_folder, _data_folders(folder))


def _read_checked_files(
    description: DatasetDescription, data_folder: Path, others: list[Path]
) -> dict[str, bytes]:
    """The files that ``place`` must hold, and the first file of ``one_of`` that is there or in one
    of ``others``.
    """
    choices = [
        (folder, file)
        for folder in [data_folder, *others]
        for file in description.one_of
        if _has_files(folder, [file])
    ]
    needed_files = [*((data_folder, file) for file in description.files), *choices[:1]]
    return {file.name: _read_checked_file(folder, file) for folder, file in needed_files}


def _read_checked_file(folder: Path, file: RawFile) -> bytes:
    """Read a file. Raises `BadFile` if its checksum is not the known one."""
    content = (folder / file.path).read_bytes()
    checksum = sha256_hex(content)
    if checksum not in (file.sha256, _accepted_checksum(file)):
        raise BadFile(
            f"{folder / file.path} has the sha256 {checksum}, but {file.sha256} was expected: it "
            "is "
            "damaged or another file. Nothing of it was used. Delete it and download it again; "
            f"{_FILES_GUIDE}.{_acceptance_hint(file, checksum)}"
        )
    return content


def _accepted_checksum(file: RawFile) -> str | None:
    """The checksum that people gave for a file of their own, or None."""
    return os.environ.get(file.accepted_by) if file.accepted_by else None


def _acceptance_hint(file: RawFile, checksum: str) -> str:
    """How to accept another file, for data sets where that is possible."""
    return (
        f" If you trust this other file, set {file.accepted_by}={checksum}."
        if file.accepted_by
        else ""
    )


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file completely or not at all: under another name in the same folder, which is then
    renamed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _download_dataset(description: DatasetDescription, folder: str | Path | None) -> Path:
    """Download a data set into the cache and return the folder."""
    try:
        download_files(
            description.name, _downloads_folder(), [file.path for file in description.files]
        )
    except Exception as error:
        raise BadFile(
            f"{_missing_files_message(description, folder)} Downloading them failed: "
            f"{type(error).__name__}: {error}"
        ) from error
    return _downloads_folder()


def _missing_files_message(description: DatasetDescription, folder: str | Path | None) -> str:
    """An error message: which files are needed, where they were searched for, and where to put
    them.
    """
    folders = _data_folders(folder)
    file_list = ", ".join(file.path for file in description.files)
    return (
        f"The files of {description.name} were not found in {' or '.join(map(str, folders))}. "
        f"Put {file_list} into a folder and name it with folder=, --data or GRAPHGAUGE_DATA "
        f"({_FILES_GUIDE})."
    )
