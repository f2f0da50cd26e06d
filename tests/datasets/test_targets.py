import pytest
import torch
from torch_geometric.data import Data

from graphgauge.core.errors import UnknownName
from graphgauge.datasets import benchmark_targets, targets_of
from graphgauge.datasets.link_tasks import _EXISTENCE_CLASSES


@pytest.fixture
def existence():
    """Six test pairs, three of them links, and two for training."""
    return Data(
        name="made",
        level="link",
        class_names=list(_EXISTENCE_CLASSES),
        edge_label_index=torch.tensor([[0, 0, 0, 1, 1, 2, 2, 3], [1, 2, 3, 2, 3, 3, 4, 4]]),
        edge_label=torch.tensor([1, 0, 1, 1, 1, 0, 0, 0]),
        train_mask=torch.arange(8) < 2,
        val_mask=torch.zeros(8, dtype=torch.bool),
        test_mask=torch.arange(8) >= 2,
    )


def test_targets_are_the_rows_of_a_part(existence):
    assert targets_of(existence, "train") == [(0, 1), (0, 2)]
    assert targets_of(existence) == [(0, 3), (1, 2), (1, 3), (2, 3), (2, 4), (3, 4)]
    assert targets_of(existence, "val") == []
    assert len(targets_of(existence, "all")) == 8
    with pytest.raises(UnknownName, match=r"No part is called 'tset'\. Did you mean 'test'"):
        targets_of(existence, "tset")


def test_links_and_non_edges_take_turns(existence):
    links, free = {(0, 3), (1, 2), (1, 3)}, {(2, 3), (2, 4), (3, 4)}
    drawn = benchmark_targets(existence, 100)
    assert (set(drawn[::2]), set(drawn[1::2])) == (links, free)
    assert benchmark_targets(existence, 4) == drawn[:4]
    existence.test_mask[6:] = False
    assert set(benchmark_targets(existence, 100)) == links | {(2, 3)}


def test_node_targets_are_ids_and_all_includes_nodes_of_no_part(loaded):
    data = loaded("BA-Shapes", "node")
    assert targets_of(data) == [node for node in range(700) if data.test_mask[node]]
    assert targets_of(data, "all") == list(range(700))
    assert sorted(benchmark_targets(data)) == targets_of(data)  # 70 are fewer than 100


@pytest.mark.parametrize(
    ("name", "level"),
    [("Synthetic", "node"), ("Synthetic", "link"), ("Cora", "node"), ("Cora", "link")],
)
def test_benchmark_targets_are_different_test_targets_and_seeded(loaded, name, level):
    data = loaded(name, level)
    drawn = benchmark_targets(data)
    assert len(set(drawn)) == 100
    assert set(drawn) <= set(targets_of(data))
    assert drawn == benchmark_targets(data, seed=0) != benchmark_targets(data, seed=1)


def test_half_of_the_existence_targets_are_links(loaded):
    data = loaded("Cora", "link")
    rows = {target: row for row, target in enumerate(targets_of(data, "all"))}
    assert (
        data.edge_label[[rows[target] for target in benchmark_targets(data)]].tolist()
        == [1, 0] * 50
    )


def test_every_target_is_equally_likely(existence):
    existence.class_names = ["a", "b"]  # no existence task
    first = [benchmark_targets(existence, 1, seed)[0] for seed in range(1200)]
    counts = torch.tensor([first.count(target) for target in targets_of(existence)])
    assert ((counts - 200).abs() < 4 * (1200 * 5 / 36) ** 0.5).all()
