"""Downloads raw files from the addresses that PyG knows: calls the download step of PyG's own
loaders, and nothing else of them.

Each file is then moved to its place in one step. Its checksum is compared when it is read.
"""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any


def _fetch_cora(root: Path) -> None:
    """Download Planetoid's eight files to ``root/Cora/raw``."""
    from torch_geometric.datasets import Planetoid

    loader = Planetoid.__new__(Planetoid)  # its __init__ would also parse
    loader.root, loader.name, loader.split = str(root), "Cora", "public"
    _run_download(loader)


def _fetch_github(root: Path) -> None:
    """Download ``root/GitHub/raw/github.npz``."""
    from torch_geometric.datasets import GitHub

    loader = GitHub.__new__(GitHub)
    loader.root = str(root / "GitHub")
    _run_download(loader)


def _fetch_movielens(root: Path) -> None:
    """Download the archive of GroupLens and unpack it to ``root/MovieLens/raw/ml-latest-small``."""
    from torch_geometric.datasets import MovieLens

    loader = MovieLens.__new__(MovieLens)
    loader.root = str(root / "MovieLens")
    _run_download(loader)


_FETCHERS: dict[str, Callable[[Path], None]] = {
    "Cora": _fetch_cora,
    "GitHub": _fetch_github,
    "MovieLens": _fetch_movielens,
}


def _run_download(loader: Any) -> None:
    """Call the download step of one of PyG's data sets."""
    os.makedirs(loader.raw_dir, exist_ok=True)
    loader.download()


def download_files(name: str, folder: Path, paths: list[str]) -> None:
    """Download the files of a data set into a new folder, then move each to its place in one step.

    Args:
        name: Name of the data set.
        folder: The data folder; the new folder is created in it.
        paths: Paths of the files below the data folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as new_folder:
        _FETCHERS[name](Path(new_folder))
        for path in paths:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.move(Path(new_folder) / path, folder / path)
