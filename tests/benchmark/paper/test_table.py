"""The paper's Table 1 from results, the paper's own, and the published format."""

import math

import numpy as np
import pytest
from support.table_results import noisy, results, row, values

from graphgauge.benchmark import (
    kind_of_task,
    read_summary,
    summary_csv,
    summary_table,
    table_1,
    table_1_of_the_paper,
)
from graphgauge.benchmark.explainer_names import PAPER_EXPLAINERS, sort_as_in_paper
from graphgauge.benchmark.paper.published_numbers import TABLE_COLUMNS
from graphgauge.benchmark.task_kinds import TASK_KIND_TITLES
from graphgauge.core.errors import BadFile, UndefinedScore, UnknownName
from graphgauge.datasets.catalogue import DATASETS
from graphgauge.explainers import EXPLAINERS as KNOWN


def cell(table, **wanted):
    chosen = table.cells
    for column, name in wanted.items():
        chosen = chosen[chosen[column] == name]
    (line,) = chosen.to_dict("records")
    return line


def test_the_papers_ten_tasks_are_of_four_kinds():
    kinds = [
        kind_of_task(f"{name.lower()}-{level}") for name in DATASETS for level in ("node", "link")
    ]
    assert {kind: kinds.count(kind) for kind in TASK_KIND_TITLES} == {
        "node_classification": 3,
        "node_regression": 2,
        "edge_classification": 3,
        "edge_regression": 2,
    }
    assert [kind_of_task("corals-node"), kind_of_task("cora"), kind_of_task("")] == [
        "corals-node",
        "cora",
        "task",
    ]


def test_the_papers_table_has_every_cell_and_its_numbers():
    table = table_1_of_the_paper()
    assert set(table) == {
        (kind, name, metric)
        for kind in TASK_KIND_TITLES
        for name in PAPER_EXPLAINERS
        for metric in TABLE_COLUMNS
    }
    assert set(PAPER_EXPLAINERS) <= set(KNOWN)
    assert table["edge_classification", "graphmask", "time"] == (12.43, 18.19, 6)
    assert table["edge_regression", "graphmask", "feature_ec"] == (51.3, 68.8, 2)
    assert table["node_regression", "saliency", "edge_ec"] == (32.6, 26.9, 4)
    assert table["node_classification", "integrated_gradients", "edge_pertinence"] == (
        0.87,
        0.08,
        6,
    )
    # the sums of means and of SDs of the paper's columns
    sums = {
        "feature_pertinence": (21.62, 4.82),
        "edge_pertinence": (23.57, 4.08),
        "feature_ec": (1464.3, 968.9),
    }
    for metric, expected in {**sums, "edge_ec": (1532.2, 935.9), "time": (42.65, 30.98)}.items():
        column = [own for (_, _, name), own in table.items() if name == metric]
        assert (sum(own.mean for own in column), sum(own.sd for own in column)) == pytest.approx(
            expected
        )


def test_means_are_over_targets_first_and_then_over_data_sets_and_models():
    rows = values("cora-node", "gcn", "lrp", "edge_ec", [1, 2, 3, None])
    rows += values("cora-node", "gat", "lrp", "edge_ec", [10])
    rows += values("github-node", "gcn", "lrp", "edge_ec", [100, 4])
    line = cell(table_1(results(rows)), explainer="lrp", metric="edge_ec")
    means = [2, 10, 52]
    assert line["kind"] == "node_classification"
    assert line["mean"] == pytest.approx(np.mean(means))
    assert line["sd"] == pytest.approx(np.std(means, ddof=1))
    assert (line["configurations"], line["n"], line["missing"], line["never_flipped"]) == (
        3,
        6,
        1,
        1,
    )


def test_an_explainer_that_was_not_run_everywhere_misses_those_targets():
    rows = values("cora-node", "gcn", "lrp", "edge_pertinence", [0.5, 0.5])
    rows += values("github-node", "gcn", "lrp", "edge_pertinence", [0.7, 0.9])
    rows += values("cora-node", "gcn", "saliency", "edge_pertinence", [0.25, 0.75])
    table = table_1(results(rows))
    line = cell(table, explainer="saliency", metric="edge_pertinence")
    assert (line["mean"], line["configurations"], line["n"], line["missing"]) == (0.5, 1, 2, 2)
    assert math.isnan(line["sd"])
    assert cell(table, explainer="saliency", metric="time")["n"] == 0
    wide = table.wide().set_index("Explainer")
    assert wide.loc["Saliency", "Edge Pertinence"] == "0.50 (2; 2 missing)"
    assert wide.loc["LRP", "Edge Pertinence"] == "**0.65±0.21 (4)**"
    assert wide.loc["LRP", "Execution Time"] == "-"


def test_targets_that_were_not_to_be_timed_are_not_missing():
    rows = [
        row("cora-node", "gcn", "lrp", t, "time", *((0.5, "ok") if t < 2 else (None, "not_timed")))
        for t in range(5)
    ]
    line = cell(table_1(results(rows)), metric="time")
    assert (line["n"], line["missing"], line["mean"]) == (2, 0, 0.5)


def test_rows_come_in_the_papers_order_and_the_best_are_bold():
    rows = [
        own
        for task in ("synthetic-link", "cora-node")
        for name, value in (("random", 0.4), ("saliency", 0.9), ("deconvolution", 0.904))
        for own in values(task, "gcn", name, "edge_pertinence", [value])
    ]
    wide = table_1(results(rows)).wide(counts=False)
    assert wide["Task"].tolist() == ["Node Class."] * 3 + ["Edge Reg."] * 3
    assert wide["Explainer"].tolist() == ["Deconv", "Saliency", "random"] * 2
    assert wide["Edge Pertinence"].tolist() == ["**0.90**", "**0.90**", "0.40"] * 2
    assert sort_as_in_paper(["x", "saliency", "lrp(variant=captum)"]) == [
        "lrp(variant=captum)",
        "saliency",
        "x",
    ]


def test_less_is_better_where_it_is():
    rows = [
        own
        for name, ec in (("lrp", 3), ("saliency", 8))
        for own in values("cora-node", "gcn", name, "edge_ec", [ec])
    ]
    assert table_1(results(rows)).wide(counts=False)["Edge Eff. Comp."].tolist() == [
        "**3.0**",
        "8.0",
    ]


def test_the_calibrated_table_has_the_twins_in_the_same_columns():
    rows = values("cora-node", "gcn", "lrp", "edge_pertinence", [0.25]) + values(
        "cora-node", "gcn", "lrp", "edge_pertinence_tied", [0.75]
    )
    table = table_1(results(rows), "calibrated")
    assert table.wide(counts=False)["Edge Pertinence *"].tolist() == ["**0.75**"]
    assert len(table.wide().columns) == 9
    with pytest.raises(UnknownName, match="calibrated"):
        table_1(results(rows), "calibratet")


def test_texts_of_a_table_hold_its_numbers():
    table = table_1(noisy(("cora-node", "synthetic-node")))
    markdown, latex = table.as_markdown().splitlines(), table.as_latex()
    assert len(markdown) == 2 + 6
    assert {line.count("|") for line in markdown} == {10}
    assert latex.count(r"\midrule") == 2
    assert latex.count(r"\\") == 7
    assert r"$\pm$" in latex
    assert "±" not in latex
    assert (
        table.as_csv().splitlines()[0]
        == "kind,explainer,metric,mean,sd,configurations,n,missing,never_flipped"
    )


def test_results_without_rows_are_refused():
    with pytest.raises(UndefinedScore, match="these results have none"):
        table_1(results([]))


def test_a_summary_equals_that_of_the_results_and_is_read_back(tmp_path):
    made = noisy(("cora-node", "github-node", "own"))
    table = summary_table(made)
    assert list(table.columns) == ["task", "explainer", "metric", "mean", "sd", "n"]
    assert list(dict.fromkeys(table["task"])) == [
        "node_classification",
        "own",
        "cora-node",
        "github-node",
    ]
    assert not table.duplicated(["task", "explainer", "metric"]).any()
    for task in ("cora-node", "own"):
        alone = results([own for own in made.rows if own.task == task]).summary()
        for line in table[table["task"] == task].itertuples():
            expected = alone.loc[(line.explainer, line.metric)]
            assert (line.mean, line.sd, line.n) == pytest.approx(
                tuple(expected[["mean", "sd", "n"]])
            )
    path = tmp_path / "summary.csv"
    path.write_text(summary_csv(made))
    assert read_summary(path).equals(table)


def test_a_metric_without_a_value_stays_in_the_summary_with_an_n_of_0(tmp_path):
    path = tmp_path / "summary.csv"
    path.write_text(
        summary_csv(results([row("cora-node", "gcn", "lrp", 0, "edge_ec", status="empty")]))
    )
    assert path.read_text().splitlines()[1] == "node_classification,lrp,edge_ec,,,0"
    assert read_summary(path)["n"].tolist() == [0, 0]


def test_a_file_that_is_no_summary_is_refused(tmp_path):
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(BadFile, match="its columns are a, b, but must be task, explainer"):
        read_summary(path)
    with pytest.raises(BadFile, match="holds no summary"):
        read_summary(tmp_path / "nothing.csv")
