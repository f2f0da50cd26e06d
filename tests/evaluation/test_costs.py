"""What a call says while it runs, and which explainer costs what."""

import io
import re
import sys

import pytest
from support.quick_evaluation import EXPLAINERS, QUICK, node_model

import graphgauge as gg
from graphgauge.core import UndefinedScore, progress, record_phases

TARGETS = [3, 20, 41]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def titles(monkeypatch, call, where):
    """What the bar says, in order, each once."""
    monkeypatch.setattr(sys, "stderr", where)
    monkeypatch.setattr(progress, "_SECONDS_BEFORE_SHOWN", 0)
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_DRAWINGS", 0)
    found = call()
    texts = re.findall(r"\r([a-z][\w: ]+?):\s+\d+%", where.getvalue())
    return found, list(dict.fromkeys(texts))


def test_the_bar_names_the_phase_and_the_explainer(monkeypatch):
    evaluator = gg.Evaluator(node_model(), **{**QUICK, "timed": 1})
    plain = evaluator.compare(EXPLAINERS[:2], TARGETS)
    where = Terminal()
    results, found = titles(monkeypatch, lambda: evaluator.compare(EXPLAINERS[:2], TARGETS), where)
    assert found == [
        "explaining: saliency",
        "explaining: random",
        "feature curves",
        "edge curves",
        "stability: saliency",
        "time: saliency",
        "stability: random",
        "time: random",
    ]
    assert "left" in where.getvalue()
    shares = [int(share) for share in re.findall(r"(\d+)%", where.getvalue())]
    assert shares == sorted(shares)
    same = ~results.table["metric"].str.startswith("time")
    columns = ["explainer", "target", "metric", "value", "status"]
    assert results.table[same][columns].equals(plain.table[same][columns])


def test_evaluate_has_the_same_bar_without_explaining(monkeypatch):
    model = node_model()
    xs = gg.Saliency().explain(model, TARGETS)
    evaluator = gg.Evaluator(model, **QUICK)
    _, found = titles(monkeypatch, lambda: evaluator.evaluate(xs), Terminal())
    expected = ["feature curves", "edge curves", "stability: saliency", "time: saliency"]
    assert found == expected


def test_nothing_is_shown_where_nobody_looks(monkeypatch):
    evaluator, where = gg.Evaluator(node_model(), **QUICK), io.StringIO()
    _, found = titles(monkeypatch, lambda: evaluator.compare(EXPLAINERS[:1], TARGETS), where)
    assert found == []
    assert where.getvalue() == ""


def test_costs_are_the_seconds_of_each_explainer_and_what_they_share():
    with record_phases() as seconds:
        results = gg.Evaluator(node_model(), **QUICK).compare(EXPLAINERS, TARGETS)
    table = results.costs()
    assert table.index.tolist() == ["saliency", "random", "gnn_explainer", "shared"]
    phases = ["explaining", "feature curves", "edge curves", "stability", "time"]
    assert table.columns.tolist() == [*phases, "total"]
    assert table["total"].tolist() == pytest.approx(table[phases].sum(axis=1).tolist())
    assert (table.loc["shared", ["feature curves", "edge curves"]] > 0).all()
    assert (table.loc["shared", ["explaining", "stability", "time"]] == 0).all()
    assert table["stability"].sum() == pytest.approx(seconds["stability"], abs=0.01)


def test_costs_of_joined_results_are_added_up():
    evaluator = gg.Evaluator(node_model(), **QUICK)
    parts = [evaluator.compare(EXPLAINERS[:1], [target]) for target in TARGETS[:2]]
    total = sum(part.costs().loc["saliency", "total"] for part in parts)
    assert gg.concat(parts).costs().loc["saliency", "total"] == pytest.approx(total)


def test_costs_are_in_no_file_and_loaded_results_say_so(tmp_path):
    results = gg.Evaluator(node_model(), **QUICK).compare(EXPLAINERS[:1], TARGETS)
    results.save(tmp_path)
    assert not any("phase_seconds" in path.read_text() for path in tmp_path.iterdir())
    with pytest.raises(UndefinedScore, match="do not say what they cost"):
        gg.Results.load(tmp_path).costs()
