"""MovieLens against plain Python: sets of users, one pair at a time."""

import csv
import sys
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from graphgauge.core.errors import BadFile, MissingExtra
from graphgauge.datasets.movielens import _read_embeddings, read_movielens


@pytest.fixture(scope="module")
def literal(data_folder):
    """Titles and genres, the set of watchers and the list of ratings of each movie."""
    raw = data_folder / "MovieLens" / "raw" / "ml-latest-small"
    watchers, ratings = defaultdict(set), defaultdict(list)
    with (raw / "movies.csv").open(encoding="utf-8", newline="") as file:
        movies = {int(row["movieId"]): row for row in csv.DictReader(file)}
    with (raw / "ratings.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            watchers[int(row["movieId"])].add(row["userId"])
            ratings[int(row["movieId"])].append(float(row["rating"]))
    return SimpleNamespace(movies=movies, watchers=watchers, ratings=ratings)


@pytest.fixture(scope="module")
def ids(literal, loaded):
    """Movie ids of the nodes, in the order of the file; these titles occur once."""
    node_names = loaded("MovieLens", "node").node_names
    by_title = {row["title"]: movie for movie, row in reversed(literal.movies.items())}
    return [by_title[title] for title in node_names]


def test_neighbours_share_at_least_twenty_watchers(literal, loaded, ids):
    data = loaded("MovieLens", "node")
    for node in (0, 17, 400, 1179):
        watched = literal.watchers[ids[node]]
        joined = [
            other
            for other, users in literal.watchers.items()
            if other != ids[node] and len(users & watched) >= 20
        ]
        neighbours = data.edge_index[1, data.edge_index[0] == node].tolist()
        assert sorted(joined) == sorted(ids[other] for other in neighbours) != []


def test_the_fraction_is_intersection_over_union(literal, loaded, ids):
    node, link = loaded("MovieLens", "node"), loaded("MovieLens", "link")
    for data, pairs, value in (
        (node, node.edge_index, node.edge_weight),
        (link, link.edge_label_index, link.edge_label),
    ):
        assert data.x.shape[0] == len(ids)
        for row in range(0, pairs.shape[1], pairs.shape[1] // 50):
            one, other = (literal.watchers[ids[end]] for end in pairs[:, row].tolist())
            assert value[row].item() == pytest.approx(len(one & other) / len(one | other), rel=1e-7)
    assert node.edge_attr.equal(node.edge_weight[:, None])


def test_labels_are_average_ratings_in_stars(literal, loaded, ids):
    data = loaded("MovieLens", "node")
    means = [sum(literal.ratings[movie]) / len(literal.ratings[movie]) for movie in ids]
    assert data.y.tolist() == pytest.approx(means, rel=1e-6)
    assert data.unit == "stars"


def test_features_are_named_and_genres_are_the_movies_own(literal, loaded, ids):
    data = loaded("MovieLens", "node")
    assert data.feature_names[:384] == [f"title {number}" for number in range(384)]
    assert data.feature_names[384:386] == ["(no genres listed)", "Action"]
    for node in range(0, 1180, 60):
        genres = [
            data.feature_names[384 + place] for place in data.x[node, 384:].nonzero()[:, 0].tolist()
        ]
        assert genres == sorted(literal.movies[ids[node]]["genres"].split("|"))
    assert data.x[:, :384].norm(dim=1).tolist() == pytest.approx([1.0] * 1180, abs=1e-5)
    assert data.node_names[0] == "Toy Story (1995)"
    assert loaded("MovieLens", "link").feature_names == data.feature_names


def contents_of(data_folder, *embeddings):
    names = [
        "raw/ml-latest-small/movies.csv",
        "raw/ml-latest-small/ratings.csv",
        *(f"embeddings/{name}" for name in embeddings),
    ]
    return {Path(name).name: (data_folder / "MovieLens" / name).read_bytes() for name in names}


def test_the_half_precision_file_of_all_titles_serves_as_well_and_is_noted(data_folder, loaded):
    data, half = (
        loaded("MovieLens", "node"),
        read_movielens(contents_of(data_folder, "title_minilm_all9742_float16.npz")),
    )
    assert 0 < (half.x - data.x).abs().max() < 1.2e-4
    assert "float16" in half.notes[0]
    assert half.edge_index.equal(data.edge_index)


def test_titles_go_to_the_language_model_where_no_file_is_there(data_folder, loaded, monkeypatch):
    class Model:
        def __init__(self, name):
            assert name == "all-MiniLM-L6-v2"

        def encode(self, titles, convert_to_tensor):
            return torch.tensor([[float(len(title))] * 384 for title in titles])

    monkeypatch.setitem(
        sys.modules, "sentence_transformers", SimpleNamespace(SentenceTransformer=Model)
    )
    data = read_movielens(contents_of(data_folder))
    assert data.x[:, 5].tolist() == [len(title) for title in data.node_names]
    assert "computed by all-MiniLM-L6-v2" in data.notes[0]
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtra, match=r"pip install 'graphgauge\[embeddings\]'"):
        read_movielens(contents_of(data_folder))


def test_embeddings_that_lack_a_movie_are_refused(data_folder):
    content = (
        data_folder / "MovieLens" / "embeddings" / "title_minilm_1180_float32.npz"
    ).read_bytes()
    with pytest.raises(BadFile, match="lacks the titles of 1 movies, the first is 4"):
        _read_embeddings(content, [1, 4])
