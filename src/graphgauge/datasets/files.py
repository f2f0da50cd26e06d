"""Where raw files lie, and their content, checked before anybody looks at it.

Folders, in this order: the one that is named (``folder=``, ``--data``), the one in
`GRAPHGAUGE_DATA`, and the part of the cache that downloads go to. They are only read. The cache
(`GRAPHGAUGE_CACHE`, else ``graphgauge`` in `XDG_CACHE_HOME` or ``~/.cache``) is the only place that
is ever written to.

A file is read once, its sha256 is compared, and the same bytes are parsed: nothing can change in
between.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4

from graphgauge.core.digests import sha256_hex
from graphgauge.core.errors import BadFile
from graphgauge.datasets.descriptions import Description, RawFile
from graphgauge.datasets.downloads import download

GUIDE = "docs/datasets.md says where the files come from"


def cache_folder() -> Path:
    """The only folder that is written to; it need not exist yet."""
    if chosen := os.environ.get("GRAPHGAUGE_CACHE"):
        return Path(chosen).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "graphgauge"


def data_folders(folder: str | Path | None = None) -> list[Path]:
    """The folders to look into, first things first; one that people name must exist."""
    named = {"folder= (--data)": folder, "GRAPHGAUGE_DATA": os.environ.get("GRAPHGAUGE_DATA")}
    return [
        *(existing(Path(path).expanduser(), by) for by, path in named.items() if path),
        downloads_folder(),
    ]


def downloads_folder() -> Path:
    """Where downloaded files are kept."""
    return cache_folder() / "data"


def existing(path: Path, named_by: str) -> Path:
    """``path``, if it is a folder."""
    if path.is_dir():
        return path
    raise BadFile(f"{named_by} names {path} as data folder, but there is no such folder. {GUIDE}.")


def holds(folder: Path, files: Iterable[RawFile]) -> bool:
    """All these files are in the folder."""
    return all((folder / file.path).is_file() for file in files)


def folder_with(description: Description, folder: str | Path | None = None) -> Path | None:
    """The first folder that holds all files that a data set needs."""
    return next((place for place in data_folders(folder) if holds(place, description.files)), None)


def state_of(description: Description, folder: str | Path | None = None) -> tuple[str, Path | None]:
    """Whether a data set can be loaded without a download, and from where: generated, ready,
    damaged or missing.

    "no embeddings": the files are there, but of ``one_of`` none is, so that a language model would
    have to compute them.
    """
    if description.is_generated:
        return "generated", None
    place = folder_with(description, folder)
    return (
        ("missing", None)
        if place is None
        else (state_in(description, place, data_folders(folder)), place)
    )


def state_in(description: Description, place: Path, others: list[Path]) -> str:
    """What the checksums say of the files in ``place``."""
    try:
        contents = checked_contents(description, place, others)
    except BadFile:
        return "damaged"
    return (
        "no embeddings"
        if description.one_of and len(contents) == len(description.files)
        else "ready"
    )


def raw_contents(description: Description, folder: str | Path | None = None) -> dict[str, bytes]:
    """The checked content of every file of a data set, by file name; downloaded first where no
    folder has them.
    """
    place = folder_with(description, folder) or downloaded(description, folder)
    return checked_contents(description, place, data_folders(folder))


def checked_contents(description: Description, place: Path, others: list[Path]) -> dict[str, bytes]:
    """What is needed from ``place``, and the first of ``one_of`` that is there or in one of the
    ``others``.
    """
    choices = [
        (folder, file)
        for folder in [place, *others]
        for file in description.one_of
        if holds(folder, [file])
    ]
    wanted = [*((place, file) for file in description.files), *choices[:1]]
    return {file.name: checked_content(folder, file) for folder, file in wanted}


def checked_content(folder: Path, file: RawFile) -> bytes:
    """The bytes of a file whose checksum is the known one."""
    content = (folder / file.path).read_bytes()
    found = sha256(content)
    if found not in (file.sha256, accepted(file)):
        raise BadFile(
            f"{folder / file.path} has the sha256 {found}, but {file.sha256} was expected: it is damaged or another file. "
            f"Nothing of it was used. Delete it and fetch it again; {GUIDE}.{other_file(file, found)}"
        )
    return content


def accepted(file: RawFile) -> str | None:
    """The checksum that people gave for a file of their own."""
    return os.environ.get(file.accepted_by) if file.accepted_by else None


def other_file(file: RawFile, found: str) -> str:
    """What to do if a different file is meant, where that is possible."""
    return (
        f" If you trust this other file, set {file.accepted_by}={found}."
        if file.accepted_by
        else ""
    )


def sha256(content: bytes) -> str:
    """The checksum, in hexadecimal digits."""
    return sha256_hex(content)


def write_whole(path: Path, content: bytes) -> None:
    """The whole file or none of it: written under another name beside it, then renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        fresh.write_bytes(content)
        os.replace(fresh, path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def downloaded(description: Description, folder: str | Path | None) -> Path:
    """Files from PyG's addresses, put into the cache."""
    try:
        download(description.name, downloads_folder(), [file.path for file in description.files])
    except Exception as error:
        raise BadFile(
            f"{missing(description, folder)} Downloading them failed: {type(error).__name__}: {error}"
        ) from error
    return downloads_folder()


def missing(description: Description, folder: str | Path | None) -> str:
    """Which files are needed, where they were looked for, and where to put them."""
    places = data_folders(folder)
    wanted = ", ".join(file.path for file in description.files)
    return (
        f"The files of {description.name} were not found in {' or '.join(map(str, places))}. Put {wanted} into a folder "
        f"and name it with folder=, --data or GRAPHGAUGE_DATA ({GUIDE})."
    )
