"""Raw files from the addresses that PyG knows, fetched by PyG's own loaders: their download step,
and nothing else of them.

What arrives is put in place file by file; the checksums are compared when the files are read.
"""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any


def fetch_cora(root: Path) -> None:
    """Planetoid's eight files, to ``root/Cora/raw``."""
    from torch_geometric.datasets import Planetoid

    loader = Planetoid.__new__(Planetoid)  # its __init__ would also parse
    loader.root, loader.name, loader.split = str(root), "Cora", "public"
    fetch(loader)


def fetch_github(root: Path) -> None:
    """``root/GitHub/raw/github.npz``"""
    from torch_geometric.datasets import GitHub

    loader = GitHub.__new__(GitHub)
    loader.root = str(root / "GitHub")
    fetch(loader)


def fetch_movielens(root: Path) -> None:
    """The archive of GroupLens, unpacked to ``root/MovieLens/raw/ml-latest-small``."""
    from torch_geometric.datasets import MovieLens

    loader = MovieLens.__new__(MovieLens)
    loader.root = str(root / "MovieLens")
    fetch(loader)


FETCH: dict[str, Callable[[Path], None]] = {
    "Cora": fetch_cora,
    "GitHub": fetch_github,
    "MovieLens": fetch_movielens,
}


def fetch(loader: Any) -> None:
    """Call the download step of one of PyG's data sets."""
    os.makedirs(loader.raw_dir, exist_ok=True)
    loader.download()


def download(name: str, folder: Path, paths: list[str]) -> None:
    """Fetch the files of a data set into a new folder beside their place, then move them there,
    each in one step.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as fresh:
        FETCH[name](Path(fresh))
        for path in paths:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.move(Path(fresh) / path, folder / path)
