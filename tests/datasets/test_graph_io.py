"""Graphs of one's own: what is written is what is read, and a wrong file says what is wrong with
it.
"""

import pytest
import torch
from safetensors.torch import save_file
from torch_geometric.data import Data, HeteroData

from graphgauge.core.errors import BadFile, BadGraph
from graphgauge.datasets import load_graph, save_graph


def graph(nodes=3):
    return Data(
        x=torch.randn(nodes, 2, dtype=torch.float64),
        edge_index=torch.tensor([[0, 1], [1, 2]]),
        edge_attr=torch.rand(2, 4),
        y=torch.arange(nodes),
        train_mask=torch.tensor([True, False, True])[:nodes],
        class_names=["no", 'ye"s\n', "früh"],
        unit="12",
        scale=0.1,
        options={"a": [1, None]},
    )


def assert_same(found, expected):
    assert sorted(found.keys()) == sorted(expected.keys())
    for name in expected.keys():  # noqa: SIM118 (Data is no mapping)
        if isinstance(expected[name], torch.Tensor):
            assert found[name].dtype == expected[name].dtype
            assert torch.equal(found[name], expected[name])
        else:
            assert found[name] == expected[name]


def test_a_graph_comes_back_as_it_was(tmp_path):
    data = graph()
    save_graph(data, tmp_path / "g.safetensors")
    assert_same(load_graph(tmp_path / "g.safetensors"), data)


def test_a_list_of_graphs_comes_back_in_its_order(tmp_path):
    graphs = [graph() for _ in range(12)]
    save_graph(graphs, tmp_path / "g.safetensors")
    found = load_graph(tmp_path / "g.safetensors")
    assert len(found) == 12
    for own, expected in zip(found, graphs, strict=True):
        assert_same(own, expected)


def test_views_of_one_tensor_and_transposed_tensors_are_written_whole(tmp_path):
    x, edges = torch.randn(4, 3), torch.tensor([[0, 1], [1, 2], [2, 3]])
    data = Data(x=x, edge_index=edges.T, y=x[:, 0])
    save_graph(data, tmp_path / "g.safetensors")
    assert_same(load_graph(tmp_path / "g.safetensors"), data)


def test_files_of_other_programs_are_read(tmp_path):
    tensors = {"x": torch.eye(2), "edge_index": torch.tensor([[0], [1]])}
    save_file(
        tensors,
        tmp_path / "g.safetensors",
        metadata={"format": "pt", "unit": "stars", "class_names": '["a", "b"]'},
    )
    found = load_graph(tmp_path / "g.safetensors")
    assert (found.unit, found.class_names, "format" in found) == ("stars", ["a", "b"], False)


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"x": torch.eye(2)}, "has no tensor edge_index: a graph needs"),
        ({"y": torch.eye(2)}, "has no tensor x and no edge_index"),
        (
            {"0/x": torch.eye(2), "x": torch.eye(2)},
            r"mixes a list of graphs \(0/x, 1/x \.\.\.\) with 'x'",
        ),
        ({"a/x": torch.eye(2)}, "with 'a/x', which belongs to no graph"),
        (
            {"1/x": torch.eye(2), "1/edge_index": torch.zeros(2, 1)},
            "has no tensor 0/x and no 0/edge_index",
        ),
    ],
)
def test_incomplete_files_are_refused(tmp_path, tensors, message):
    save_file(tensors, tmp_path / "g.safetensors")
    with pytest.raises(BadFile, match=message):
        load_graph(tmp_path / "g.safetensors")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("g.pt", b"", "may be a pickle.*save_graph"),
        ("none.safetensors", None, "cannot be read as a graph"),
        ("g.safetensors", b"not one", "cannot be read as a graph"),
    ],
)
def test_files_that_are_no_graphs_are_refused(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(BadFile, match=message):
        load_graph(tmp_path / name)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "empty list"),
        ([graph(), 3], r"data\[1\] must be a torch_geometric\.data\.Data, but is int"),
        (HeteroData(), "must be a torch_geometric.data.Data, but is"),
        (
            Data(x=torch.eye(2).to_sparse(), edge_index=torch.zeros(2, 1)),
            "x is Tensor, but a file of a graph holds dense",
        ),
        (Data(x=torch.eye(2), made_by=object()), "made_by is object, but .*del data.made_by"),
        (
            Data(x=torch.eye(2), format="a"),
            "'format', a name that files of graphs reserve",
        ),
    ],
)
def test_what_cannot_be_written_is_named(tmp_path, data, message):
    with pytest.raises(BadGraph, match=message):
        save_graph(data, tmp_path / "g.safetensors")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_to_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadFile, match="could not be written"):
        save_graph(graph(), tmp_path / "file" / "g.safetensors")
