"""The score of the network itself: against its definition, with an interval, and told on every
page.
"""

import itertools
import json

import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GINConv, SAGEConv, global_mean_pool

import graphgauge as gg
from graphgauge.core.errors import BadSetting
from graphgauge.core.intervals import share_interval
from graphgauge.evaluation import ModelAccuracy, model_accuracy

QUICK = {"trials": (2, 2), "cap": 2, "stability": "none", "timed": 0, "early_stop": "none"}


class Copy(nn.Module):
    """Predicts what stands in its features."""

    def forward(self, x, edge_index):
        return x


class Ends(nn.Module):
    """The logit of a link is the sum of its ends' features."""

    def encode(self, x, edge_index):
        return x

    def decode(self, z, edge_label_index):
        return z[edge_label_index[0]].sum(1) + z[edge_label_index[1]].sum(1)


class Pooled(nn.Module):
    def __init__(self, out=2):
        super().__init__()
        self.layer = GINConv(nn.Linear(2, out))

    def forward(self, x, edge_index, batch):
        return global_mean_pool(self.layer(x, edge_index), batch)


def nodes(make, x, y, **masks):
    x = torch.tensor(x)
    edges = torch.stack([torch.arange(len(x) - 1), torch.arange(1, len(x))])
    return make(
        Copy(),
        Data(
            x=x,
            edge_index=edges,
            y=torch.tensor(y),
            **{name: torch.tensor(own) for name, own in masks.items()},
        ),
    )


def classes(truth, predicted, **masks):
    rows = [[3.0 * (k == own) for k in range(3)] for own in predicted]
    return nodes(gg.NodeClassificationModel, rows, truth, **masks)


# --- against the definitions ----------------------------------------------------------------------


def test_accuracy_is_the_share_of_named_classes_with_wilsons_interval():
    truth, predicted = (
        [0] * 30 + [1] * 20 + [2] * 10,
        [0] * 27 + [1] * 3 + [1] * 10 + [0] * 10 + [2] * 10,
    )
    found = model_accuracy(classes(truth, predicted))
    assert (found.name, found.n, found.value) == ("accuracy", 60, 47 / 60)
    assert found.interval == share_interval(47, 60)
    assert (found.reference, found.is_poor) == (0.5, False)
    assert found.mean_recall == pytest.approx((27 / 30 + 10 / 20 + 10 / 10) / 3)
    assert str(found) == (
        "accuracy 0.783 [0.664, 0.869] on 60 nodes of everything labelled, training data perhaps "
        "among it; mean recall of the classes 0.8; always naming the most frequent class reaches "
        "0.5"
    )


def test_the_area_under_the_curve_counts_every_pair():
    x = torch.tensor([[0.5], [0.1], [-0.3], [0.2], [0.1], [0.9]])
    pairs = torch.tensor([[0, 1, 2, 3, 0, 5, 2, 1], [1, 2, 3, 4, 5, 3, 4, 4]])
    label = torch.tensor([1, 0, 0, 1, 1, 0, 0, 1])
    model = gg.LinkClassificationModel(
        Ends(), Data(x=x, edge_index=pairs[:, :3], edge_label_index=pairs, edge_label=label)
    )
    score = (x[pairs[0], 0] + x[pairs[1], 0]).tolist()
    yes, no = (
        [s for s, own in zip(score, label.tolist(), strict=True) if own == kind] for kind in (1, 0)
    )
    slow = sum((a > b) + (a == b) / 2 for a, b in itertools.product(yes, no)) / 16
    found = model_accuracy(model)
    assert (found.name, found.n, found.reference) == ("AUC", 8, 0.5)
    assert found.value == pytest.approx(slow, abs=1e-12)
    assert found.interval == share_interval(found.value * 4, 4)


def test_a_pair_of_a_node_with_itself_is_left_out():
    pairs, label = torch.tensor([[0, 1, 2, 2], [1, 2, 0, 2]]), torch.tensor([1, 0, 1, 0])
    data = Data(
        x=torch.tensor([[0.5], [-3.0], [2.0]]),
        edge_index=pairs[:, :2],
        edge_label_index=pairs,
        edge_label=label,
    )
    assert model_accuracy(gg.LinkClassificationModel(Ends(), data)).n == 3


def test_r_squared_and_its_interval_cover_the_true_value():
    draw = torch.Generator().manual_seed(0)
    covered = []
    for _ in range(60):
        value = torch.randn(120, 1, generator=draw)
        truth = value[:, 0] + 0.5 * torch.randn(120, generator=draw)
        found = model_accuracy(nodes(gg.NodeRegressionModel, value.tolist(), truth.tolist()))
        covered.append(found.interval[0] <= 1 - 0.25 / 1.25 <= found.interval[1])
        assert found.value == pytest.approx(
            float(1 - (truth - value[:, 0]).square().sum() / (truth - truth.mean()).square().sum())
        )
    assert sum(covered) >= 53  # 88 %


def test_graphs_are_scored_on_those_that_their_mask_names():
    torch.manual_seed(0)
    edges = torch.tensor([[0, 1], [1, 0]])
    graphs = [
        Data(
            x=torch.randn(2, 2),
            edge_index=edges,
            y=torch.tensor([k % 2]),
            test_mask=torch.tensor(k > 5),
        )
        for k in range(16)
    ]
    model = gg.GraphClassificationModel(Pooled(), graphs)
    right = (model.pred_discrete(list(range(6, 16))) == torch.arange(6, 16) % 2).double().mean()
    found = model_accuracy(model)
    assert (found.value, found.n, found.scored_on) == (float(right), 10, "graphs of test_mask")
    for graph in graphs:
        graph.y = graph.y.double()[None]
    found = model_accuracy(gg.GraphRegressionModel(Pooled(1), graphs))
    assert (found.name, found.n) == ("R²", 10)


# --- where labels are -----------------------------------------------------------------------------


def test_the_part_that_is_scored_is_told():
    truth, predicted = [0, 1, 2, 0], [0, 1, 0, 0]
    assert (
        model_accuracy(classes(truth, predicted, test_mask=[False, True, True, False])).value == 0.5
    )
    left = model_accuracy(classes(truth, predicted, train_mask=[True, True, False, False]))
    assert (left.value, left.scored_on) == (0.5, "nodes of what train_mask leaves")
    unlabelled = model_accuracy(classes([0, 1, -1, 0], predicted))
    assert (unlabelled.value, unlabelled.n) == (1.0, 3)
    assert (
        model_accuracy(
            nodes(gg.NodeRegressionModel, [[1.0], [2.0], [4.0]], [1.0, float("nan"), 4.0])
        ).n
        == 2
    )


@pytest.mark.parametrize(
    "y", [torch.zeros(4, 2), torch.tensor([0, 1]), torch.full((4,), 0.5), torch.full((4,), 7)]
)
def test_labels_that_do_not_fit_give_no_score(y):
    model = classes([0, 1, 2, 0], [0, 1, 0, 0])
    model.data.y = y
    assert model_accuracy(model) is None


# --- poor -----------------------------------------------------------------------------------------


def test_a_model_that_names_the_most_frequent_class_or_the_mean_is_poor_unlike_one_that_learns():
    truth = [0] * 95 + [1] * 5
    assert model_accuracy(classes(truth, [0] * 100)).is_poor
    rare = [0] * 900 + [1] * 100
    good = model_accuracy(classes(rare, [1] * 70 + [0] * 830 + [1] * 70 + [0] * 30))
    # as often right, but it finds 7 of 10 rare ones
    assert (good.value, good.reference, good.is_poor) == (0.9, 0.9, False)
    values = torch.randn(200, 1, generator=torch.Generator().manual_seed(0))
    assert model_accuracy(
        nodes(gg.NodeRegressionModel, values.tolist(), values.roll(7)[:, 0].tolist())
    ).is_poor


def test_networks_that_know_nothing_are_seldom_taken_for_good_ones():
    draw = torch.Generator().manual_seed(0)
    found = [
        model_accuracy(
            classes(
                torch.randint(3, (60,), generator=draw).tolist(),
                torch.randint(3, (60,), generator=draw).tolist(),
            )
        )
        for _ in range(100)
    ]
    # an interval is one-sidedly wrong in 2.5 %, and there are two
    assert sum(not own.is_poor for own in found) <= 8


# --- stated ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (81, r"from 0 to 1, but 81 was given. 81 % is 0.81"),
        (-1, "from 0 to 1, but -1"),
        ("high", "from 0 to 1, but 'high'"),
        (True, "from 0 to 1, but True"),
        (float("nan"), "from 0 to 1, but nan"),
        ({"value": 0.5}, "give a share"),
        ({"name": "F1", "value": 0.5, "colour": "red"}, "Known are name, value"),
        ({"name": "F1", "value": "much"}, "a finite value"),
        ({"name": "F1", "value": 0.5, "interval": [0.6, 0.7]}, "must hold its value"),
        ({"name": "F1", "value": 50.0}, "cannot be above 1"),
    ],
)
def test_a_value_that_is_no_score_is_refused(value, told):
    with pytest.raises(BadSetting, match=told):
        results_of(classes([0, 1, 2, 0], [0, 1, 0, 0])).report(accuracy=value)


def test_a_stated_score_takes_the_place_of_the_measured_one():
    results = results_of(classes([0, 1, 2, 0], [0, 1, 0, 0]))
    assert results.report().content["accuracy"]["value"] == 0.75
    stated = {"name": "F1", "value": 0.6, "interval": [0.5, 0.7]}
    assert (
        results.report(accuracy=stated).content["accuracy"]["told"]
        == "F1 0.6 [0.5, 0.7], as stated"
    )
    assert results.with_accuracy(0.5).accuracy == ModelAccuracy("accuracy", 0.5)
    assert ModelAccuracy.from_value(results.accuracy.record()) == results.accuracy


# --- told -----------------------------------------------------------------------------------------


class Sage(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = SAGEConv(3, 3)

    def forward(self, x, edge_index):
        return x + 0 * self.layer(x, edge_index)


def results_of(model):
    model = type(model)(Sage(), model.data)
    return gg.Evaluator(model, **QUICK).compare([gg.Saliency(), gg.RandomExplainer()], [1, 2])


def test_it_is_told_at_the_head_of_every_page_and_kept_with_the_run(tmp_path):
    results = results_of(classes([0, 1, 2, 0] * 20, [0, 1, 0, 0] * 20))
    told = str(results.accuracy)
    results.save(tmp_path)
    for found in (results, gg.Results.load(tmp_path)):
        report = found.report()
        paths = [report.save(tmp_path / f"r.{suffix}") for suffix in ("html", "md", "json")]
        html, markdown, data = (path.read_text() for path in paths)
        assert html.index(told) < html.index('id="numbers"')
        assert f"The model itself: {told}." in markdown.replace("\\", "").split("## ")[0]
        assert json.loads(data)["accuracy"]["value"] == 0.75
        assert not any(own["name"] == "unknown_accuracy" for own in report.content["diagnosis"])


def test_a_poor_model_is_a_finding_and_no_clear_pass():
    results = results_of(classes([0, 0, 0, 1] * 20, [0] * 80))
    report = results.report()
    assert "poor_model" in {own["name"] for own in report.content["diagnosis"]}
    assert report.content["answer"]["outcome"] != "pass"
    assert report.content["accuracy"]["warning"].startswith(
        "the model is not shown to be better than no model at all: accuracy 0.75"
    )


def test_results_of_weights_that_changed_since_do_not_take_the_score_of_the_new_ones():
    results = results_of(classes([0, 1, 2, 0], [0, 1, 0, 0]))
    with torch.no_grad():
        next(results.source.evaluator.model.net.parameters()).add_(1)
    assert results.accuracy is None
