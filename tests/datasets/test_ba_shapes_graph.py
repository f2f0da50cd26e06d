import warnings

import pytest
import torch

from graphgauge.datasets import accuracy, ba_shapes, trained_gcn
from graphgauge.datasets.ba_shapes_graph import (
    _BA_SHAPES_CLASSES,
    _EDGE_CLASSES,
    edge_class_names,
    edge_classes,
)
from graphgauge.datasets.splits import stratified_split


def edge_set(edge_index):
    return sorted(map(tuple, edge_index.t().tolist()))


@pytest.mark.parametrize("seed", [1, 3, 16, 20])
def test_the_papers_counts(seed):
    data = ba_shapes(seed)
    assert (data.num_nodes, data.num_edges, data.num_node_features, len(data.y.unique())) == (
        700,
        3942,
        700,
        4,
    )
    assert data.y.bincount().tolist() == [300, 160, 160, 80]
    assert data.x.equal(torch.eye(700))
    assert data.is_undirected()
    assert not data.has_self_loops()


def test_it_is_the_graph_that_pyg_makes_from_the_same_seed():
    import torch_geometric
    from torch_geometric.datasets import BAShapes

    from graphgauge.core.rng_state import preserve_rng_state

    with preserve_rng_state(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch_geometric.seed_everything(1)
        reference = BAShapes()[0]
    data = ba_shapes(1)
    assert edge_set(data.edge_index) == edge_set(reference.edge_index)
    assert data.y.equal(reference.y)


def test_it_moves_no_global_random_state():
    before = torch.get_rng_state()
    ba_shapes(5)
    assert torch.get_rng_state().equal(before)


def test_the_split_is_80_10_10_in_each_class():
    data = ba_shapes()
    masks = [data.train_mask, data.val_mask, data.test_mask]
    assert torch.stack(masks).sum(0).eq(1).all()
    assert [data.y[mask].bincount().tolist() for mask in masks] == [
        [240, 128, 128, 64],
        [30, 16, 16, 8],
        [30, 16, 16, 8],
    ]
    assert not stratified_split(data.y, 2)[0].equal(data.train_mask)


def test_training_is_repeatable_and_learns():
    data = ba_shapes()
    one, other = (trained_gcn(data, epochs=25, seed=4) for _ in range(2))
    assert all(
        a.equal(b)
        for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    )
    assert not one.training
    assert accuracy(one, data, data.test_mask) > data.y.bincount().max() / 700 + 0.1


def test_the_class_of_an_edge_is_that_of_its_two_ends_in_any_order():
    data = ba_shapes()
    literal = [
        _EDGE_CLASSES.index(tuple(sorted((int(data.y[u]), int(data.y[v])))))
        for u, v in data.edge_index.t().tolist()
    ]
    assert edge_classes(data.y, data.edge_index).tolist() == literal
    assert torch.tensor(literal).bincount().tolist() == [3942 - 1120, 160, 160, 320, 320, 160]
    assert (
        edge_class_names()[4] == f"{_BA_SHAPES_CLASSES[1]}-{_BA_SHAPES_CLASSES[3]}" == "middle-top"
    )
