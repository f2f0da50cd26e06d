"""What the bad explainers of `plugins` do, and how results tell it."""

from graphgauge.benchmark import BenchmarkRun
from support.tiny_experiments import numbers

GOOD = ["saliency", "random"]
#: can be caught in the process that measures
HERE = {
    "raising": ("failed", "RuntimeError: I do not feel like it"),
    "leaving": ("failed", "SystemExit: 3"),
    "misshapen": ("failed", "BadExplanation: misshapen.scores must give edge scores of shape"),
    "edits_x": ("changed_model", "edits_x wrote into the data while explaining"),
    "changes_weights": (
        "changed_model",
        "changes_weights changed the network's weights while explaining",
    ),
}
#: cannot
ELSEWHERE = {
    "exiting": ("failed", "the worker process ended 2 times without a result"),
    "hanging": ("timeout", "no result within"),
}
#: the first one fails at once, so that the others are measured one by one; those that cost a worker
#: come last
ALL = ["saliency", *HERE, "nan", "chatty", "leaves_traces", "random", *ELSEWHERE]


def check_contained(folder, expected, good):
    """Each of the expected is marked by name with its status and message; the rows of the good ones
    are ``good``.
    """
    found = [row for row in BenchmarkRun(folder).results().rows if row.explainer not in GOOD]
    for name, (status, message) in expected.items():
        cells = [row.cell for row in found if row.explainer == name]
        assert {cell.status for cell in cells} == {status}
        assert all(cell.value is None and message in cell.message for cell in cells), cells[0]
    assert [
        row for row in numbers(folder) if any(f"'explainer': '{name}'" in row for name in GOOD)
    ] == good
    assert set(BenchmarkRun(folder).shards()["faults"][0]) == set(expected)


def check_harmless(folder):
    """NaN is a status of its own, and told; printing does no harm, nor do traces that are left in
    the network.
    """
    run = BenchmarkRun(folder)
    table = run.results().to_pandas()
    nan = table[(table["explainer"] == "nan") & ~table["metric"].str.startswith("time")]
    assert set(nan["status"]) == {"nan_attribution"}
    others = table[
        table["explainer"].isin(["chatty", "leaves_traces"]) & (table["metric"] == "edge_ec")
    ]
    assert set(others["status"]) == {"ok"}
    assert table.groupby(["explainer", "metric"]).size().eq(4).all()
    assert any(
        "nan gives NaN or infinite scores" in remark for remark in run.shards()["remarks"][0]
    )
