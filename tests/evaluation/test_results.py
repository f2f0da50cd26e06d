"""Results: tables, summaries, fronts, stories, and files."""

import json
import math
import random

import numpy as np
import pytest
import torch
from support.quick_evaluation import (
    EXPLAINERS,
    MODELS,
    QUICK,
    graph_model,
    link_model,
    node_model,
    numbers,
    values_model,
)

import graphgauge as gg
from graphgauge.core.errors import BadFile, BadSetting, UnknownName
from graphgauge.evaluation import STATUSES, MetricValue, Row, Settings
from graphgauge.evaluation.parquet import _parquet_table


def row(explainer, target, metric, value=None, status="ok", task="", model="", **cell):
    found = MetricValue(value, status, **cell)
    return Row(task, model, explainer, target, 0, metric, found, None, 0, "digest", "version")


@pytest.fixture(scope="module")
def results():
    return gg.Evaluator(node_model(), task="t", name="n", **{**QUICK, "timed": 1}).compare(
        EXPLAINERS, [3, 20, 41, 59]
    )


def test_a_table_has_a_line_for_each_number(results):
    table = results.to_pandas()
    columns = (
        "task model explainer target occurrence metric seconds seed settings version value status "
        "trials stop flipped"
    ).split()
    assert list(table.columns) == [
        *columns,
        "per_reference",
        "draws",
        "error",
        "message",
        "per_level",
    ]
    assert len(table) == len(results) == 3 * 4 * 16
    assert set(table["task"]) == {"t"}
    assert set(table["model"]) == {"n"}
    assert set(table["settings"]) == {results.settings.digest}
    assert (table["value"].isna() == (table["status"] != "ok")).all()
    assert set(table["status"]) <= set(STATUSES)
    first = results.rows[0]
    assert table.iloc[0]["value"] == first.cell.value
    assert not table.duplicated(["explainer", "target", "occurrence", "metric"]).any()


def test_values_of_a_metric(results):
    mine = [
        row.cell.value
        for row in results.rows
        if (row.explainer, row.metric) == ("random", "edge_ec") and row.cell.value
    ]
    assert results.values("edge_ec", "random").tolist() == mine
    with pytest.raises(UnknownName, match="edge_ec"):
        results.values("edge_ek")


def test_a_summary_is_mean_sd_and_number_over_targets(results):
    summary = results.summary()
    for (explainer, metric), line in summary.iterrows():
        cells = [
            row.cell for row in results.rows if (row.explainer, row.metric) == (explainer, metric)
        ]
        if not cells:  # flipped_10 and so on
            continue
        values = [cell.value for cell in cells if cell.status == "ok"]
        assert line["n"] == len(values)
        assert line["mean"] == pytest.approx(np.mean(values) if values else math.nan, nan_ok=True)
        assert line["sd"] == pytest.approx(
            np.std(values, ddof=1) if len(values) > 1 else math.nan, nan_ok=True
        )
    assert summary.loc[("saliency", "edge_ec"), "missing"] == "1 empty"
    assert summary.loc[("saliency", "time"), "missing"] == "3 not_timed"


@pytest.mark.parametrize("cap", [5, 10, 30])
def test_a_summary_counts_no_number_twice_whatever_the_cap(cap):
    results = gg.Evaluator(node_model(), **{**QUICK, "cap": cap}).compare(gg.Saliency(), [3, 20])
    summary = results.summary()
    assert (summary.loc["saliency"].drop("time")["n"] == 2).all()
    flipped = [metric for _, metric in summary.index if "flipped" in metric]
    assert sorted(flipped) == sorted(
        f"{side}_flipped_{k}" for k in (10, 25, 100) if k <= cap for side in ("edge", "feature")
    )
    share = results.flip_curve("edge")["saliency"]
    for metric in (m for m in flipped if m.startswith("edge")):
        assert summary.loc[("saliency", metric), "mean"] == share[int(metric.rpartition("_")[2])]


def test_a_summary_over_several_models_averages_each_first():
    values = {"a": [1.0, 2.0, 3.0], "b": [10.0]}
    rows = [
        row("x", t, "edge_ec", v, flipped=True, model=model)
        for model, own in values.items()
        for t, v in enumerate(own)
    ]
    line = (
        gg.Results((*rows, row("x", 9, "edge_ec", status="empty")), Settings())
        .summary()
        .loc[("x", "edge_ec")]
    )
    assert (line["mean"], line["n"], line["missing"]) == (6.0, 4, "1 empty")
    assert line["sd"] == pytest.approx(math.sqrt(32))


def test_a_flip_curve_is_the_share_flipped_within_k_edits():
    ecs = [(1, True), (3, True), (3, False), (5, True)]
    rows = [
        row("x", t, "edge_ec", float(ec), flipped=flipped) for t, (ec, flipped) in enumerate(ecs)
    ]
    results = gg.Results((*rows, row("x", 9, "edge_ec", status="empty")), Settings(cap=6))
    curve = results.flip_curve("edge")
    assert curve.index.tolist() == [1, 2, 3, 4, 5, 6]
    assert curve["x"].tolist() == [
        sum(flipped and ec <= k for ec, flipped in ecs) / 4 for k in range(1, 7)
    ]
    with pytest.raises(BadSetting, match="side"):
        results.flip_curve("edges")


def test_the_front_is_that_of_brute_force():
    stream = random.Random(0)
    points = {f"e{k}": (stream.randint(0, 4), stream.randint(0, 4)) for k in range(12)}
    rows = [
        row(name, 0, metric, float(value))
        for name, point in points.items()
        for metric, value in zip(("edge_pertinence", "time"), point, strict=True)
    ]
    found = gg.Results((*rows, row("lacking", 0, "time", 1.0)), Settings()).pareto(
        "edge_pertinence", "time"
    )

    def beats(other, own):
        as_good = other[0] >= own[0] and other[1] <= own[1]
        return as_good and other != own

    assert found["front"].to_dict() == {
        name: not any(beats(o, own) for o in points.values()) for name, own in points.items()
    }
    assert found["front"].any()
    assert not found["front"].all()


def test_unknown_metrics_have_no_front(results):
    with pytest.raises(UnknownName, match="edge_pertinence"):
        results.pareto("edge_pertinenze", "time")


def wins(curve, other, tolerance):
    return [a < b - tolerance for a, b in zip(curve, other, strict=True)]


STORIES = {
    "nodes": (node_model, {}),
    "nodes, no twins": (node_model, {"twins": False}),
    "values": (values_model, {}),
    "values by |change|": (values_model, {"regression_curve": "abs"}),
    "values towards the reference": (values_model, {"regression_curve": "towards"}),
    "links": (link_model, {}),
    "graphs": (graph_model, {}),
}


@pytest.mark.parametrize("kind", STORIES)
def test_the_story_of_a_number_gives_the_number(kind):
    make, settings = STORIES[kind]
    model, targets = make(), MODELS[kind.partition(",")[0].partition(" ")[0]][1]
    results = gg.Evaluator(model, **{**QUICK, **settings}).compare(EXPLAINERS[:2], targets)
    found = numbers(results)
    tolerance = 1e-6 * (model.spread if model.task == "regression" else 1)
    checked = 0
    for (explainer, target, occurrence, metric), cell in found.items():
        if not metric.endswith("_pertinence") or cell.status != "ok":
            continue
        story = results.explain(
            {"explainer": explainer, "target": target, "occurrence": occurrence, "metric": metric}
        )
        side = metric.partition("_")[0]
        ec = found[explainer, target, occurrence, f"{side}_ec"]
        assert tuple(case.ec for case in story.cases) == ec.per_reference
        assert any(case.flipped for case in story.cases) == ec.flipped
        assert tuple(case.trials for case in story.cases) == cell.trials
        assert tuple(case.stop for case in story.cases) == cell.stop
        for case, score in zip(story.cases, cell.per_reference, strict=True):
            assert case.steps == ec.value
            curve, randoms = seen(case, settings.get("regression_curve", "raw"), model, case.random)
            K = case.steps
            won = [wins(curve[:K], other[:K], tolerance) for other in randoms[: case.trials]]
            lost = [wins(other[:K], curve[:K], tolerance) for other in randoms[: case.trials]]
            assert score == case.score == pytest.approx(np.mean(won), abs=1e-12)
            assert (case.won, case.lost) == (
                pytest.approx(np.mean(won)),
                pytest.approx(np.mean(lost)),
            )
            assert case.won + case.tied + case.lost == pytest.approx(1)
            checked += 1
        if "pertinence_tied" in str(story.values):
            tied = [
                tied_by_hand(case, settings.get("regression_curve", "raw"), model, tolerance)
                for case in story.cases
            ]
            assert found[
                explainer, target, occurrence, f"{side}_pertinence_tied"
            ].value == pytest.approx(np.mean(tied))
        text = str(story)
        assert f"{explainer}, target {target}" in text
        assert "nan" not in text
        for case in story.cases:
            assert (
                f"K = {case.steps} steps against {case.trials} random orders ({case.stop})" in text
            )
            assert (
                f"changes after {case.ec} of" if case.flipped else f"no change within {case.ec} of"
            ) in text
        assert set(story.values) == {
            m for e, t, o, m in found if (e, t, o) == (explainer, target, occurrence)
        } & {
            f"{side}_{name}"
            for name in (
                "ec",
                "pertinence",
                *(f"pertinence_{twin}" for twin in ("tied", "rank", "p", "abs")),
            )
        }
    assert checked


def seen(case, how, model, random):
    """Curves turned so that lower is better, in plain Python."""
    is_above = (
        how == "towards"
        and case.reference is not None
        and float(model.pred_continuous([case.reference])[0]) > case.start
    )
    turn = {
        "raw": lambda value: value,
        "abs": lambda value: -abs(value - case.start),
        "towards": lambda value: -value if is_above else value,
    }[how]
    as_is = case.curve.double().tolist(), random.double().tolist()
    return [turn(value) for value in as_is[0]], [
        [turn(value) for value in other] for other in as_is[1]
    ]


def tied_by_hand(case, how, model, tolerance):
    curve, randoms = seen(case, how, model, case.twin)
    halves = [
        [
            (a < b - tolerance) + (abs(a - b) <= tolerance) / 2
            for a, b in zip(curve, other, strict=True)
        ]
        for other in randoms
    ]
    return np.mean(halves)


def test_a_row_can_be_explained_by_its_number_or_its_line(results):
    number = next(
        k for k, row in enumerate(results.rows) if (row.metric, row.target) == ("feature_ec", 20)
    )
    texts = [
        str(results.explain(given))
        for given in (number, results.rows[number], results.to_pandas().iloc[number])
    ]
    assert len(set(texts)) == 1
    time = next(k for k, row in enumerate(results.rows) if row.metric == "time")
    with pytest.raises(UnknownName, match="only Effective Compactness and Pertinence"):
        results.explain(time)


@pytest.mark.parametrize("kind", MODELS)
def test_results_come_back_from_disk_bit_for_bit(kind, tmp_path):
    make, targets = MODELS[kind]
    settings = {**QUICK, "timed": 1, "keep": "all", "tau": None}
    results = gg.Evaluator(make(), seed=2**62, task="a,b", name='"x"', **settings).compare(
        {"": gg.RandomExplainer(), "n,\n1": gg.Saliency()}, [*targets, targets[0]]
    )
    results.save(tmp_path / "new" / "run")
    loaded = gg.Results.load(tmp_path / "new" / "run")
    assert loaded.rows == results.rows
    assert loaded.settings == results.settings
    assert loaded.summary().equals(results.summary())
    assert loaded.made == results.made
    assert loaded.made["versions"]["torch"] == torch.__version__
    assert loaded.made["network"] == make().record()
    results.save(tmp_path / "new" / "run")  # again, over it
    assert gg.Results.load(tmp_path / "new" / "run").rows == results.rows


def test_empty_results_come_back_from_disk(tmp_path):
    gg.Results((), Settings()).save(tmp_path)
    assert gg.Results.load(tmp_path).rows == ()


def damage(folder, name, text):
    (folder / name).write_text(text)


def replace_in(folder, name, old, new):
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))


DAMAGE = {
    "no rows": lambda folder: (folder / "rows.csv").unlink(),
    "no settings": lambda folder: (folder / "settings.json").unlink(),
    "settings that are none": lambda folder: damage(folder, "settings.json", "[1, 2]"),
    "settings that are no JSON": lambda folder: damage(folder, "settings.json", "{"),
    "settings of another version": lambda folder: damage(
        folder, "settings.json", json.dumps({"trials": [1, 2], "speed": 3})
    ),
    "an impossible setting": lambda folder: replace_in(
        folder, "settings.json", '"cap": 100', '"cap": 0'
    ),
    "no JSON of how it was made": lambda folder: damage(folder, "made.json", "{"),
    "nothing of how it was made": lambda folder: damage(folder, "made.json", "[1, 2]"),
    "no network": lambda folder: damage(folder, "made.json", '{"network": null}'),
    "another table": lambda folder: damage(folder, "rows.csv", "a,b\n1,2\n"),
    "an empty file": lambda folder: damage(folder, "rows.csv", ""),
    "an unknown status": lambda folder: replace_in(folder, "rows.csv", "empty", "vacuum"),
    "a value that is no number": lambda folder: replace_in(folder, "rows.csv", "0.5", "half"),
    "bytes that are no text": lambda folder: (folder / "rows.csv").write_bytes(b"\xff\xfe\x00"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_folder_is_refused(kind, tmp_path):
    rows = (
        row("x", 3, "edge_ec", 4.0, flipped=True),
        row("x", 3, "edge_pertinence", 0.5),
        row("x", 4, "edge_ec", status="empty"),
    )
    gg.Results(rows, Settings()).save(tmp_path)
    DAMAGE[kind](tmp_path)
    with pytest.raises(BadFile, match="no results that graphgauge saved"):
        gg.Results.load(tmp_path)


def test_a_folder_that_is_not_there_or_cannot_be_is_refused(tmp_path):
    with pytest.raises(BadFile, match="nowhere"):
        gg.Results.load(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(BadFile, match="could not be written"):
        gg.Results((), Settings()).save(tmp_path / "file")


@pytest.mark.parametrize(
    "name",
    [
        "\r=1+1",
        "\r",
        "a\r\nb",
        "a\nb",
        'say "a", b',
        " a ",
        "=1",
        "NA",
        "ü→\u2028",
        "\ud800",
        "a\udfffb",
    ],
)
def test_any_name_comes_back_from_disk(name, tmp_path):
    row = Row("t", name, name, 3, 0, "edge_ec", MetricValue(2.0), None, 0, "s", "v")
    gg.Results((row,), Settings(), {}).save(tmp_path)
    assert gg.Results.load(tmp_path).rows == (row,)
    assert list(gg.Results.load(tmp_path).to_pandas()["explainer"]) == [name]
    assert list(_parquet_table(gg.Results((row,), Settings()))["explainer"]) == [
        name.encode("utf-8", "replace").decode()
    ]
