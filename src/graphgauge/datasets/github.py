"""GitHub: 37,700 developers, 578,006 directed edges of mutual following, 128 features, web (0) or
machine learning (1).

Graph and labels are those of the SNAP archive git_web_ml. The 128 features of the known file are a
*stand-in*: the file that PyG used to download cannot be had any more, and how its columns were made
was never said. They are a truncated SVD of the 4,005 raw attributes of each developer. Another
``github.npz`` is accepted if its checksum is named in `GRAPHGAUGE_GITHUB_SHA256`; it is read
without pickle, and its shapes and counts must be right.
"""

import io
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from graphgauge.core.errors import BadFile
from graphgauge.datasets.descriptions import GITHUB
from graphgauge.datasets.files import sha256

CLASS_NAMES = ("web", "machine learning")
CLASS_SIZES = [27_961, 9_739]
NUM_WHOLE = 578_006  #: directed edges before the link split
STAND_IN = (
    "The features are a stand-in: a truncated SVD of the developers' own attributes, not the columns of PyG's github.npz, which "
    "cannot be had any more. Numbers that depend on feature values cannot be compared with the paper's one by one."
)
UNVERIFIED = "The origin of the features is not verified: the file with sha256 {found} was accepted by GRAPHGAUGE_GITHUB_SHA256."


def read_github(contents: Mapping[str, bytes]) -> Data:
    """The whole graph; ``notes`` say what its features are."""
    ((_, content),) = contents.items()
    array = arrays(content)
    refuse_wrong_counts(array)
    found = sha256(content)
    return Data(
        x=torch.from_numpy(array["features"]).float(),
        edge_index=torch.from_numpy(array["edges"]).long().t().contiguous(),
        y=torch.from_numpy(array["target"]).long(),
        class_names=list(CLASS_NAMES),
        notes=[STAND_IN if found == GITHUB.files[0].sha256 else UNVERIFIED.format(found=found)],
    )


def arrays(content: bytes) -> dict[str, Any]:
    """The three arrays of the file, read without pickle."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            return {key: file[key] for key in ("features", "edges", "target")}
    except (KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
        raise BadFile(
            f"github.npz must hold the plain arrays features, edges and target, but: {error}. Use another file."
        ) from error


def refuse_wrong_counts(array: Mapping[str, Any]) -> None:
    """Shapes, the numbers of edges and of developers of each kind, both directions, no loops, no
    gaps in the features.
    """
    found = {key: array[key].shape for key in ("features", "edges", "target")}
    wanted = {
        "features": (GITHUB.nodes, GITHUB.features),
        "edges": (NUM_WHOLE, 2),
        "target": (GITHUB.nodes,),
    }
    if found != wanted:
        raise BadFile(
            f"github.npz must hold arrays of the shapes {wanted}, but they are {found}. Use another file."
        )
    for wrong in faults(array):
        raise BadFile(f"github.npz is not the graph of the developers: {wrong}. Use another file.")


def faults(array: Mapping[str, Any]) -> list[str]:
    """What cannot be true of this graph."""
    one, other = array["edges"].astype(np.int64).T
    code, back = np.sort(one * GITHUB.nodes + other), np.sort(other * GITHUB.nodes + one)
    checks = {
        "an edge names a node that is not there": array["edges"].min() >= 0
        and array["edges"].max() < GITHUB.nodes,
        "an edge is there in one direction only, or twice": (np.diff(code) > 0).all()
        and (code == back).all(),
        "a node has an edge to itself": (one != other).all(),
        f"the classes do not have {CLASS_SIZES} members": np.unique(
            array["target"], return_counts=True
        )[1].tolist()
        == CLASS_SIZES,
        "features are not finite": np.isfinite(array["features"]).all(),
    }
    return [fault for fault, is_fine in checks.items() if not is_fine]
