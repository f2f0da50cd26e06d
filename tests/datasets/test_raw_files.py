"""Raw files are checked before they are parsed, the cache is the only place written to, missing
files are named.
"""

import io
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch_geometric.datasets as pyg

from graphgauge.core.errors import BadFile, GraphgaugeWarning
from graphgauge.datasets import DATASETS, cache_folder, dataset_state, load, loading
from graphgauge.datasets.cora import _unpickle_safely
from graphgauge.datasets.github import _check_counts

READ = ["Cora", "GitHub", "MovieLens"]
FILES = [
    (name, file.path) for name in READ for file in (*DATASETS[name].files, *DATASETS[name].one_of)
]


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    """An empty cache for each test, and no data folder that is not named."""
    monkeypatch.setenv("GRAPHGAUGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GRAPHGAUGE_DATA", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def linked(data_folder, tmp_path):
    """A data folder of its own, made of links to the raw files."""
    for _, path in FILES:
        (tmp_path / "data" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / path).symlink_to(data_folder / path)
    return tmp_path / "data"


def replace(path, content):
    path.unlink()
    path.write_bytes(content)


def damaged(content):
    """One bit in the middle has changed."""
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize(("name", "path"), FILES)
def test_a_damaged_file_is_refused_before_anything_is_parsed(linked, monkeypatch, name, path):
    if path.endswith("float16.npz"):
        (
            linked / path.replace("all9742_float16", "1180_float32")
        ).unlink()  # else the other file is used
    replace(linked / path, damaged((linked / path).read_bytes()))
    monkeypatch.setitem(loading._PARSERS, name, lambda contents: pytest.fail("parsed"))
    expected = next(
        file.sha256 for file in (*DATASETS[name].files, *DATASETS[name].one_of) if file.path == path
    )
    with pytest.raises(
        BadFile,
        match=f"{path} has the sha256 [0-9a-f]{{64}}, but {expected} was expected.* "
        "Delete it and download it again",
    ):
        load(name, "node", linked)
    assert dataset_state(DATASETS[name], linked) == ("damaged", linked)


def test_a_damaged_file_is_refused_also_when_the_parsed_set_was_kept(linked):
    load("Cora", "node", linked)
    replace(linked / "Cora/raw/ind.cora.y", b"")
    with pytest.raises(BadFile, match=r"ind\.cora\.y has the sha256 e3b0c44298fc"):
        load("Cora", "node", linked)


@pytest.mark.parametrize("suffix", [".json", ".safetensors"])
@pytest.mark.parametrize(
    "damage",
    [damaged, lambda content: b"", lambda content: content[:-9], lambda content: b"[]", None],
)
def test_a_damaged_cache_is_made_anew(linked, own_cache, suffix, damage):
    first = load("Cora", "node", linked)
    (path,) = (own_cache / "processed").glob(f"*{suffix}")
    whole = path.read_bytes()
    path.unlink() if damage is None else path.write_bytes(damage(whole))
    again = load("Cora", "node", linked)
    assert path.read_bytes() == whole
    assert again.x.equal(first.x)
    assert again.class_names == first.class_names


def test_what_was_kept_is_not_parsed_again(linked, monkeypatch, own_cache):
    first = load("Cora", "link", linked)
    monkeypatch.setitem(loading._PARSERS, "Cora", lambda contents: pytest.fail("parsed"))
    assert load("Cora", "link", linked).edge_label_index.equal(first.edge_label_index)
    assert sorted(path.suffix for path in (own_cache / "processed").iterdir()) == [
        ".json",
        ".safetensors",
    ]


def snapshot(folder):
    """Every path below a folder with its size and time."""
    return {
        str(path): (path.lstat().st_size, path.lstat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
    }


@pytest.mark.parametrize("name", DATASETS)
def test_nothing_is_written_outside_the_cache(tmp_path, monkeypatch, own_cache, request, name):
    folder = None if DATASETS[name].is_generated else request.getfixturevalue("linked")
    for variable, place in {"HOME": "home", "TMPDIR": "tmp", "XDG_CACHE_HOME": "xdg"}.items():
        (tmp_path / place).mkdir()
        monkeypatch.setenv(variable, str(tmp_path / place))
    monkeypatch.chdir(tmp_path / "home")
    original = (
        Path(os.path.realpath(folder / FILES[0][1])).parents[2] if folder else tmp_path / "home"
    )
    before, raw = snapshot(tmp_path), snapshot(original)
    load(name, "link", folder)
    changed = {path for path, state in snapshot(tmp_path).items() if before.get(path) != state}
    assert snapshot(original) == raw
    assert all(path.startswith(str(own_cache)) for path in changed)
    assert bool(changed) == (folder is not None)


def test_a_cache_that_cannot_be_written_to_is_told_and_does_not_stop_the_load(linked, own_cache):
    own_cache.write_text("a file, where a folder should be")
    with pytest.warns(GraphgaugeWarning, match="name a writable folder in GRAPHGAUGE_CACHE"):
        assert load("Cora", "node", linked).num_nodes == 2708


@pytest.mark.parametrize("name", READ)
def test_missing_files_are_named_with_the_places_to_put_them(tmp_path, own_cache, name):
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadFile) as caught:
        load(name, "node", tmp_path / "empty")
    message = str(caught.value)
    assert (
        f"The files of {name} were not found in {tmp_path / 'empty'} or {own_cache / 'data'}"
        in message
    )
    assert all(file.path in message for file in DATASETS[name].files)
    assert "--data or GRAPHGAUGE_DATA" in message
    assert message.endswith("Downloading them failed: OSError: the network is not there")
    assert list((own_cache / "data").iterdir()) == []
    assert dataset_state(DATASETS[name], tmp_path / "empty") == ("missing", None)


def test_one_missing_file_counts_as_missing(linked):
    (linked / "Cora/raw/ind.cora.y").unlink()
    with pytest.raises(BadFile, match="The files of Cora were not found"):
        load("Cora", "node", linked)


@pytest.mark.parametrize("variable", ["folder", "GRAPHGAUGE_DATA"])
def test_a_folder_that_is_not_there_is_refused_by_the_name_of_its_setting(
    tmp_path, monkeypatch, variable
):
    nowhere = tmp_path / "nowhere"
    monkeypatch.setenv(
        "GRAPHGAUGE_DATA", str(nowhere if variable == "GRAPHGAUGE_DATA" else tmp_path)
    )
    with pytest.raises(
        BadFile, match=rf"{variable}.* names {nowhere} as data folder, but there is no such folder"
    ):
        load("Cora", "node", nowhere if variable == "folder" else None)


def test_the_named_folder_comes_before_the_variable_and_the_variable_before_the_cache(
    linked, monkeypatch, tmp_path
):
    monkeypatch.setenv("GRAPHGAUGE_DATA", str(linked))
    assert dataset_state(DATASETS["Cora"]) == ("ready", linked)
    shutil.copytree(linked / "Cora", tmp_path / "other" / "Cora")
    assert dataset_state(DATASETS["Cora"], tmp_path / "other") == ("ready", tmp_path / "other")
    assert dataset_state(DATASETS["GitHub"], tmp_path / "other") == ("ready", linked)
    shutil.rmtree(linked / "MovieLens" / "embeddings")
    assert dataset_state(DATASETS["MovieLens"]) == ("no embeddings", linked)


def test_the_cache_is_where_people_and_platforms_say(monkeypatch, tmp_path):
    monkeypatch.delenv("GRAPHGAUGE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "graphgauge"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "graphgauge"
    monkeypatch.setenv("GRAPHGAUGE_CACHE", "~/elsewhere")
    assert cache_folder() == Path.home() / "elsewhere"


@pytest.mark.parametrize(("name", "loader"), [("Cora", pyg.Planetoid), ("GitHub", pyg.GitHub)])
def test_files_come_from_pygs_download_step_into_the_cache(
    data_folder, own_cache, monkeypatch, name, loader
):
    calls = []

    def arrive(self):
        calls.append(self.raw_dir)
        for file in DATASETS[name].files:
            shutil.copy(data_folder / file.path, self.raw_dir)

    monkeypatch.setattr(loader, "download", arrive)
    assert load(name, "node").num_nodes == DATASETS[name].nodes
    assert len(calls) == 1
    assert dataset_state(DATASETS[name]) == ("ready", own_cache / "data")


def test_the_archive_of_movielens_is_unpacked_into_the_cache(
    linked, monkeypatch, own_cache, data_folder
):
    def arrive(self):
        shutil.copytree(
            data_folder / "MovieLens/raw/ml-latest-small", f"{self.raw_dir}/ml-latest-small"
        )

    monkeypatch.setattr(pyg.MovieLens, "download", arrive)
    shutil.rmtree(linked / "MovieLens" / "raw")
    assert load("MovieLens", "node", linked).num_nodes == 1180
    assert dataset_state(DATASETS["MovieLens"], linked) == ("ready", own_cache / "data")


def test_a_damaged_download_is_refused(own_cache, monkeypatch):
    monkeypatch.setattr(
        pyg.GitHub,
        "download",
        lambda self: Path(self.raw_dir, "github.npz").write_bytes(b"<html>gone</html>"),
    )
    with pytest.raises(BadFile, match=r"cache/data/GitHub/raw/github\.npz has the sha256"):
        load("GitHub", "node")


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


@pytest.fixture(scope="module")
def arrays(data_folder):
    with np.load(data_folder / "GitHub/raw/github.npz") as file:
        return dict(file)


def accept(path, content, monkeypatch):
    """Put another file in its place, and name its checksum as the message says."""
    replace(path, content)
    with pytest.raises(
        BadFile, match="If you trust this other file, set GRAPHGAUGE_GITHUB_SHA256="
    ) as caught:
        load("GitHub", "node", path.parents[2])
    found = str(caught.value).rpartition("=")[2].rstrip(".")
    monkeypatch.setenv("GRAPHGAUGE_GITHUB_SHA256", found)
    return found


def test_another_github_file_is_accepted_by_its_checksum_and_noted(linked, arrays, monkeypatch):
    own = arrays["features"].astype(np.float32) + 1
    found = accept(
        linked / "GitHub/raw/github.npz", npz(**{**arrays, "features": own}), monkeypatch
    )
    data = load("GitHub", "node", linked)
    (note,) = data.notes
    assert note.startswith(
        f"The origin of the features is not verified: the file with sha256 {found} was accepted"
    )
    assert np.array_equal(data.x.numpy(), own)
    assert data.num_edges == 462406


def with_two_loops(edges):
    """The first pair, in both directions, gives way to two loops."""
    ends = np.sort(edges, axis=1)
    return np.r_[edges[(ends != ends[0]).any(1)], [[0, 0], [1, 1]]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: {**a, "features": a["features"][:, :64]}, "shapes"),
        (
            lambda a: {**a, "target": 1 - a["target"]},
            r"the classes do not have \[27961, 9739\] members",
        ),
        (lambda a: {**a, "edges": a["edges"] + 1}, "has a node that does not exist"),
        (lambda a: {**a, "edges": np.r_[a["edges"][1:], [[0, 0]]]}, "one direction only"),
        (lambda a: {**a, "edges": with_two_loops(a["edges"])}, "a node has an edge to itself"),
        (
            lambda a: {**a, "features": a["features"] * np.float16(np.nan)},
            "features are not finite",
        ),
    ],
)
def test_another_github_file_must_hold_the_graph(arrays, change, message):
    with pytest.raises(BadFile, match=message):
        _check_counts(change(arrays))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (npz(features=np.ones(1), target=np.ones(1)), "edges is not a file in the archive"),
        (
            npz(features=np.ones(1), edges=np.ones(1), target=np.ones(1, dtype=object)),
            "allow_pickle=False",
        ),
        (npz(features=np.ones(1), edges=np.ones(1), target=np.ones(1)), "shapes"),
        (b"<html>gone</html>", "must contain the plain arrays"),
    ],
)
def test_an_accepted_file_is_still_checked_and_read_without_pickle(
    linked, monkeypatch, content, message
):
    accept(linked / "GitHub/raw/github.npz", content, monkeypatch)
    with pytest.raises(BadFile, match=message):
        load("GitHub", "node", linked)


def test_a_pickle_that_asks_for_foreign_code_is_refused():
    with pytest.raises(BadFile, match="getcwd"):
        _unpickle_safely(pickle.dumps(os.getcwd))
