"""A report from the disk shows what a report from memory shows: the same sentences, the same
pictures, to the last byte.
"""

import json
import re
from dataclasses import dataclass

import pytest
import torch
from support.hostile_names import HOSTILE
from support.small_networks import EncodeDecode, Pooled, Stack, build, random_graph
from torch_geometric.nn import GATConv, GCNConv

import graphgauge as gg
from graphgauge.core.errors import BadFile
from graphgauge.evaluation import PRESETS, MetricValue, Results, Row
from graphgauge.evaluation.result_files import EXAMPLES_FILE
from graphgauge.explainers import BaseExplainer
from graphgauge.guidelines import Requirements
from graphgauge.report import examples as showcase
from graphgauge.report.examples import ExampleBuilder
from graphgauge.report.report_builder import build_report
from graphgauge.report.saved_examples import SavedExample

QUICK = {
    "cap": 8,
    "trials": (4, 4),
    "early_stop": "none",
    "twin_trials": 4,
    "stability": "none",
    "timed": 0,
}


def nodes():
    data = random_graph(undirected=True)
    data.node_names = [f"account {k}" for k in range(data.num_nodes)]
    return gg.NodeClassificationModel(build(Stack, GCNConv, seed=4), data)


def graphs():
    net, data = build(Pooled), [random_graph(12 + k, 24, seed=k) for k in range(6)]
    with torch.no_grad():
        # so that classes differ
        net.lin.bias -= torch.stack([net(g.x, g.edge_index)[0] for g in data]).mean(0)
    return gg.GraphClassificationModel(net, data)


MODELS = {
    "nodes": (nodes, [3, 20, 41, 7, 8]),
    "values": (
        lambda: gg.NodeRegressionModel(build(Stack, GATConv, out=1), random_graph()),
        [3, 20, 41, 7],
    ),
    "links": (
        lambda: gg.LinkClassificationModel(
            build(EncodeDecode, seed=2), random_graph(undirected=True)
        ),
        [(3, 20), (41, 5), (7, 8)],
    ),
    "graphs": (graphs, [4, 0, 2, 1]),
}


def compared(kind="nodes", **settings):
    make, targets = MODELS[kind]
    evaluator = gg.Evaluator(make(), task="a task", name="net", **{**QUICK, **settings})
    return evaluator.compare(
        {"first\n": gg.InputXGradient(), "b": gg.Saliency(), "random": gg.RandomExplainer()},
        targets,
    )


@pytest.fixture(scope="module")
def results():
    return compared()


@pytest.fixture(scope="module")
def folder(results, tmp_path_factory):
    place = tmp_path_factory.mktemp("saved")
    results.save(place)
    return place


def examples_of(results, **options):
    return results.report(**options).content["tasks"][0].examples


@pytest.fixture
def quick(monkeypatch):
    """Pictures are what would be drawn, not drawn: that takes long."""
    monkeypatch.setattr(showcase, "_picture_svg", lambda draw, height: repr(draw.args))


def test_a_report_from_the_disk_has_the_pages_bytes_of_one_from_memory(results, folder):
    first, second = (
        build_report(own).save(folder / "page.html").read_text()
        for own in (results, gg.Results.load(folder))
    )
    assert first.split("Settings and provenance")[0] == second.split("Settings and provenance")[0]
    assert second.count('<div class="paper"><svg') == 16


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize(
    "preset", [{}, {"headline": "twins", "pooling": "sum"}], ids=["paper", "calibrated"]
)
@pytest.mark.usefixtures("quick")
def test_what_is_shown_is_the_same_for_every_kind_of_task(kind, preset, tmp_path):
    results = compared(kind, **preset)
    results.save(tmp_path)
    first, second = (build_report(own).content for own in (results, gg.Results.load(tmp_path)))
    assert first["tasks"][0].examples == second["tasks"][0].examples
    assert all(own.text and len(own.pictures) > 2 for own in second["tasks"][0].examples)
    assert first["requirements"] == second["requirements"]
    assert first["answer"] == second["answer"]


def test_what_is_kept_of_an_explainer_are_its_worst_and_best(results, folder):
    kept = gg.Results.load(folder).kept()
    for name in ("first\n", "b", "random"):
        rows = [
            row
            for row in results.rows
            if row.explainer == name and row.metric.endswith("_pertinence_tied")
        ]
        means = {
            target: sum(
                row.cell.value
                for row in rows
                if row.target == target and row.cell.value is not None
            )
            / sum(row.target == target and row.cell.value is not None for row in rows)
            for target in {row.target for row in rows}
        }
        order = sorted(means, key=means.get)
        chosen = {key[3] for key in kept if key[2] == name}
        assert len(chosen) == 4
        assert {means[target] for target in chosen} == {
            means[target] for target in (*order[:2], *order[-2:])
        }


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("language", ["it", "de", "fr", "es"])
def test_the_language_is_chosen_when_the_report_is_made(results, folder, language):
    told = [own.text for own in examples_of(gg.Results.load(folder), language=language)]
    assert told == [own.text for own in examples_of(results, language=language)]
    assert told != [own.text for own in examples_of(results)]


@pytest.mark.usefixtures("quick")
def test_an_affected_person_sees_no_neighbour(results, folder):
    for own in (results, gg.Results.load(folder)):
        for example in examples_of(own, audience="affected person"):
            assert "The edges that matter" not in example.pictures
            number = int(example.target.split()[1])
            shown = example.text + "".join(example.pictures.values())
            assert not re.findall(rf"account (?!{number}\b)\d+", shown)


@pytest.mark.usefixtures("quick")
def test_names_are_those_the_run_was_saved_with(results, tmp_path):
    results.save(
        tmp_path,
        names={
            "features": ["income", "age", "debt", "rent", "tax", "sum"],
            "nodes": {3: "Ada", 20: "Bo", 41: "Cy"},
        },
    )
    examples = examples_of(gg.Results.load(tmp_path))
    for own in examples:
        assert "BarsData(" in own.pictures["The features that matter"]
        assert not re.search(r"feature \d", own.text + own.pictures["The features that matter"])
    named = {3: "Ada", 20: "Bo", 41: "Cy"}
    numbers = [int(own.target.split()[1]) for own in examples]
    assert [own.target for own in examples] == [
        f"node {k} ({named[k]})" if k in named else f"node {k}" for k in numbers
    ]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("start", range(0, len(HOSTILE), 6))
def test_hostile_names_come_back_as_the_names_they_are(results, tmp_path, start):
    names = {
        "features": HOSTILE[start : start + 6],
        "nodes": dict(enumerate(HOSTILE)),
        "classes": HOSTILE[start : start + 3],
    }
    results.save(tmp_path, names)
    assert examples_of(gg.Results.load(tmp_path)) == examples_of(results, names=names)


def test_loaded_results_that_are_saved_again_keep_what_they_had(folder, tmp_path):
    gg.Results.load(folder).save(tmp_path)
    assert (tmp_path / EXAMPLES_FILE).read_bytes() == (folder / EXAMPLES_FILE).read_bytes()


@pytest.mark.parametrize(("keep", "most"), [(3, 3), ("all", 10**9)])
def test_as_many_scores_a_side_are_kept_as_the_setting_says(keep, most, tmp_path):
    results = compared(keep=keep)
    results.save(tmp_path)
    for (_, _, label, target, _), record in gg.Results.load(tmp_path).kept().items():
        x = results.source.explanations[label, target, 0]()
        ends = results.source.evaluator.model.source.edge_index[:, x.edges].t().tolist()
        scores = zip(ends, x.edge_score.tolist(), strict=True)
        whole = sorted(
            ([*pair, score] for pair, score in scores if score),
            key=lambda entry: -abs(entry[2]),
        )
        assert record["scores"]["edge"] == whole[:most]
        assert len(record["scores"]["feature"]) == min(
            most, int((torch.cat(list(x.target_view())) != 0).sum())
        )


def test_an_exhibit_survives_json(folder):
    for record in gg.Results.load(folder).kept().values():
        exhibit = SavedExample.from_record(record)
        assert exhibit.record() == record
        assert (
            SavedExample.from_record(json.loads(json.dumps(exhibit.record(), allow_nan=False)))
            == exhibit
        )


@dataclass(frozen=True)
class Once(BaseExplainer):
    """Explains one target to warm up, and all of them once, and never again."""

    name = "once"
    signed = True
    deterministic = True
    calls = []

    def scores(self, model, graphs, seeds):
        if len(self.calls) > 1:
            raise RuntimeError("not again")
        self.calls.append(seeds)
        return gg.RandomExplainer().scores(model, graphs, seeds)


@pytest.mark.usefixtures("quick")
def test_an_explainer_that_cannot_explain_again_costs_no_number(tmp_path):
    make, targets = MODELS["nodes"]
    results = gg.Evaluator(make(), **QUICK).compare({"once": Once(), "b": gg.Saliency()}, targets)
    results.save(tmp_path)
    loaded = gg.Results.load(tmp_path)
    assert loaded.rows == results.rows
    assert {key[2] for key in loaded.kept()} == {"b"}
    assert not any(own.text for own in examples_of(loaded) if own.explainer == "once")


@dataclass(frozen=True)
class Alone(BaseExplainer):
    """Explains one target to warm up and many targets once, later only one at a time, and target 8
    never again.
    """

    name = "alone"
    signed = True
    deterministic = True
    calls = []

    def scores(self, model, graphs, seeds):
        if len(self.calls) > 1 and (len(graphs) > 1 or graphs[0].target == 8):
            raise RuntimeError("not again")
        self.calls.append(len(graphs))
        return gg.Saliency().scores(model, graphs, seeds)


def test_what_an_explainer_can_do_only_one_by_one_is_kept_all_the_same(tmp_path):
    make, targets = MODELS["nodes"]
    Alone.calls.clear()
    results = gg.Evaluator(make(), **QUICK).compare({"alone": Alone(), "b": gg.Saliency()}, targets)
    results.save(tmp_path)
    kept = gg.Results.load(tmp_path).kept()
    scores = {key[2:4]: record["scores"] for key, record in kept.items()}
    assert Alone.calls == [1, 5, *[1] * sum(label == "alone" for label, _ in scores)]
    assert {target for label, target in scores if label == "alone"} == {
        target for label, target in scores if label == "b"
    } - {8}
    assert all(
        scores["b", target] == own for (label, target), own in scores.items() if label == "alone"
    )
    assert ("b", 8) in scores


@pytest.mark.parametrize(
    "text", ["{", "[1]", '[{"task": "a"}]', '[{"task":"a task","model":"net"}]']
)
def test_a_damaged_file_of_examples_is_refused_by_name(folder, tmp_path, text):
    gg.Results.load(folder).save(tmp_path)
    (tmp_path / EXAMPLES_FILE).write_text(text)
    with pytest.raises(BadFile, match=EXAMPLES_FILE):
        gg.Results.load(tmp_path).report()


def test_an_exhibit_of_another_version_is_refused(folder, tmp_path):
    gg.Results.load(folder).save(tmp_path)
    records = json.loads((tmp_path / EXAMPLES_FILE).read_text())
    (tmp_path / EXAMPLES_FILE).write_text(
        json.dumps([{**own, "exhibit": {**own["exhibit"], "sound": 1}} for own in records])
    )
    with pytest.raises(BadFile, match="Save the run again"):
        gg.Results.load(tmp_path).report()


def test_results_without_explanations_keep_none_and_leave_no_old_file(results, folder, tmp_path):
    results.save(tmp_path)
    gg.Results(results.rows, results.settings).save(tmp_path)
    assert not (tmp_path / EXAMPLES_FILE).exists()
    assert gg.Results.load(tmp_path).kept() == {}


def of_two(rows):
    """A stage with two explanations, by target and metric."""
    found = [
        Row("", "", "lrp", target, 0, metric, MetricValue(value), None, 0, "", "")
        for (target, metric), value in rows.items()
    ]
    return ExampleBuilder(
        Results(tuple(found), PRESETS["paper"]), Requirements(), "pertinence", lambda key: key
    )


def test_an_explanation_that_ties_with_every_random_order_is_not_the_worst():
    """Its first removal reaches the minimum: no random order is beaten strictly where it too begins
    with that edge.
    """
    rows = {
        (3, "edge_pertinence"): 0.1,
        (3, "edge_pertinence_tied"): 0.55,
        (7, "edge_pertinence"): 0.3,
    }
    stage = of_two({**rows, (7, "edge_pertinence_tied"): 0.3})
    ((_, cases),) = stage.cases.items()
    assert [(key[3], stage.pertinence(cases[key])) for key in stage.ordered(cases)] == [
        (7, 0.3),
        (3, 0.55),
    ]
    # a run without the tied form of 7 does not mix the two: 7 has no place in the order
    stage = of_two(rows)
    ((_, cases),) = stage.cases.items()
    assert [key[3] for key in stage.ordered(cases)] == [3]


def test_a_run_without_the_tied_form_is_ordered_by_the_papers():
    stage = of_two({(3, "edge_pertinence"): 0.1, (7, "edge_pertinence"): 0.3})
    ((_, cases),) = stage.cases.items()
    assert [key[3] for key in stage.ordered(cases)] == [3, 7]
