"""MovieLens: 1,180 movies with 404 features, connected if at least 20 users rated both; the label
is the average rating.

From 100,836 ratings of 9,742 movies by 610 users (ml-latest-small). With W_i the users who rated
movie i, whatever the rating,

    i and j are connected   if i ≠ j and |W_i ∩ W_j| ≥ 20
    shared fraction         |W_i ∩ W_j| / |W_i ∪ W_j|
    node label              mean of the ratings of i, in stars (0.5 to 5)

There are 113,136 connected pairs; movies without an edge are left out. The shared fraction is the
edge weight of the node task and the label of the link task.

Features: 384 numbers of the title's embedding (all-MiniLM-L6-v2), then 20 genres. The genre columns
are those of all 9,742 movies: "(no genres listed)" never occurs among the 1,180, but the paper's
count of 404 includes it.
"""

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from graphgauge.core import BadFile, MissingExtra

_MIN_SHARED_USERS = 20  #: at least so many users rated both movies
_EMBEDDING_MODEL = "all-MiniLM-L6-v2"


def read_movielens(contents: Mapping[str, bytes]) -> Data:
    """The graph with its features, average ratings ``y`` and shared fractions ``edge_weight``."""
    movies, ratings = _read_tables(contents)
    joined, shared = _connected_movies(movies, ratings)
    genres = movies["genres"].str.get_dummies("|")
    edge_index = _connected_pairs(shared)
    title = _title_embeddings(contents, joined)
    return Data(
        x=torch.cat([title, _float_tensor(genres.loc[joined.index])], dim=1),
        edge_index=edge_index,
        y=_float_tensor(ratings.groupby("movieId")["rating"].mean().loc[joined.index]),
        edge_weight=_shared_fractions(shared, edge_index),
        node_names=joined["title"].tolist(),
        feature_names=[*(f"title {number}" for number in range(title.shape[1])), *genres.columns],
        notes=_embedding_notes(contents),
    )


def _read_tables(contents: Mapping[str, bytes]) -> tuple[Any, Any]:
    """The movies, indexed by their ids, and the ratings, as data frames."""
    import pandas as pd

    return pd.read_csv(io.BytesIO(contents["movies.csv"]), index_col="movieId"), pd.read_csv(
        io.BytesIO(contents["ratings.csv"])
    )


def _connected_movies(movies: Any, ratings: Any) -> tuple[Any, Tensor]:
    """The movies with an edge, in the order of the file, and how many users rated both movies of
    each pair.  n rows, (n, n)
    """
    # a movie with fewer has no edge
    often = ratings.groupby("movieId")["userId"].nunique() >= _MIN_SHARED_USERS
    candidates = movies[movies.index.isin(often.index[often])]
    shared = _shared_watchers(candidates.index, ratings)
    has_edge = _shares_enough(shared).any(1)
    return candidates[has_edge.numpy()], shared[has_edge][:, has_edge]


def _shared_watchers(ids: Any, ratings: Any) -> Tensor:
    """|W_i ∩ W_j| for the movies ``ids``; the diagonal holds |W_i|.  (n, n) float64"""
    known = ratings[ratings["movieId"].isin(ids)]
    watched = torch.zeros(len(ids), int(ratings["userId"].max()) + 1, dtype=torch.float64)
    watched[
        torch.tensor(ids.get_indexer(known["movieId"])), torch.tensor(known["userId"].to_numpy())
    ] = 1.0
    return watched @ watched.t()


def _shares_enough(shared: Tensor) -> Tensor:
    """Which pairs of movies are connected.  (n, n) -> (n, n) bool"""
    return (shared >= _MIN_SHARED_USERS).fill_diagonal_(False)


def _connected_pairs(shared: Tensor) -> Tensor:
    """Every edge in both directions, sorted.  (n, n) -> (2, E)"""
    return _shares_enough(shared).nonzero().t().contiguous()


def _shared_fractions(shared: Tensor, edge_index: Tensor) -> Tensor:
    """|W_i ∩ W_j| / |W_i ∪ W_j| of every edge.  (n, n), (2, E) -> (E,)"""
    (head, tail), size = edge_index, shared.diagonal()
    both = shared[head, tail]
    return (both / (size[head] + size[tail] - both)).float()


def _float_tensor(values: Any) -> Tensor:
    """A data frame or column of numbers as float32."""
    return torch.tensor(values.to_numpy(), dtype=torch.float32)


def _embedding_file(contents: Mapping[str, bytes]) -> str | None:
    """The name of the file with computed embeddings, or None."""
    return next((name for name in contents if name.endswith(".npz")), None)


def _title_embeddings(contents: Mapping[str, bytes], movies: Any) -> Tensor:
    """Embeddings of the titles of ``movies``: from the file, or else computed by the language
    model.  (n, 384)
    """
    name = _embedding_file(contents)
    return (
        _compute_embeddings(movies["title"].tolist())
        if name is None
        else _read_embeddings(contents[name], movies.index)
    )


def _read_embeddings(content: bytes, ids: Any) -> Tensor:
    """Read the embeddings of the movies ``ids`` from a file.  (n, 384)"""
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        row = {int(movie): number for number, movie in enumerate(file["movieId"])}
        stored = torch.from_numpy(file["embedding"]).float()
    if missing := [movie for movie in ids if movie not in row]:
        raise BadFile(
            f"the file of embeddings lacks the titles of {len(missing)} movies, the first is "
            f"{missing[0]}. Use the files that docs/datasets.md names."
        )
    return stored[[row[movie] for movie in ids]]


def _compute_embeddings(titles: list[str]) -> Tensor:
    """Compute the embeddings of the titles with the language model.  (n, 384)"""
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise MissingExtra(
            "MovieLens needs embeddings of its titles. No precomputed file was found "
            "(MovieLens/embeddings/title_minilm_*.npz, see docs/datasets.md), and "
            "sentence-transformers is not installed: pip install 'graphgauge[embeddings]'."
        ) from error
    return (
        SentenceTransformer(_EMBEDDING_MODEL).encode(titles, convert_to_tensor=True).cpu().float()
    )


def _embedding_notes(contents: Mapping[str, bytes]) -> list[str]:
    """What people should know of the titles' embeddings: nothing for those stored as float32."""
    name = _embedding_file(contents)
    if name is None:
        return [
            f"The title embeddings were computed by {_EMBEDDING_MODEL} on this machine; their "
            "last digits may differ from the stored ones."
        ]
    return (
        [
            "The title embeddings were stored as float16: they differ by up to 1.1e-4 from the "
            "float32 ones."
        ]
        if "float16" in name
        else []
    )
