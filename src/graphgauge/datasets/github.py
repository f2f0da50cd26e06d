"""GitHub: 37,700 developers, 578,006 directed edges of mutual following, 128 features, two classes
(0 web, 1 machine learning).

Graph and labels are those of the SNAP archive git_web_ml. The 128 features of the known file are a
*stand-in*: the file that PyG used to download is no longer available, and nobody published how its
columns were made. They are a truncated SVD of the 4,005 raw attributes of each developer. Another
``github.npz`` is accepted if `GRAPHGAUGE_GITHUB_SHA256` names its checksum; it is read without
pickle, and its shapes and counts must be right.
"""

import io
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from graphgauge.core import BadFile, sha256_hex
from graphgauge.datasets.catalogue import GITHUB

_GITHUB_CLASSES = ("web", "machine learning")
_CLASS_SIZES = [27_961, 9_739]
_NUM_ALL_EDGES = 578_006  #: directed edges before the link split
_STAND_IN_NOTE = (
    "The features are a stand-in: a truncated SVD of the developers' own attributes, not the "
    "columns of PyG's github.npz, which cannot be had any more. Numbers that depend on feature "
    "values cannot be compared with the paper's one by one."
)
_UNVERIFIED_NOTE = (
    "The origin of the features is not verified: the file with sha256 {checksum} was accepted by "
    "GRAPHGAUGE_GITHUB_SHA256."
)


def read_github(contents: Mapping[str, bytes]) -> Data:
    """The whole graph; its ``notes`` say where the features come from."""
    ((_, content),) = contents.items()
    array = _read_arrays(content)
    _check_counts(array)
    checksum = sha256_hex(content)
    return Data(
        x=torch.from_numpy(array["features"]).float(),
        edge_index=torch.from_numpy(array["edges"]).long().t().contiguous(),
        y=torch.from_numpy(array["target"]).long(),
        class_names=list(_GITHUB_CLASSES),
        notes=[
            _STAND_IN_NOTE
            if checksum == GITHUB.files[0].sha256
            else _UNVERIFIED_NOTE.format(checksum=checksum)
        ],
    )


def _read_arrays(content: bytes) -> dict[str, Any]:
    """The three arrays of the file, read without pickle."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            return {key: file[key] for key in ("features", "edges", "target")}
    except (KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
        raise BadFile(
            "github.npz must contain the plain arrays features, edges and target, but it cannot be "
            f"read so: {error}. Use another file."
        ) from error


def _check_counts(array: Mapping[str, Any]) -> None:
    """Raise `BadFile` unless shapes, counts of edges and classes, directions and features are those
    of the known graph.
    """
    shapes = {key: array[key].shape for key in ("features", "edges", "target")}
    known_shapes = {
        "features": (GITHUB.nodes, GITHUB.features),
        "edges": (_NUM_ALL_EDGES, 2),
        "target": (GITHUB.nodes,),
    }
    if shapes != known_shapes:
        raise BadFile(
            f"github.npz must contain arrays of the shapes {known_shapes}, but they are {shapes}. "
            "Use another file."
        )
    for fault in _find_faults(array):
        raise BadFile(f"github.npz is not the graph of the developers: {fault}. Use another file.")


def _find_faults(array: Mapping[str, Any]) -> list[str]:
    """What is wrong with the arrays, compared with the known graph."""
    head, tail = array["edges"].astype(np.int64).T
    code, back = np.sort(head * GITHUB.nodes + tail), np.sort(tail * GITHUB.nodes + head)
    checks = {
        "an edge has a node that does not exist": array["edges"].min() >= 0
        and array["edges"].max() < GITHUB.nodes,
        "an edge has one direction only, or occurs twice": (np.diff(code) > 0).all()
        and (code == back).all(),
        "a node has an edge to itself": (head != tail).all(),
        f"the classes do not have {_CLASS_SIZES} members": np.unique(
            array["target"], return_counts=True
        )[1].tolist()
        == _CLASS_SIZES,
        "features are not finite": np.isfinite(array["features"]).all(),
    }
    return [fault for fault, is_fine in checks.items() if not is_fine]
