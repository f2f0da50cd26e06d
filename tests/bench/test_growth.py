"""The benchmark of growth measures every series, and writes its table and picture."""

import csv

import growth
import pytest


def test_every_series_is_measured_printed_and_written(tmp_path, capsys):
    sizes = "--targets 1 2 --paper-targets 1 --edges 300 600 --trials 2 3 --explainers 1 2"
    base = f"--base-edges 500 --base-targets 2 --write {tmp_path}"
    growth.main(f"{sizes} {base}".split())
    with (tmp_path / "growth.csv").open() as file:
        rows = list(csv.DictReader(file))
    measured = [(row["series"], int(row["size"]), row["configuration"]) for row in rows]
    assert measured == [
        ("edges", 300, "paper"),
        ("edges", 600, "paper"),
        ("targets", 1, "short"),
        ("targets", 2, "short"),
        ("targets", 1, "paper"),
        ("trials", 2, "paper"),
        ("trials", 3, "paper"),
        ("explainers", 1, "paper"),
        ("explainers", 2, "paper"),
    ]
    assert {row["num_edges"] for row in rows[2:]} == {"500"}
    assert all(float(row["seconds"]) > 0 and float(row["mean_edges"]) > 1 for row in rows)
    printed = capsys.readouterr().out.splitlines()
    assert sum(line.startswith(("| edges", "| targets")) for line in printed) == 5
    assert (tmp_path / "growth.png").stat().st_size > 10_000


def test_seconds_per_item_divide_by_targets_where_the_graph_grows():
    fixed = ("paper", 20, 1000, 5.0, 4.0, 0.1, 0.2)
    assert growth.Measurement("edges", 1000, *fixed).seconds_per_item == pytest.approx(0.2)
    assert growth.Measurement("trials", 10, *fixed).seconds_per_item == pytest.approx(0.4)


def test_targets_are_drawn_once():
    graph = growth.Graph(300, "cpu")
    drawn = graph.draw(10)
    assert not set(drawn) & set(graph.draw(10))
    with pytest.raises(SystemExit, match="but the graph has 30 nodes"):
        graph.draw(10)
