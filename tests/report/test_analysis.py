"""The analysis of a run: page, tables and pictures."""

import json

import matplotlib as mpl
import matplotlib.pyplot  # so that mpl.pyplot is there
import pandas as pd
import pytest
from support.table_results import noisy, results, values
from typer.testing import CliRunner

from graphgauge.benchmark import read_summary, summary_table
from graphgauge.cli.main import app
from graphgauge.core.errors import BadFile
from graphgauge.report import write_analysis

mpl.use("Agg")
NINE = (
    "deconvolution gnn_explainer graphmask guided_backprop input_x_gradient integrated_gradients "
    "lrp saliency random"
).split()


@pytest.fixture(autouse=True)
def _closed():
    yield
    mpl.pyplot.close("all")


TABLES = (
    "table_1 table_1_calibrated comparison_cells comparison_orders disagreements fronts "
    "robustly_non_dominated best pairs agreement trials stops explanations summary"
).split()


def test_each_file_is_written_once_for_a_task_without_a_name(tmp_path):
    paths = write_analysis(noisy(("",), targets=4), tmp_path, draws=10)
    assert len(paths) == len(set(paths))
    assert (tmp_path / "fronts_task.png") in paths


def test_an_analysis_holds_every_table_the_page_and_pictures(tmp_path):
    made = noisy(("cora-node", "own"), targets=4)
    paths = write_analysis(made, tmp_path, draws=10)
    names = {path.name for path in paths}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert len(paths) == len(names)
    pictures = {
        f"fronts_{name}.{suffix}"
        for name in ("node_classification", "cora-node", "own")
        for suffix in ("png", "svg")
    }
    assert (
        names
        == {f"{name}.csv" for name in TABLES}
        | {"table_1.tex", "table_1_calibrated.tex", "analysis.md"}
        | pictures
    )
    assert all(
        len(pd.read_csv(tmp_path / f"{name}.csv")) > 0 for name in TABLES if name != "disagreements"
    )
    assert read_summary(tmp_path / "summary.csv").equals(summary_table(made))
    page = (tmp_path / "analysis.md").read_text()
    headings = [line[3:] for line in page.splitlines() if line.startswith("## ")]
    assert headings == [
        "Table 1",
        "Beside the paper",
        "Pareto fronts",
        "Which explainer is best",
        "Fidelity beside Pertinence and EC",
        "Effort",
        "Summary",
        "Pictures",
    ]
    assert "2 tasks, 4 tasks and models, 3 explainers, 48 explanations scored." in page
    assert "Left out" not in page


def test_an_analysis_is_the_same_twice_to_the_last_byte(tmp_path):
    made = noisy(("own",), models=("gcn",), targets=4)
    first, second = (write_analysis(made, tmp_path / name, draws=10) for name in "ab")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_what_cannot_be_made_is_left_out_with_the_reason(tmp_path):
    write_analysis(results(values("own", "gcn", "lrp", "edge_ec", [1, None])), tmp_path, draws=10)
    page = (tmp_path / "analysis.md").read_text()
    assert "## Beside the paper\n\nLeft out: nothing can be compared with the paper" in page
    assert "## Pareto fronts\n\nLeft out: a front needs two metrics" in page
    assert "## Fidelity beside Pertinence and EC\n\nLeft out: there is nothing to correlate" in page
    assert "None: no pair of metrics was measured." in page
    assert "| own | LRP | - | - | - | **1.0 (1; 1 missing)** | - | - | - |" in page
    with pytest.raises(BadFile, match="could not be written"):
        write_analysis(
            results(values("own", "gcn", "lrp", "edge_ec", [1])), tmp_path / "analysis.md", draws=10
        )


def test_the_command_analyses_saved_results(tmp_path):
    # no pair of metrics, so no pictures
    results(values("cora-node", "gcn", "lrp", "edge_ec", [3, 4])).save(tmp_path / "run")
    done = CliRunner().invoke(app, ["analyse", str(tmp_path / "run"), "--draws", "10"])
    assert (done.exit_code, done.stdout.splitlines()[0]) == (
        0,
        str(tmp_path / "run" / "analysis" / "analysis.md"),
    )
    done = CliRunner().invoke(
        app,
        [
            "analyse",
            str(tmp_path / "run"),
            "--draws",
            "10",
            "--output",
            str(tmp_path / "out"),
            "--json",
        ],
    )
    assert str(tmp_path / "out" / "table_1.csv") in json.loads(done.stdout)
    assert isinstance(CliRunner().invoke(app, ["analyse", str(tmp_path)]).exception, BadFile)


def test_the_command_puts_a_run_of_variants_in_the_places_of_theirs(tmp_path):
    own = [
        row
        for name in ("lrp", "saliency")
        for row in values("cora-node", "gcn", name, "edge_ec", [3, 4])
    ]
    results(own).save(tmp_path / "run")
    results(values("cora-node", "gcn", "lrp", "edge_ec", [8, 9])).save(tmp_path / "variants")
    asked = [
        "analyse",
        str(tmp_path / "run"),
        "--variants",
        str(tmp_path / "variants"),
        "--draws",
        "10",
        "--json",
    ]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0
    table = pd.read_csv(tmp_path / "run" / "analysis" / "table_1.csv").dropna(subset=["mean"])
    assert dict(zip(table["explainer"], table["mean"], strict=True)) == {
        "saliency": 3.5,
        "lrp(variant=captum)": 8.5,
    }
    asked[3] = str(tmp_path / "nothing")
    assert isinstance(CliRunner().invoke(app, asked).exception, BadFile)
