"""The ten tasks: the paper's counts, labels, splits, and the same data every time."""

import pytest
import torch
import torch_geometric.data

from graphgauge.core.errors import UnknownName
from graphgauge.datasets import DATASETS, ba_shapes, load
from graphgauge.datasets.loading import _GENERATORS, _PARSERS, _TASK_BUILDERS

PAPER = {
    "Cora": (2708, 8448, 1433, 7, 2),
    "GitHub": (37700, 462406, 128, 2, 2),
    "BA-Shapes": (700, 3942, 700, 4, 6),
    "MovieLens": (1180, 226272, 404, None, None),
    "Synthetic": (10000, 150324, 16, None, None),
}
LABELLED = {  # labelled nodes or pairs in the three parts
    ("Cora", "node"): (140, 500, 1000),
    ("Cora", "link"): (8448, 1054, 1054),
    ("GitHub", "node"): (30159, 3770, 3771),
    ("GitHub", "link"): (462406, 57800, 57800),
    ("BA-Shapes", "node"): (560, 70, 70),
    ("BA-Shapes", "link"): (1576, 197, 198),
    ("MovieLens", "node"): (944, 118, 118),
    ("MovieLens", "link"): (90508, 11314, 11314),
    ("Synthetic", "node"): (8000, 1000, 1000),
    ("Synthetic", "link"): (60129, 7516, 7517),
}
every_task = pytest.mark.parametrize(("name", "level"), LABELLED)


def labels_of(data):
    return data.y if data.level == "node" else data.edge_label


def pair_set(pairs):
    """Unordered pairs, written as low * 100,000 + high."""
    return {min(u, v) * 100_000 + max(u, v) for u, v in zip(*pairs.tolist(), strict=True)}


def test_every_described_set_has_a_source_and_two_tasks():
    assert {*_GENERATORS, *_PARSERS} == set(DATASETS) == set(PAPER)
    assert (
        set(_TASK_BUILDERS)
        == set(LABELLED)
        == {(name, level) for name in DATASETS for level in ("node", "link")}
    )
    assert {name for name in DATASETS if DATASETS[name].is_generated} == set(_GENERATORS)


@every_task
def test_counts_are_those_of_the_papers_table(loaded, name, level):
    data, described = loaded(name, level), DATASETS[name]
    nodes, edges, features, *classes = PAPER[name]
    assert (data.num_nodes, data.edge_index.shape[1], data.x.shape[1]) == (nodes, edges, features)
    assert (
        described.nodes,
        described.edges,
        described.features,
        described.classes,
        described.edge_classes,
    ) == PAPER[name]
    number = classes[level == "link"]
    assert data.task == ("regression" if number is None else "classification")
    if number is not None:
        assert labels_of(data).unique().tolist() == list(range(number))
        assert len(data.class_names) == number


@every_task
def test_parts_have_the_known_sizes_and_do_not_overlap(loaded, name, level):
    data = loaded(name, level)
    masks = torch.stack([data.train_mask, data.val_mask, data.test_mask])
    assert masks.shape == (3, len(labels_of(data)))
    assert tuple(masks.sum(1).tolist()) == LABELLED[name, level]
    assert masks.sum(0).max() == 1
    assert masks.any(0).all() == ((name, level) != ("Cora", "node"))


@every_task
def test_the_graph_is_simple_and_its_types_are_the_documented_ones(loaded, name, level):
    data = loaded(name, level)
    assert data.is_undirected()
    assert not data.has_self_loops()
    assert (data.x.dtype, data.edge_index.dtype) == (torch.float32, torch.int64)
    assert data.x.isfinite().all()
    assert labels_of(data).dtype == (torch.float32 if data.task == "regression" else torch.int64)
    assert (data.name, data.level) == (name, level)
    assert isinstance(data.notes, list)
    assert data.validate(raise_on_error=True)


@pytest.mark.parametrize("name", DATASETS)
def test_the_same_data_comes_twice_bit_for_bit(loaded, name, monkeypatch, tmp_path):
    state = torch.get_rng_state()
    for level in ("node", "link"):
        first = loaded(
            name,
            level,
            # from the suite's cache; below, the node task parses and the link task reads the cache
        )
        with monkeypatch.context() as patch:
            patch.setenv("GRAPHGAUGE_CACHE", str(tmp_path))
            again = load(name.upper(), level)
        assert set(again.keys()) == set(first.keys())
        for key, value in first.to_dict().items():
            assert (
                again[key].equal(value) if isinstance(value, torch.Tensor) else again[key] == value
            )
    assert torch.get_rng_state().equal(state)


@pytest.mark.parametrize("name", ["Cora", "GitHub"])
def test_held_out_links_carry_no_messages_and_non_edges_are_no_links(loaded, name):
    data, node = loaded(name, "link"), loaded(name, "node")
    assert node.edge_index.equal(data.edge_index)
    pairs, is_link = data.edge_label_index, data.edge_label == 1
    messages, linked, free = (
        pair_set(data.edge_index),
        pair_set(pairs[:, is_link]),
        pair_set(pairs[:, ~is_link]),
    )
    assert pair_set(pairs[:, is_link & data.train_mask]) == messages
    assert not pair_set(pairs[:, ~data.train_mask]) & messages
    assert not free & linked
    assert len(linked) + len(free) == pairs.shape[1]  # every pair once
    assert (pairs[0] < pairs[1]).all()
    for mask in (data.train_mask, data.val_mask, data.test_mask):
        assert data.edge_label[mask].float().mean() == 0.5


@pytest.mark.parametrize(("name", "number"), [("Cora", 5278), ("GitHub", 289003)])
def test_all_links_of_the_whole_graph_are_labelled(loaded, name, number):
    assert loaded(name, "link").edge_label.sum() == number


def test_message_edges_are_those_of_pygs_split_with_its_own_negatives(loaded, data_folder):
    from torch_geometric.transforms import RandomLinkSplit

    from graphgauge.core.rng_state import temporary_global_seed
    from graphgauge.datasets.loading import _load_whole_graph

    whole = _load_whole_graph(DATASETS["Cora"], data_folder)
    assert (whole.num_edges, int(whole.x.sum()), whole.y.bincount().tolist()) == (
        10556,
        49216,
        [351, 217, 418, 818, 426, 298, 180],
    )
    with temporary_global_seed(0):
        train, _, test = RandomLinkSplit(0.1, 0.1, is_undirected=True)(
            torch_geometric.data.Data(whole.x, whole.edge_index)
        )
    data = loaded("Cora", "link")
    assert data.edge_index.equal(train.edge_index)
    ours = data.edge_label_index[:, data.test_mask & (data.edge_label == 1)]
    assert ours.equal(test.edge_label_index[:, test.edge_label == 1])


@pytest.mark.parametrize("name", ["BA-Shapes", "MovieLens", "Synthetic"])
def test_labelled_pairs_are_all_edges_once(loaded, name):
    data = loaded(name, "link")
    pairs = data.edge_label_index
    assert pair_set(pairs) == pair_set(data.edge_index)
    assert 2 * pairs.shape[1] == data.edge_index.shape[1]
    assert "edge_weight" not in data
    assert "y" not in data


def test_ba_shapes_is_the_graph_of_seed_1_with_the_split_of_seed_0(loaded):
    data, made = loaded("BA-Shapes", "node"), ba_shapes(1)
    assert data.edge_index.equal(made.edge_index)
    assert data.y.equal(made.y)
    assert [
        data.y[data[f"{part}_mask"]].bincount().tolist() for part in ("train", "val", "test")
    ] == [
        [240, 128, 128, 64],
        [30, 16, 16, 8],
        [30, 16, 16, 8],
    ]


def test_edge_classes_of_ba_shapes_are_split_in_the_same_shares(loaded):
    data = loaded("BA-Shapes", "link")
    assert data.class_names == [
        "base-base",
        "base-middle",
        "middle-middle",
        "middle-bottom",
        "middle-top",
        "bottom-bottom",
    ]
    assert data.edge_label.bincount().tolist() == [1411, 80, 80, 160, 160, 80]
    assert data.edge_label[data.test_mask].bincount().tolist() == [142, 8, 8, 16, 16, 8]


def test_github_has_its_real_labels_and_says_that_its_features_stand_in(loaded):
    data = loaded("GitHub", "node")
    assert data.y.bincount().tolist() == [27961, 9739]
    assert data.class_names == ["web", "machine learning"]
    for level in ("node", "link"):
        assert [note.partition(":")[0] for note in loaded("GitHub", level).notes] == [
            "The features are a stand-in"
        ]


def test_the_public_split_of_cora_has_twenty_articles_of_each_subject(loaded):
    data = loaded("Cora", "node")
    assert data.y[data.train_mask].bincount().tolist() == [20] * 7
    assert data.class_names[int(data.y.bincount().argmax())] == "Neural Networks"


@pytest.mark.parametrize(
    ("name", "level", "message"),
    [
        (
            "Coral",
            "node",
            "No data set is called 'Coral'. Did you mean 'Cora'\\? Known: BA-Shapes, Cora, GitHub",
        ),
        ("Cora", "graph", "No level of a task is called 'graph'. Known: link, node"),
        (None, "node", "No data set is called None"),
    ],
)
def test_wrong_names_are_refused(name, level, message):
    with pytest.raises(UnknownName, match=message):
        load(name, level)
