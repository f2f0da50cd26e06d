"""Catalogue of the five data sets: counts of the paper, licences, sources, raw files and tasks.

The counts are those of the paper's table of data sets: nodes, directed message edges, features,
node classes, edge classes (None: a regression). `docs/datasets.md` says where the text of the paper
and its table differ.
"""

from dataclasses import dataclass

from graphgauge.core import lookup


@dataclass(frozen=True)
class RawFile:
    """A raw file: its path below the data folder, and the sha256 of its content.

    ``accepted_by`` names the environment variable in which people give the checksum of another file
    that they trust.
    """

    path: str
    sha256: str
    accepted_by: str = ""

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class DatasetDescription:
    """What is known of one data set.

    All ``files`` are needed; of ``one_of`` the first one that exists is used. A data set without
    files is generated.
    """

    name: str
    nodes: int
    edges: int
    features: int
    classes: int | None
    edge_classes: int | None
    node_task: str
    link_task: str
    licence: str
    source: str
    files: tuple[RawFile, ...] = ()
    one_of: tuple[RawFile, ...] = ()

    @property
    def is_generated(self) -> bool:
        """Whether the data set is generated, so that it needs no file."""
        return not self.files


_CORA_SHA256 = {
    "allx": "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
    "ally": "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
    "graph": "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
    "test.index": "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875",
    "tx": "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
    "ty": "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
    "x": "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab",
    "y": "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1",
}

_CORA = DatasetDescription(
    name="Cora",
    nodes=2_708,
    edges=8_448,
    features=1_433,
    classes=7,
    edge_classes=2,
    node_task="the subject of an article",
    link_task="does one of two articles cite the other?",
    licence="MIT",
    source="Planetoid (github.com/kimiyoung/planetoid, data/)",
    files=tuple(
        RawFile(f"Cora/raw/ind.cora.{part}", sha256) for part, sha256 in _CORA_SHA256.items()
    ),
)

GITHUB = DatasetDescription(
    name="GitHub",
    nodes=37_700,
    edges=462_406,
    features=128,
    classes=2,
    edge_classes=2,
    node_task="web or machine learning developer",
    link_task="do two developers follow each other?",
    licence="MIT (repository of the copy); cite arXiv 1909.13021",
    source="SNAP git_web_ml (MUSAE, arXiv 1909.13021); the features are a stand-in",
    files=(
        RawFile(
            "GitHub/raw/github.npz",
            "6e419017478fcc7bc73932fb63776e49542e31eeb5c386a68195c502f69877bd",
            accepted_by="GRAPHGAUGE_GITHUB_SHA256",
        ),
    ),
)

_BA_SHAPES = DatasetDescription(
    name="BA-Shapes",
    nodes=700,
    edges=3_942,
    features=700,
    classes=4,
    edge_classes=6,
    node_task="the place of a node: base graph, or middle, bottom, top of a house",
    link_task="the places that an edge connects",
    licence="generated",
    source="graphgauge.datasets.ba_shapes_graph, after GNNExplainer (2019)",
)

_MOVIELENS = DatasetDescription(
    name="MovieLens",
    nodes=1_180,
    edges=226_272,
    features=404,
    classes=None,
    edge_classes=None,
    node_task="the average rating of a movie, in stars",
    link_task="the shared fraction of the watchers of two movies",
    licence="GroupLens: research use, see README.txt of the archive",
    source="ml-latest-small, 26 September 2018 (files.grouplens.org); cite Harper and Konstan 2015",
    files=(
        RawFile(
            "MovieLens/raw/ml-latest-small/movies.csv",
            "5a5f32dd9bb3797b8e728a1b98958789d2b13f294a69fdfbc5727f8a9611aa07",
        ),
        RawFile(
            "MovieLens/raw/ml-latest-small/ratings.csv",
            "aa289ca83157595d0df6aea1be6a4ded676ddc4385472e8313a8ed9805352646",
        ),
    ),
    one_of=(
        RawFile(
            "MovieLens/embeddings/title_minilm_1180_float32.npz",
            "49bdcf7e2a37ae06ff12cb2ea0f8cef3c673f5dd005f88784b96b29e719a7638",
        ),
        RawFile(
            "MovieLens/embeddings/title_minilm_all9742_float16.npz",
            "4146b39422862a204a6b9971494852f0eaa1f99624ead3e5a8f977d429ccbc38",
        ),
    ),
)

_SYNTHETIC = DatasetDescription(
    name="Synthetic",
    nodes=10_000,
    edges=150_324,
    features=16,
    classes=None,
    edge_classes=None,
    node_task="a weighted sum of features up to two hops away",
    link_task="the sum of the two ends' node labels",
    licence="generated",
    source="graphgauge.datasets.synthetic_graph",
)

TASK_LEVELS = ("node", "link")  #: of a task

#: every data set by its name
DATASETS = {
    description.name: description
    for description in (_CORA, GITHUB, _BA_SHAPES, _MOVIELENS, _SYNTHETIC)
}


def find_dataset(name: str) -> DatasetDescription:
    """Return the data set with this name; upper and lower case do not matter.

    >>> find_dataset("ba-shapes").edges
    3942
    """
    spelled = {known.lower(): known for known in DATASETS}
    return lookup(DATASETS, spelled.get(str(name).lower(), name), "data set")


def check_level(name: str) -> str:
    """Return ``name`` if it is a level of a task; otherwise raise `UnknownName` with the known
    levels.
    """
    return lookup({level: level for level in TASK_LEVELS}, name, "level of a task")
