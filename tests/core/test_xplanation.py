import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data
from torch_geometric.explain import Explanation

from graphgauge.core.errors import BadExplanation, BadFile, UnknownName
from graphgauge.core.xplanation import Xplanation


def example(**changes):
    fields = {
        "target": 4,
        "nodes": torch.tensor([4, 1, 2]),
        "edges": torch.tensor([7, 0]),
        "num_nodes": 6,
        "num_edges": 9,
        "feature_score": torch.tensor([[0.5, -1.0], [0.1, 0.2], [0.3, -0.4]]),
        "edge_score": torch.tensor([0.3, -0.2]),
        "prediction": torch.tensor([0.9, 0.1]),
        "explainer": "saliency",
        "params": {"steps": 5},
        "seed": 3,
        "seconds": 0.25,
        "metrics": {"edge_ec": 4},
    }
    return Xplanation(**{**fields, **changes})


def test_whole_graph_views_put_scores_at_their_ids():
    x = example()
    assert x.edge_vector().tolist() == pytest.approx([-0.2, 0, 0, 0, 0, 0, 0, 0.3, 0])
    matrix = x.feature_matrix()
    assert matrix.shape == (6, 2)
    assert matrix[[4, 1, 2]].equal(x.feature_score)
    assert matrix[[0, 3, 5]].eq(0).all()


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [("max", [0.3, 0.2]), ("sum", [0.4, -0.2]), ("mean", [0.2, -0.1]), ("abs_max", [0.3, 0.4])],
)
def test_the_target_view_pools_all_other_nodes(pooling, expected):
    view = example().target_view(pooling)
    assert view.target.tolist() == [[0.5, -1.0]]
    assert view.neighbours.tolist() == [pytest.approx(expected)]


def test_a_link_has_two_target_rows_in_its_own_order():
    view = example(target=(2, 4), level="link").target_view()
    assert view.target.equal(example().feature_score[[2, 0]])
    assert view.neighbours.equal(example().feature_score[[1]])


def test_a_graph_has_no_target_row_and_pools_everything():
    view = example(target=0, level="graph").target_view("sum")
    assert view.target.shape == (0, 2)
    assert view.neighbours.tolist() == [pytest.approx([0.9, -1.2])]


def test_a_target_that_stands_alone_has_no_neighbours():
    view = example(nodes=torch.tensor([4]), feature_score=torch.ones(1, 2)).target_view()
    assert view.neighbours.shape == (0, 2)


def test_an_unknown_pooling_is_refused():
    with pytest.raises(UnknownName, match="Did you mean 'max'"):
        example().target_view("maxx")


def assert_equal(first, second):
    for name in ("nodes", "edges", "feature_score", "edge_score", "prediction"):
        one, other = getattr(first, name), getattr(second, name)
        assert (one is None and other is None) or (one.equal(other) and one.dtype == other.dtype)
    for name in (
        "target",
        "num_nodes",
        "num_edges",
        "level",
        "explainer",
        "params",
        "seed",
        "seconds",
        "metrics",
    ):
        assert getattr(first, name) == getattr(second, name)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"target": (2, 4), "level": "link"},
        {"edge_score": None},
        {"feature_score": None, "prediction": None, "seed": None},
        {"feature_score": torch.rand(3, 2, dtype=torch.float64)},
        {"edges": torch.zeros(0, dtype=torch.int64), "edge_score": torch.zeros(0)},
        {"metrics": {"float": 3, "a": {"float": "nan"}}},
        {"explainer": "ünï </script>", "metrics": {"note": "naïve"}},
    ],
)
def test_saving_and_loading_gives_the_same(tmp_path, changes):
    x = example(**changes)
    x.save(tmp_path / "x.safetensors")
    assert_equal(Xplanation.load(tmp_path / "x.safetensors"), x)
    assert [path.name for path in tmp_path.iterdir()] == ["x.safetensors"]


def test_numbers_that_json_does_not_know_survive(tmp_path):
    metrics = {"b": [math.inf, 1.0], "c": np.float32(0.5), "d": torch.tensor(3), "e": -math.inf}
    example(metrics=metrics, params={"limit": math.inf}, target=np.int64(4)).save(tmp_path / "x")
    loaded = Xplanation.load(tmp_path / "x")
    assert loaded.metrics == {"b": [math.inf, 1.0], "c": 0.5, "d": 3, "e": -math.inf}
    assert (loaded.params, loaded.target) == ({"limit": math.inf}, 4)
    example(metrics={"a": math.nan}).save(tmp_path / "x")
    assert math.isnan(Xplanation.load(tmp_path / "x").metrics["a"])


def test_tensors_that_share_memory_can_be_saved(tmp_path):
    ids = torch.tensor([4, 1])
    x = example(nodes=ids, edges=ids, feature_score=torch.ones(2, 2), edge_score=torch.ones(2))
    x.save(tmp_path / "x")
    assert_equal(Xplanation.load(tmp_path / "x"), x)


def test_what_cannot_be_saved_is_refused_and_leaves_nothing(tmp_path):
    with pytest.raises(BadExplanation, match="one is object"):
        example(params={"model": object()}).save(tmp_path / "x")
    with pytest.raises(BadExplanation, match="names in params and metrics must be texts"):
        example(params={1: 2}).save(tmp_path / "x")
    with pytest.raises(BadFile, match="could not be written"):
        example().save(tmp_path / "no such folder" / "x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(BadFile, match="could not be written"):
        example().save(tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@given(st.binary(max_size=64))
def test_loading_anything_else_is_refused_by_name(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("files") / "wrong"
    path.write_bytes(content)
    with pytest.raises(BadFile, match="wrong is not an explanation"):
        Xplanation.load(path)


def test_truncated_missing_and_foreign_files_are_refused(tmp_path):
    from safetensors.torch import save_file

    example().save(tmp_path / "whole")
    (tmp_path / "half").write_bytes((tmp_path / "whole").read_bytes()[:-9])
    save_file({"nodes": torch.zeros(1)}, tmp_path / "foreign")
    save_file(
        {"nodes": torch.zeros(1)},
        tmp_path / "bare",
        metadata={"graphgauge.xplanation": json.dumps([])},
    )
    for name in ("half", "foreign", "absent", ".", "bare"):
        with pytest.raises(BadFile, match=r"not an explanation|does not exist"):
            Xplanation.load(tmp_path / name)


def test_a_pyg_explanation_and_back():
    x = example()
    pyg = x.to_pyg()
    assert isinstance(pyg, Explanation)
    assert pyg.node_mask.equal(x.feature_matrix())
    assert pyg.edge_mask.equal(x.edge_vector())
    scope = type("Scope", (), {"nodes": x.nodes, "edges": x.edges})
    back = Xplanation.from_pyg(
        pyg,
        4,
        scope,
        explainer="saliency",
        params={"steps": 5},
        seed=3,
        seconds=0.25,
        metrics={"edge_ec": 4},
    )
    assert_equal(back, x)


@pytest.mark.parametrize("side", ["feature_score", "edge_score"])
def test_a_one_sided_explanation_survives_pyg(side):
    x = example(**{side: None})
    scope = type("Scope", (), {"nodes": x.nodes, "edges": x.edges})
    back = Xplanation.from_pyg(x.to_pyg(), 4, scope)
    assert (back.num_nodes, back.num_edges, getattr(back, side)) == (6, 9, None)


def test_pygs_raw_rows_are_not_taken_for_predictions():
    pyg = Explanation(node_mask=torch.rand(3, 2), prediction=torch.arange(6.0).view(3, 2))
    assert Xplanation.from_pyg(pyg, 1).prediction is None


def test_a_pair_is_a_link_and_one_id_is_not():
    pyg = Explanation(node_mask=torch.rand(3, 2))
    assert Xplanation.from_pyg(pyg, (1, 2)).level == "link"
    for target, level in (
        ((1, 2, 0), "node"),
        (1, "link"),
    ):  # a pair with level="node" is a node and a label
        with pytest.raises(BadExplanation, match=f"is not a {level}: a pair of ids is a link"):
            Xplanation.from_pyg(pyg, target, level=level)


def test_a_computation_graph_of_another_graph_is_refused():
    class Scope:
        nodes, edges = torch.tensor([1, 7]), torch.tensor([], dtype=torch.int64)

    with pytest.raises(
        BadExplanation, match=r"graph names nodes up to 7, but the explanation has 3"
    ):
        Xplanation.from_pyg(Explanation(node_mask=torch.rand(3, 2)), 1, Scope())


def test_pygs_short_masks_are_spread_out():
    edge_index = torch.tensor([[0, 1], [1, 2]])
    per_node = Explanation(
        x=torch.rand(3, 4), edge_index=edge_index, node_mask=torch.tensor([[1.0], [2.0], [3.0]])
    )
    x = Xplanation.from_pyg(per_node, 1)
    assert x.feature_score.tolist() == [[1.0] * 4, [2.0] * 4, [3.0] * 4]
    assert x.edge_score is None
    assert (x.num_nodes, x.num_edges) == (3, 2)
    per_feature = Explanation(
        x=torch.rand(3, 2), edge_index=edge_index, node_mask=torch.tensor([[1.0, 2.0]])
    )
    assert Xplanation.from_pyg(per_feature, 1).feature_score.tolist() == [[1.0, 2.0]] * 3
    only_edges = Explanation(
        x=torch.rand(3, 2), edge_index=edge_index, edge_mask=torch.tensor([0.5, 1.0])
    )
    x = Xplanation.from_pyg(only_edges, 1)
    assert x.feature_score is None
    assert x.edge_score.tolist() == [0.5, 1.0]


def test_a_side_that_is_not_there_is_named():
    with pytest.raises(
        BadExplanation, match="edge_score of target 4 was asked for, but saliency gave none"
    ):
        example(edge_score=None).edge_vector()
    with pytest.raises(BadExplanation, match="feature_score"):
        example(feature_score=None).target_view()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"feature_score": torch.ones(2, 3)}, "feature_score must hold 3 rows"),
        ({"feature_score": torch.ones(3)}, "feature_score must hold 3 rows"),
        ({"feature_score": torch.ones(3, 2, dtype=torch.complex64)}, "feature_score .*complex"),
        ({"edge_score": torch.ones(3)}, "edge_score must hold 2 floats"),
        ({"edge_score": torch.ones(2, 1)}, "edge_score must hold 2 floats"),
        ({"edge_score": torch.ones(2, dtype=torch.int64)}, "edge_score .*int64"),
        ({"nodes": torch.tensor([4, 1, 6])}, r"nodes must lie in 0\.\.5, but reach from 1 to 6"),
        ({"edges": torch.tensor([-1, 0])}, "edges must lie in"),
        ({"edges": torch.tensor([0.0, 1.0])}, "edges must be a list of int64"),
        ({"edges": [7, 0]}, "edges must be a list of int64 ids, but is list"),
        ({"edges": torch.tensor([7, 7])}, "edges must name each id once, but 1 come again"),
        ({"edge_score": [0.1, 0.2]}, "edge_score must hold 2 floats, but is list"),
        ({"target": 5}, "target node 5 is not among the 3 nodes of its explanation"),
        ({"target": (4, 0), "level": "link"}, "target node 0 is not among"),
        ({"target": (4, 0, 1)}, "is not a node: a pair of ids is a link"),
        ({"target": (4, 0, 1, 1)}, "target must be one id or a pair"),
    ],
)
def test_scores_that_do_not_fit_are_refused(changes, message):
    with pytest.raises(BadExplanation, match=message):
        example(**changes)


def test_an_unknown_level_is_refused():
    with pytest.raises(UnknownName, match="Did you mean 'link'"):
        example(level="links")


def test_the_short_form_says_what_it_is():
    assert (
        repr(example())
        == "Xplanation(target=4, explainer='saliency', features=3 x 2, edges=2, metrics=1)"
    )
    assert "features=none" in repr(example(feature_score=None))


def test_to_pyg_matches_the_graph_it_speaks_of():
    data = Data(x=torch.rand(6, 2), edge_index=torch.randint(6, (2, 9)))
    pyg = example().to_pyg()
    pyg.x, pyg.edge_index = data.x, data.edge_index
    assert pyg.validate()
