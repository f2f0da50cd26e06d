"""Loaded tasks, read once; downloads that fail, so that no test needs a network."""

from functools import lru_cache

import pytest
import torch_geometric.datasets as pyg

from graphgauge.datasets import DATASETS, load


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """PyG's download steps fail at once."""

    def fail(self):
        raise OSError("the network is not there")

    for loader in (pyg.Planetoid, pyg.GitHub, pyg.MovieLens):
        monkeypatch.setattr(loader, "download", fail)


@pytest.fixture(scope="session")
def loaded(request):
    """``loaded(name, level)``; skips where files are needed and there is no data folder."""

    @lru_cache
    def get(name, level):
        folder = None if DATASETS[name].is_generated else request.getfixturevalue("data_folder")
        return load(name, level, folder)

    return get
