"""The command line: right exit codes, one line per mistake, no traceback, JSON that is JSON."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import graphgauge
import graphgauge as gg
from graphgauge.datasets import ba_shapes, trained_gcn

COMMAND = Path(sys.executable).parent / "graphgauge"


def run(*arguments):
    # two processes of the suite share two cores
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [COMMAND, *arguments], capture_output=True, text=True, check=False, env=one_thread
    )


def test_help_and_version():
    assert run("--version").stdout == f"graphgauge {graphgauge.__version__}\n"
    done = run("--help")
    assert (done.returncode, "demo" in done.stdout) == (0, True)
    assert "--targets" in run("demo", "--help").stdout


def test_every_command_has_its_file_and_the_line_of_help_that_it_says_itself():
    from graphgauge.cli.main import _COMMANDS, _load_command

    for name, line in _COMMANDS.items():
        command = _load_command(name)
        assert " ".join(command.help.split("\n\n")[0].split()) == line


def test_help_lists_every_command_in_the_order_of_their_use():
    from graphgauge.cli.main import _COMMANDS

    lines = run("--help").stdout.partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in lines] == list(_COMMANDS)


def test_a_command_that_is_mistyped_gets_a_suggestion():
    done = run("evalute")
    assert done.returncode == 2
    assert "No such command 'evalute'. Did you mean 'evaluate'" in done.stderr


def test_the_demo_shows_predictions_computation_graphs_and_which_explainer_to_use(tmp_path):
    done = run(
        "demo",
        "--targets",
        "302,510,699",
        "--number",
        "4",
        "--report",
        str(tmp_path / "report.html"),
    )
    assert done.returncode == 0
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0] == "BA-Shapes: 700 nodes, 3942 directed edges, 4 classes"
    assert [line.split()[0] for line in lines[5:8]] == ["302", "510", "699"]
    assert any(line.startswith("Extracted graphs and the whole graph differ by") for line in lines)
    ending = lines[[line.split()[:1] for line in lines].index(["explainer"]) :]
    assert [line.split()[0] for line in ending[1:5]] == [
        "input_x_gradient",
        "integrated_gradients",
        "gnn_explainer",
        "random",
    ]
    assert ending[6].split(":")[0] == "Recommended"
    assert ending[7].startswith("  because ")
    assert ending[8].startswith("  not ")
    assert ending[-1] == f"Report: {tmp_path / 'report.html'}"
    assert "<svg" in (tmp_path / "report.html").read_text()


def test_the_demo_as_json_is_repeatable(tmp_path):
    report = str(tmp_path / "report.html")
    first, second = (
        json.loads(
            run(
                "demo", "--json", "--targets", "510,400", "--number", "2", "--report", report
            ).stdout
        )
        for _ in range(2)
    )
    assert first["targets"] == second["targets"]
    assert first["explainers"] == second["explainers"]
    chosen = [found["recommendation"]["chosen"] for found in (first, second)]
    assert set(chosen) <= {"input_x_gradient", "integrated_gradients", "gnn_explainer"}
    # between equals seconds may decide, and nothing else
    assert first["explainers"][chosen[0]] == first["explainers"][chosen[1]]
    assert (first["report"], first["measured_on"]) == (report, 2)
    assert [row["target"] for row in first["targets"]] == [510, 400]
    assert first["largest_difference"] <= 1e-5
    assert first["accuracy"]["test"] > 0.6
    data = ba_shapes(1)
    model = gg.NodeClassificationModel(trained_gcn(data, seed=1), data)
    for row, x in zip(
        first["targets"], gg.IntegratedGradients().explain(model, [510, 400]), strict=True
    ):
        assert row["strongest_edge"] == data.edge_index[:, x.edge_vector().argmax()].tolist()


def test_explainers_are_listed_with_what_they_are():
    lines = run("explainers").stdout.splitlines()
    assert lines[0].split() == ["name", "signed", "deterministic", "from", "what", "it", "is"]
    found = {line.split()[0]: line.split()[1:4] for line in lines[1:]}
    assert found["saliency"] == ["no", "yes", "graphgauge"]
    assert found["pyg:CaptumExplainer"] == ["depends", "depends", "PyG"]
    rows = json.loads(run("explainers", "--json").stdout)
    assert [row["name"] for row in rows] == sorted(found)
    assert all(row["what it is"] for row in rows)


def test_data_sets_are_listed_with_counts_licence_and_files(data_folder):
    lines = run("datasets", "--data", str(data_folder)).stdout.splitlines()
    assert lines[0].split() == [
        "name",
        "nodes",
        "edges",
        "features",
        "classes",
        "edge",
        "classes",
        "files",
        "licence",
    ]
    assert lines[1].split() == [
        "Cora",
        "2,708",
        "8,448",
        "1,433",
        "7",
        "2",
        "ready",
        "in",
        str(data_folder),
        "MIT",
    ]
    assert [line.split()[0] for line in lines[1:]] == [
        "Cora",
        "GitHub",
        "BA-Shapes",
        "MovieLens",
        "Synthetic",
    ]
    rows = json.loads(run("datasets", "--json", "--data", str(data_folder)).stdout)
    assert [row["files"] for row in rows] == ["ready", "ready", "generated", "ready", "generated"]
    assert [row["edges"] for row in rows] == [8448, 462406, 3942, 226272, 150324]


def test_data_sets_without_their_files_say_which_to_put_there(monkeypatch, tmp_path):
    monkeypatch.delenv("GRAPHGAUGE_DATA", raising=False)
    done = run("datasets", "--data", str(tmp_path))
    assert done.returncode == 0
    assert done.stdout.splitlines()[2].split()[6:8] == ["missing", "MIT"]
    assert (
        "GitHub (missing): put GitHub/raw/github.npz into the data folder, see docs/datasets.md."
        in done.stdout
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["demo", "--targets", "700"],
            "graphgauge: error: target 700 is not in this data: its 700 nodes are 0..699.",
        ),
        (["demo", "--targets", "-1"], "target -1 is not in this data"),
        (["demo", "--targets", "1.5"], "target '1.5' is not a whole number"),
        (["demo", "--targets", "5,x"], "target 'x' is not a whole number"),
        (["demo", "--targets", "(0 1)"], "target '(0 1)' is not a whole number"),
        (["demo", "--targets", "²"], "target '²' is not a whole number"),
        (["demo", "--targets=+-3"], "target '+-3' is not a whole number"),
        (["demo", "--targets", "9" * 5000], "is not a whole number"),
        (["demo", "--seed", "-3"], "--seed"),
        (["demo", "--seed", "x"], "--seed"),
        (["demo", "--seed", "99999999999999999999"], "seed"),
        (["demo", "--nonsense"], "nonsense"),
        (["dmo"], "dmo"),
        (
            ["datasets", "--data", "no/such/folder"],
            "folder= (--data) names no/such/folder as data folder, but there is no such",
        ),
    ],
)
def test_mistakes_end_with_code_2_and_without_a_traceback(arguments, message):
    done = run(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_no_command_shows_the_help():
    done = run()
    assert done.returncode == 2
    assert "Usage: graphgauge" in done.stdout + done.stderr
