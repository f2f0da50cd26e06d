"""Columns that are scrambled, swapped or rescaled, and models that err more, are found and named;
unchanged data are left alone.
"""

from dataclasses import replace
from itertools import combinations
from time import perf_counter

import numpy as np
import pytest
import torch
from alarms import BROKEN_LABELS, targets_like, targets_with_columns
from support.monitoring_histories import FACTS, START, made_monitor, weeks
from torch_geometric.data import Data
from torch_geometric.nn import GINConv, SAGEConv, global_mean_pool

import graphgauge as gg
from graphgauge.monitor import (
    ColumnNames,
    Monitor,
    Plan,
    Sample,
    drift_triggers,
    read_history,
    score_targets,
)
from graphgauge.monitor.data_drift_columns import (
    _GAP,
    _PAIR,
    _RESIDUAL,
    _label_columns,
    relation_columns,
    shift_columns,
)
from graphgauge.monitor.monitoring_plan import ACCURACY_DROP, BROKEN_RELATION, DATA_SHIFT
from graphgauge.monitor.multivariate_drift import permutation_test
from graphgauge.report.monitoring_page import _monitoring_html

FAST = {"trials": (4, 8), "timed": 0}
QUICK = Plan(budget=0.1)  #: a tenth of the draws that the usual budget needs
NAMED = ColumnNames(
    ("age", "b", "c", "income", "e", "f", "g", "h"),
    ("age", "b", "c", "income", "e", "f", "g", "h", "prediction"),
)


def raised(broken, seed=0, number=100, known="labels", labels=BROKEN_LABELS):
    dice = np.random.default_rng(seed)
    baseline, run = (
        targets_with_columns(200, dice, "none", known),
        targets_with_columns(number, dice, broken, known),
    )
    return {own.name: own for own in drift_triggers(baseline, [run], QUICK, labels, seed)}


def test_a_scrambled_column_is_found_and_named_though_its_distribution_is_the_same():
    found = raised("scrambled", labels=NAMED, known="data")
    assert list(found) == [BROKEN_RELATION]
    assert "column 3 'income'" in found[BROKEN_RELATION].told
    assert "no longer varies with" in found[BROKEN_RELATION].told
    assert "column 3 'income'" in found[BROKEN_RELATION].details["columns"]
    assert (
        found[BROKEN_RELATION].number
        <= found[BROKEN_RELATION].limit
        == QUICK.level(BROKEN_RELATION)
    )


def test_two_swapped_columns_with_equal_distributions_are_found_and_named():
    found = raised("swapped", number=200, known="data")
    assert list(found) == [BROKEN_RELATION]
    assert {"column 2", "column 5"} & set(found[BROKEN_RELATION].details["columns"])


def test_a_column_that_scatters_more_around_the_same_middle_is_found():
    found = raised("scale", number=100, known="data")
    assert "spread of column 3 (+" in found[DATA_SHIFT].told
    assert next(iter(found[DATA_SHIFT].details["z"])) == "column 3"


def test_a_shifted_column_is_named_once_and_its_relations_are_not_blamed():
    found = raised("mean", number=100)
    assert "column 3 (+" in found[DATA_SHIFT].told
    assert not any(
        "column 3" in name for own in found.values() for name in own.details.get("columns", ())
    )


@pytest.mark.parametrize("known", ["data", "gaps", "labels"])
def test_unchanged_data_raise_nothing(known):
    assert [raised("none", seed, 50, known) for seed in range(5)] == [{}] * 5


def test_a_column_that_is_related_to_neighbours_only_is_found_by_its_gap():
    dice = np.random.default_rng(0)

    def look(number, scrambled):
        x = dice.normal(size=(number, 3))
        near = 0.9 * x + 0.4 * dice.normal(size=x.shape)
        x[:, 1] = dice.permutation(x[:, 1]) if scrambled else x[:, 1]
        return Sample(
            tuple(range(number)), {"edge_ec": np.ones(number)}, data=x, gaps=np.abs(x - near)
        )

    found = drift_triggers(look(200, False), [look(60, True)], QUICK, ColumnNames())
    assert [own.name for own in found] == [BROKEN_RELATION]
    assert found[0].told.startswith(
        "column 1 of targets is farther from that of their neighbours than it was (z +"
    )


def test_with_labels_a_model_that_errs_more_raises_an_alarm_and_one_that_errs_less_does_not():
    dice = np.random.default_rng(1)

    def look(number, by):
        errors = {"absolute error": by * np.abs(dice.normal(size=number))}
        errors["absolute error"][::4] = np.nan
        return Sample(
            tuple(dice.integers(0, 10**6, number).tolist()),
            {"edge_ec": np.ones(number)},
            errors=errors,
        )

    baseline = look(200, 1.0)
    (found,) = drift_triggers(baseline, [look(60, 2.5)], QUICK, ColumnNames())
    assert (found.name, found.details["error"]) == (ACCURACY_DROP, "absolute error")
    assert "the absolute error is 0.7" in found.told
    assert "(45 targets with a label)" in found.told
    assert drift_triggers(baseline, [look(60, 0.3)], QUICK, ColumnNames()) == []
    slow = [look(60, 1.45) for _ in range(4)]
    assert [
        own.details["runs"] for own in drift_triggers(baseline, slow, QUICK, ColumnNames())
    ] == [4]


# --- the p-values ---------------------------------------------------------------------------------


def literal_relations(new, old):
    """Products of ranks for every pair, in plain loops: mean ranks, mean 0, SD 1."""
    rows = np.concatenate([new, old])
    ranks = np.array(
        [[sum(v < w for v in c) + (sum(v == w for v in c) + 1) / 2 for w in c] for c in rows.T]
    ).T
    r = (ranks - ranks.mean(0)) / ranks.std(0)
    return np.stack([r[:, i] * r[:, j] for i, j in combinations(range(r.shape[1]), 2)], axis=1)


def literal_p(rows, n):
    """The largest |z| for every way to call n rows new."""
    rows = rows[:, rows.std(0) > 0]
    rows, total = (rows - rows.mean(0)) / rows.std(0), len(rows)
    every = [np.abs(rows[list(chosen)].sum(0)).max() for chosen in combinations(range(total), n)]
    return float(np.mean(np.array(every) >= every[0] - 1e-9))


def small(seed, n=4, m=6, width=3):
    dice = np.random.default_rng(seed)
    return [
        Sample(tuple(range(k)), {}, data=dice.integers(0, 4, (k, width)).astype(float))
        for k in (n, m)
    ]


def test_products_of_pairs_are_those_of_the_definition():
    new, old = small(3)
    found = relation_columns(new, old)
    products = [k for k, own in enumerate(found.about) if own.kind == _PAIR][:3]
    assert found.rows[:, products] == pytest.approx(
        literal_relations(new.data, old.data), abs=1e-12
    )
    assert [(found.about[k].column, *found.about[k].others) for k in products] == [
        (0, 1),
        (0, 2),
        (1, 2),
    ]


@pytest.mark.parametrize("make", [shift_columns, relation_columns])
def test_p_values_are_those_of_all_arrangements(make):
    for seed in range(3):
        new, old = small(seed)
        found = make(new, old)
        p = permutation_test(
            found.rows[:4], found.rows[4:], 0.5, torch.Generator().manual_seed(seed)
        ).p
        exact = literal_p(found.rows, 4)
        assert p == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 1000) + 0.002)


@pytest.mark.parametrize("make", [shift_columns, relation_columns])
def test_what_is_tested_does_not_know_which_rows_are_new(make):
    """Exact p-values need statistics that are chosen and fitted on all rows alike: any other split
    gives the same rows.
    """
    dice = np.random.default_rng(4)
    whole = np.concatenate([dice.normal(size=(30, 4)), dice.integers(0, 3, (30, 2))], axis=1)
    whole[:, 1] += whole[:, 0]
    order = dice.permutation(30)
    one, other = (
        make(*(Sample(tuple(range(len(p))), {}, data=p) for p in np.split(w, [9])))
        for w in (whole, whole[order])
    )
    assert one.about == other.about
    assert other.rows == pytest.approx(one.rows[order], abs=1e-9)


def test_p_values_of_unchanged_data_are_uniform_or_larger():
    """Among 120 histories without change p <= 0.2 is as rare as it should be."""
    counts = {DATA_SHIFT: 0, BROKEN_RELATION: 0}
    for seed in range(120):
        dice = np.random.default_rng([9, seed])
        new, old = targets_with_columns(12, dice), targets_with_columns(24, dice)
        for kind, make in ((DATA_SHIFT, shift_columns), (BROKEN_RELATION, relation_columns)):
            rows = make(new, old).rows
            counts[kind] += (
                permutation_test(rows[:12], rows[12:], 0.2, torch.Generator().manual_seed(seed)).p
                <= 0.2
            )
    for count in counts.values():
        assert 0.2 * 120 - 3.5 * (120 * 0.16) ** 0.5 < count < 0.2 * 120 + 3.5 * (120 * 0.16) ** 0.5


def test_leaving_columns_out_of_the_count_can_only_raise_p():
    dice = np.random.default_rng(0)
    new, old = dice.normal(size=(8, 3)), dice.normal(size=(20, 3))
    new[:, 0] += 2
    every = permutation_test(new, old, 0.1, torch.Generator().manual_seed(0)).p
    fewer = permutation_test(
        new, old, 0.1, torch.Generator().manual_seed(0), np.array([False, True, True])
    ).p
    assert every < 0.01 < fewer


# --- odd data -------------------------------------------------------------------------------------


def test_constant_integer_and_binary_columns_and_missing_labels_are_taken_as_they_are():
    dice = np.random.default_rng(2)

    def look(number, labels):
        x = np.c_[
            np.full(number, 3.0),
            dice.integers(0, 9, number),
            dice.random(number) < 0.4,
            np.zeros(number),
        ]
        return Sample(
            tuple(range(number)), {"edge_ec": np.ones(number)}, data=x.astype(float), labels=labels
        )

    holes = np.where(dice.random(40) < 0.5, np.nan, 1.0)
    baseline, run = look(100, np.arange(100) % 3.0), look(40, holes)
    assert drift_triggers(baseline, [run], QUICK, ColumnNames()) == []
    assert _label_columns(run, baseline)[1] == ()
    full = look(40, np.arange(40) % 3.0)
    assert _label_columns(full, baseline)[1] == ("label is 0", "label is 1", "label is 2")
    assert _label_columns(replace(full, labels=np.arange(40.0)), baseline)[1] == ("label",)
    flat = replace(run, data=np.ones((40, 4)), labels=None)
    assert (
        drift_triggers(replace(flat, targets=tuple(range(40))), [flat], QUICK, ColumnNames()) == []
    )


def test_a_column_that_becomes_constant_is_found():
    dice = np.random.default_rng(3)
    looks = [targets_with_columns(k, dice, "none", "data") for k in (200, 60)]
    looks[1].data[:, 4] = np.median(looks[0].data[:, 4])
    assert (
        "column 4"
        in {own.name: own for own in drift_triggers(looks[0], looks[1:], QUICK, BROKEN_LABELS)}[
            DATA_SHIFT
        ].told
    )


def test_thousands_of_sparse_columns_cost_little():
    dice = np.random.default_rng(0)
    chance = dice.uniform(0.001, 0.2, 3000)
    baseline, run = (
        Sample(
            tuple(range(k)),
            {"edge_ec": np.ones(k)},
            data=(dice.random((k, 3000)) < chance).astype(float),
        )
        for k in (200, 50)
    )
    found = relation_columns(run, baseline)
    assert found.rows.shape[1] < 6000
    start = perf_counter()
    assert drift_triggers(baseline, [run], QUICK, ColumnNames()) == []
    assert perf_counter() - start < 20  # about a second; the margin is for busy machines


# --- real models, and the store -------------------------------------------------------------------


class NodeNet(torch.nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.conv = SAGEConv(width, out)

    def forward(self, x, edge_index):
        return self.conv(x, edge_index)


class GraphNet(torch.nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.conv, self.head = GINConv(torch.nn.Linear(width, 8)), torch.nn.Linear(8, out)

    def forward(self, x, edge_index, batch):
        return self.head(global_mean_pool(self.conv(x, edge_index).relu(), batch))


def rings(number=40, nodes=6):
    draw = torch.Generator().manual_seed(0)
    ring = torch.arange(nodes)
    edges = torch.cat([torch.stack([ring, ring.roll(1)]), torch.stack([ring.roll(1), ring])], 1)
    return [
        Data(x=torch.randn(nodes, 4, generator=draw), edge_index=edges, y=torch.tensor([k % 2]))
        for k in range(number)
    ]


def test_gaps_labels_and_errors_of_nodes_are_those_of_the_definition():
    torch.manual_seed(0)
    data = rings(1, 30)[0]
    data.y = torch.arange(30) % 3
    data.y[4] = -1
    model = gg.NodeClassificationModel(NodeNet(4, 3), data)
    targets = [3, 4, 7]
    sample, _ = score_targets(gg.Evaluator(model, **FAST), gg.InputXGradient(), targets)
    x = data.x.double().numpy()
    near = [[(t - 1) % 30, (t + 1) % 30] for t in targets]
    literal = [
        np.mean([np.abs(x[t] - x[n]) for n in own], axis=0)
        for t, own in zip(targets, near, strict=True)
    ]
    assert sample.gaps == pytest.approx(np.array(literal), abs=1e-6)
    assert sample.labels[[0, 2]].tolist() == [0.0, 1.0]
    assert np.isnan(sample.labels[1])
    prob = model.pred_continuous(targets).numpy()
    wrong, lacking = (
        sample.errors["share of wrong classes"],
        sample.errors["probability that the right class lacks"],
    )
    assert wrong[[0, 2]].tolist() == [float(prob[0].argmax() != 0), float(prob[2].argmax() != 1)]
    assert lacking[[0, 2]] == pytest.approx([1 - prob[0, 0], 1 - prob[2, 1]], abs=1e-6)
    assert np.isnan([wrong[1], lacking[1]]).all()


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_lists_of_graphs_are_watched_too(task):
    torch.manual_seed(0)
    graphs = rings()
    if task == "regression":
        for k, g in enumerate(graphs):
            g.y = torch.tensor([0.5 * k])
    graphs[3].y = torch.tensor([-1]) if task == "classification" else torch.tensor([float("nan")])
    kind = gg.GraphClassificationModel if task == "classification" else gg.GraphRegressionModel
    model = kind(GraphNet(4, 2 if task == "classification" else 1), graphs)
    sample, facts = score_targets(gg.Evaluator(model, **FAST), gg.InputXGradient(), [0, 3, 5])
    x = graphs[5].x.double().numpy()
    start, end = graphs[5].edge_index.numpy()
    assert sample.gaps[2] == pytest.approx(np.abs(x[start] - x[end]).mean(0), abs=1e-6)
    assert sample.labels[[0, 2]].tolist() == (
        [0.0, 1.0] if task == "classification" else [0.0, 2.5]
    )
    assert np.isnan(sample.labels[1])
    for own in sample.errors.values():
        assert np.isfinite(own).tolist() == [True, False, True]
    if task == "regression":
        value = model.pred_continuous([5]).item()
        assert sample.errors["absolute error"][2] == pytest.approx(abs(value - 2.5), abs=1e-5)
    assert ColumnNames(facts.features, facts.columns).predictions == (
        [6, 7] if task == "classification" else [6]
    )


def test_attributes_of_edges_are_those_of_the_targets_own_graph():
    """A graph's edges count from 0 in each graph; the attributes of the first graph once stood for
    all.
    """
    torch.manual_seed(0)
    graphs = rings(6)
    for k, g in enumerate(graphs):
        g.edge_weight = torch.full((g.num_edges,), float(k))

    class Weighted(GraphNet):
        def forward(self, x, edge_index, batch, edge_weight):
            return (
                self.head(global_mean_pool(self.conv(x, edge_index).relu(), batch))
                + 0 * edge_weight.sum()
            )

    model = gg.GraphClassificationModel(Weighted(4, 2), graphs)
    sample, facts = score_targets(gg.Evaluator(model, **FAST), gg.InputXGradient(), [0, 3, 5])
    assert sample.data[:, facts.columns.index("edge_weight (mean over its edges)")].tolist() == [
        0.0,
        3.0,
        5.0,
    ]


def test_labels_of_one_of_several_columns_are_those_that_the_target_asks_for():
    torch.manual_seed(0)
    data = rings(1, 30)[0]
    data.y = torch.stack([torch.arange(30) % 2, torch.ones(30).long()], 1)
    several = gg.NodeClassificationModel(NodeNet(4, 2), data, output="multi_label_logits")
    sample, _ = score_targets(
        gg.Evaluator(several, **FAST), gg.InputXGradient(), [(3, 0), (4, 0), (4, 1)]
    )
    assert sample.labels.tolist() == [1.0, 0.0, 1.0]
    assert list(sample.errors) == [
        "share of wrong classes",
        "probability that the right class lacks",
    ]
    data.y = torch.stack([torch.arange(30.0), torch.arange(30.0) / 10], 1)
    values = gg.NodeRegressionModel(NodeNet(4, 2), data, output_column=1)
    sample, _ = score_targets(gg.Evaluator(values, **FAST), gg.InputXGradient(), [3, 4])
    assert sample.labels == pytest.approx([0.3, 0.4])
    assert sample.errors["absolute error"] == pytest.approx(
        np.abs(values.pred_continuous([3, 4]).numpy().ravel() - [0.3, 0.4])
    )


def test_labels_of_links_are_found_by_pair():
    torch.manual_seed(0)
    data = rings(1, 12)[0]
    data.edge_label_index, data.edge_label = torch.tensor([[0, 5], [1, 9]]), torch.tensor([1, 0])

    class LinkNet(NodeNet):
        def forward(self, x, edge_index, edge_label_index):
            z = self.conv(x, edge_index)
            return (z[edge_label_index[0]] * z[edge_label_index[1]]).sum(-1)

    model = gg.LinkClassificationModel(LinkNet(4, 4), data)
    sample, _ = score_targets(
        gg.Evaluator(model, **FAST), gg.InputXGradient(), [(0, 1), (5, 9), (2, 3)]
    )
    assert sample.labels[:2].tolist() == [1.0, 0.0]
    assert np.isnan(sample.labels[2])


def test_a_scrambled_feature_of_a_real_network_is_found_and_the_page_names_it(tmp_path):
    torch.manual_seed(0)
    data = rings(1, 400)[0]
    walk = torch.randn(400, 1).cumsum(0) * 0.3
    data.x = torch.cat([walk, walk + 0.3 * torch.randn(400, 1), torch.randn(400, 2)], 1)
    data.feature_names = ["age", "income", "noise", "more noise"]
    monitor, net = Monitor(tmp_path / "m.sqlite", Plan(number=60, budget=0.1)), NodeNet(4, 1)
    explainer = gg.InputXGradient()
    model = gg.NodeRegressionModel(net, data)
    model.feature_names = data.feature_names
    monitor.take_baseline(gg.Evaluator(model, **FAST), explainer, number=150, at=START)
    assert monitor.run(gg.Evaluator(model, **FAST), explainer, at=weeks(1)).triggers == ()
    broken = data.clone()
    broken.x[:, 1] = broken.x[torch.randperm(400), 1]
    changed = gg.NodeRegressionModel(net, broken)
    changed.feature_names = data.feature_names
    run = monitor.run(gg.Evaluator(changed, **FAST), explainer, at=weeks(2))
    (found,) = [own for own in run.triggers if own.name == BROKEN_RELATION]
    assert "column 1 'income'" in found.told
    page = _monitoring_html(monitor.history(), weeks(2))
    assert "Broken relation" in page
    assert "income" in page


def test_gaps_labels_and_errors_come_back_from_the_store(tmp_path):
    dice = np.random.default_rng(0)
    sample = targets_with_columns(30, dice)
    sample.labels[2] = np.nan
    names = tuple(f"column {k}" for k in range(8))
    facts = replace(FACTS, features=names, columns=(*names, "prediction"))
    monitor = Monitor(tmp_path / "m.sqlite", Plan())
    monitor.add_baseline(sample, facts, START)
    monitor.add_run(targets_with_columns(20, dice), facts, weeks(1))
    kept = read_history(tmp_path / "m.sqlite")
    assert kept.baseline.sample.gaps == pytest.approx(sample.gaps)
    assert kept.baseline.sample.labels == pytest.approx(sample.labels, nan_ok=True)
    assert kept.baseline.sample.errors["absolute error"] == pytest.approx(
        sample.errors["absolute error"]
    )
    run = kept.runs[0].sample
    assert (run.gaps, run.labels, list(run.errors)) == (None, None, ["absolute error"])


def test_stores_of_earlier_versions_stay_readable_and_are_compared_as_far_as_they_reach(tmp_path):
    def early(number, sample):
        return replace(sample, gaps=None, labels=None, errors={})

    monitor = made_monitor(tmp_path / "m.sqlite", 1, change=early)
    old = monitor.history().baseline.sample
    with (
        monitor.writing() as store
    ):  # a baseline without the new keys, as earlier versions wrote it
        rows = [
            {name: own for name, own in row.items() if name in ("target", "values", "top", "data")}
            for row in old.rows(True)
        ]
        store.append("baseline", "2", monitor.history().baseline.body, rows)
    kept = monitor.history().baseline
    assert (kept.number, kept.sample.gaps, kept.sample.labels, dict(kept.sample.errors)) == (
        2,
        None,
        None,
        {},
    )
    assert (
        monitor.add_run(targets_like(50, np.random.default_rng(8), False), FACTS, weeks(2)).triggers
        == ()
    )


def test_the_kinds_of_relation_are_all_looked_at():
    dice = np.random.default_rng(0)
    found = relation_columns(
        targets_with_columns(20, dice), targets_with_columns(40, dice), BROKEN_LABELS.predictions
    )
    assert {own.kind for own in found.about} == {_PAIR, _RESIDUAL, _GAP}
    assert not any(8 in own.others for own in found.about if own.kind == _RESIDUAL)
