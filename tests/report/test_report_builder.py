"""What a report says, and that every format says it: numbers against the results, escaping, the
command.
"""

import csv
import io
import json
import math
import re
import sys
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from support.chosen_results import GOOD, good, row
from support.chosen_results import run as made
from support.hostile_names import HOSTILE
from support.html_tags import Tags
from support.report_results import by_hand, measured, several, shown
from typer.testing import CliRunner

import graphgauge as gg
from graphgauge.benchmark.run_store import open_for_writing
from graphgauge.cli.main import app
from graphgauge.core.errors import BadFile, BadSetting, MissingExtra, UndefinedScore, UnknownName
from graphgauge.evaluation import MetricValue, Results, Settings
from graphgauge.guidelines import Requirements, checklist, diagnose, recommend
from graphgauge.narrative.names import tidy_text
from graphgauge.report.exporters import _escape_formula
from graphgauge.report.provenance import provenance_facts
from graphgauge.report.report_builder import _REPORT_FORMATS, build_report
from graphgauge.report.report_data import VERDICT_BADGES
from graphgauge.report.sanitize import sanitize_results, tidy_names


def text_of(html):
    """What a reader sees, on one line; without scripts and styles."""
    bare = re.sub(r"<(script|style)\b.*?</\1>", " ", html, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", "", bare)).split())


def written(results, format, **options):
    return _REPORT_FORMATS[format](build_report(results, **options).content)


# --- the answer -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("numbers", "n", "headline", "outcome"),
    [
        ({"lrp": GOOD}, 100, "Use lrp", "pass"),
        ({"lrp": GOOD}, 20, "Use lrp, with care", "warn"),
        (
            {"lrp": good(edge_pertinence=0.4)},
            100,
            "No explainer meets every threshold; lrp comes first",
            "fail",
        ),
        (
            {"lrp": dict.fromkeys(GOOD, "no_scores")},
            100,
            "No explainer can be recommended",
            "not applicable",
        ),
    ],
)
def test_the_answer_comes_first(numbers, n, headline, outcome):
    content = build_report(made(numbers, n=n), Requirements(num_features=200)).content
    assert (content["answer"]["headline"], content["answer"]["outcome"]) == (headline, outcome)
    page = text_of(_REPORT_FORMATS["html"](content))
    assert page.index(f"{VERDICT_BADGES[outcome]} {headline}") < page.index("Numbers Explainer")


def test_the_worst_task_decides_over_several():
    results = several(["good", "bad"])
    failing = replace(
        results, rows=tuple(lowered(own) if own.task == "bad" else own for own in results.rows)
    )
    answer = build_report(failing, Requirements(num_features=200)).content["answer"]
    assert answer["outcome"] == "fail"
    assert answer["headline"] == "No explainer meets every threshold; lrp comes first (2 tasks)"


def lowered(own):
    return replace(own, cell=MetricValue(0.2)) if own.metric == "edge_pertinence" else own


def test_tasks_with_different_choices_are_told_apart():
    first = made({"lrp": GOOD, "saliency": good(edge_pertinence=0.1)}, task="one")
    second = made({"lrp": good(edge_pertinence=0.1), "saliency": GOOD}, task="two")
    answer = build_report(Results(first.rows + second.rows, Settings())).content["answer"]
    assert answer["headline"] == "2 tasks, 2 different choices: see each task"


# --- numbers --------------------------------------------------------------------------------------


def test_every_mean_and_n_of_the_table_is_that_of_the_results():
    results = by_hand()
    content = build_report(results, Requirements(num_features=200)).content
    table = results.summary()
    for line in content["tasks"][0].lines:
        for score in line.scores:
            own = table.loc[line.explainer, score.metric]
            assert score.mean == pytest.approx(own["mean"], abs=1e-12)
            assert score.n == own["n"]
            assert score.low - 1e-12 <= score.mean <= score.high + 1e-12
    page = text_of(_REPORT_FORMATS["html"](content))
    assert f"{table.loc['lrp', 'edge_pertinence']['mean']:.2f}✓n 60" in page


def test_recommendation_diagnosis_and_checklist_are_those_of_the_guidelines():
    results, wanted = by_hand(), Requirements(num_features=200)
    content = build_report(results, wanted, accuracy=0.9).content
    page = text_of(_REPORT_FORMATS["html"](content))
    assert content["tasks"][0].recommendation == recommend(results, wanted)[0]
    assert [text for group in content["diagnosis"] for text in group["findings"]] == [
        own.text for own in diagnose(results, wanted, 0.9)
    ]
    assert [own["evidence"] for own in content["checklist"]] == [
        point.evidence for point in checklist(results, requirements=wanted)
    ]
    for told in [
        *(own.text for own in diagnose(results, wanted, 0.9)),
        *(own.point[1:] for own in checklist(results)),
    ]:
        assert told in page


def test_a_missing_number_has_its_reason_and_no_value():
    results = made({"lrp": good(edge_pertinence="empty"), "saliency": GOOD}, n=60)
    lines = {own.explainer: own for own in build_report(results).content["tasks"][0].lines}
    scores = {own.metric: own for own in lines["lrp"].scores}
    assert scores["edge_pertinence"].mean is None
    assert scores["edge_pertinence"].gap == "60 empty: no edge can carry a message to the target"
    assert "no value" in text_of(written(results, "html"))


def test_explainers_that_failed_as_a_whole_are_shown_with_the_fault():
    rows = made({"lrp": GOOD}, n=5).rows + tuple(
        row("broken", t, metric, None, "timeout") for t in range(5) for metric in GOOD
    )
    lines = build_report(Results(rows, Settings())).content["tasks"][0].lines
    assert lines[1].scores[0].gap == "5 timeout: the explainer gave no result within the time limit"


def test_the_settings_that_differ_from_the_papers_are_marked():
    results = made({"lrp": GOOD}, settings=Settings(cap=50))
    assert [
        own["name"] for own in build_report(results).content["settings"] if own["is_changed"]
    ] == ["cap"]


def test_tidy_names_stay_apart_and_the_rest_of_a_row_is_as_it_was():
    rows = made({"a\nb": GOOD, "a b": good(edge_ec=3)}, n=2).rows
    clean = sanitize_results(Results(rows, Settings()))
    assert list(clean.explainer.items()) == [("a b", "a\nb"), ("a b (2)", "a b")]
    assert [
        replace(new, explainer=old.explainer)
        for new, old in zip(clean.results.rows, rows, strict=True)
    ] == list(rows)


# --- worst and best -------------------------------------------------------------------------------


def test_the_worst_and_the_best_explanations_are_those_with_the_lowest_and_highest_pertinence():
    pertinence = [0.9, 0.2, 0.7, 1.0, 0.5]
    results = made(
        {"lrp": {**GOOD, "edge_pertinence": pertinence, "feature_pertinence": pertinence}}, n=5
    )
    examples = build_report(results).content["tasks"][0].examples
    assert [(own.end, own.target, own.pertinence) for own in examples] == [
        ("worst", "node 1", 0.2),
        ("worst", "node 4", 0.5),
        ("best", "node 3", 1.0),
        ("best", "node 0", 0.9),
    ]
    assert "misses the threshold of at least 0.6" in examples[0].missed[0]
    assert not any(own.pictures or own.text for own in examples)
    assert "These results came without their explanations" in text_of(written(results, "html"))


def test_results_of_this_process_have_pictures_and_sentences():
    content = shown().content
    examples = content["tasks"][0].examples
    assert [own.end for own in examples] == ["worst", "worst", "best", "best"]
    page = _REPORT_FORMATS["html"](content)
    for own in examples:
        assert {"The features that matter", "Features substituted, best first"} <= set(own.pictures)
        assert "The model predicts" in own.text
        assert own.text.split("\n")[0] in text_of(page)
    assert page.count('<div class="paper"><svg') == sum(len(own.pictures) for own in examples)
    ids = re.findall(r' id="([^"]*)"', page)
    assert len(ids) == len(set(ids))


def test_an_explanation_of_compare_is_made_again_with_the_same_scores():
    source = measured().source
    model = source.evaluator.model
    for (label, target, occurrence), made_again in source.explanations.items():
        first = gg.find_explainer(label).explain(model, list(range(10)), seed=0)[target]
        assert occurrence == 0
        assert made_again().edge_score.equal(first.edge_score)


@pytest.mark.parametrize(
    "explainer", [gg.Saliency(), gg.RandomExplainer()], ids=["saliency", "random"]
)
def test_several_explanations_are_made_again_in_one_batch_with_the_same_bits(
    explainer, monkeypatch
):
    model = measured().source.evaluator.model
    source = (
        gg.Evaluator(model, cap=3, trials=(2, 2), stability="none", timed=0)
        .compare({"own": explainer}, [3, 4, 3, 5, 3])
        .source
    )
    wanted = [(4, 0), (3, 2), (3, 0)]
    alone = [source.explanations["own", target, occurrence]() for target, occurrence in wanted]
    calls, explain = [], type(explainer).explain
    monkeypatch.setattr(
        type(explainer),
        "explain",
        lambda *args, **named: calls.append(args[2]) or explain(*args, **named),
    )
    together = source.explain_several("own", wanted)
    assert calls == [[4, 3, 3, 3]]
    for one, other, (target, occurrence) in zip(alone, together, wanted, strict=True):
        assert (
            (other.target, other.occurrence) == (one.target, one.occurrence) == (target, occurrence)
        )
        assert other.edge_score.equal(one.edge_score)
        assert other.feature_score.equal(one.feature_score)


def test_explanations_that_were_given_are_shown_themselves():
    evaluator = measured().source.evaluator
    xs = gg.Saliency().explain(evaluator.model, [3, 4, 3], seed=5)
    source = evaluator.evaluate(xs).source
    found = [
        source.explanations[key]()
        for key in (("saliency", 3, 0), ("saliency", 4, 0), ("saliency", 3, 1))
    ]
    assert all(own is x for own, x in zip(found, xs, strict=True))
    assert all(
        own is x
        for own, x in zip(
            source.explain_several("saliency", [(3, 0), (4, 0), (3, 1)]), xs, strict=True
        )
    )


def test_what_the_model_knows_of_the_task_is_used_in_verdicts():
    known = shown().content["requirements"]
    assert (known["task_kind"], known["num_features"]) == ("node_classification", 6)


# --- formats --------------------------------------------------------------------------------------


def test_json_is_valid_and_holds_the_numbers_and_no_nan():
    results = by_hand()
    with_nan = replace(
        results,
        rows=(*results.rows, row("lrp", 99, "edge_ec", math.nan, task="loans", flipped=True)),
    )

    def refuse(word):
        raise AssertionError(word)

    found = json.loads(written(with_nan, "json"), parse_constant=refuse)
    assert found["format"] == "graphgauge.report/1"
    means = {own["metric"]: own["mean"] for own in found["tasks"][0]["lines"][0]["scores"]}
    assert means["edge_ec"] is None
    assert means["edge_pertinence"] == pytest.approx(
        results.summary().loc["lrp", "edge_pertinence"]["mean"]
    )
    assert "NaN" not in written(with_nan, "html")


def test_csv_has_a_row_for_each_number():
    results = by_hand()
    rows = list(csv.DictReader(io.StringIO(written(results, "csv"))))
    assert len(rows) == 3 * 7
    table = results.summary()
    for own in rows:
        mean = table.loc[own["explainer"], own["metric"]]["mean"]
        assert float(own["mean"]) == pytest.approx(mean, abs=1e-12)
        assert own["recommended"] == ("yes" if own["explainer"] == "lrp" else "no")


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "\n=1", " =1", "＝1", "＠x", "\u2068=1\u2069"],
)
def test_texts_that_a_spreadsheet_would_run_get_an_apostrophe(text):
    assert _escape_formula(text).startswith("'")


def test_numbers_stay_numbers_in_a_spreadsheet():
    assert [_escape_formula(value) for value in (-0.5, 3, None, math.inf, "a-b")] == [
        -0.5,
        3,
        "",
        "",
        "a-b",
    ]


def test_markdown_says_the_same():
    page = written(by_hand(), "md")
    assert page.startswith(
        "# Quality of explanations\n\n**Pass.** Use lrp: it alone of 2 explainers fails no verdict."
    )
    assert "| explainer | Feature pertinence | Edge pertinence |" in page
    assert "## Before deployment" in page


def test_the_same_results_give_the_same_bytes(tmp_path):
    again = build_report(measured())
    for format in ("html", "md", "json", "csv"):
        assert (
            again.save(tmp_path / f"1.{format}").read_bytes()
            == shown().save(tmp_path / f"2.{format}").read_bytes()
        )


def test_pdf_is_made_from_the_page(tmp_path, pdf_engine):
    path = build_report(by_hand(n=4)).save(tmp_path / "report.pdf")
    assert path.read_bytes().startswith(b"%PDF-")


def test_pdf_without_its_package_names_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "weasyprint", None)
    with pytest.raises(MissingExtra, match=re.escape('pip install "graphgauge[pdf]"')):
        written(by_hand(n=2), "pdf")


def test_wrong_requests_are_refused_by_name(tmp_path):
    made_report = build_report(by_hand(n=4))
    with pytest.raises(UnknownName, match="No format of a report is called 'docx'"):
        made_report.save(tmp_path / "report.docx")
    with pytest.raises(BadFile, match="could not be written"):
        made_report.save(tmp_path / "no" / "folder" / "report.html")
    with pytest.raises(UndefinedScore, match="a report needs rows"):
        Results((), Settings()).report()
    assert repr(made_report) == "Report(Undecided: Undecided; lrp comes first)"
    assert made_report._repr_html_().startswith('<iframe sandbox="allow-scripts"')


# --- the page is safe -----------------------------------------------------------------------------


class Page(Tags):
    """Tags of a whole page: those that never close are no mistake."""

    def handle_starttag(self, tag, attrs):
        if tag in ("meta", "wbr"):
            self.handle_startendtag(tag, attrs)
        else:
            super().handle_starttag(tag, attrs)


def check_page(html):
    """Nothing from outside, one script and its data, every tag closed."""
    page = Page(html)
    assert page.seen.isdisjoint(
        {"img", "link", "iframe", "object", "base", "form", "input", "a:script"}
    )
    assert html.count("<script") == 2
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    addresses = [
        value for name, value in page.attributes if name in ("href", "xlink:href", "src", "action")
    ]
    assert all(value.startswith("#") for value in addresses)
    assert re.findall(r"url\((?!#)", html) == []
    return page


def test_the_page_asks_for_nothing_and_closes_every_tag():
    check_page(_REPORT_FORMATS["html"](shown().content))
    check_page(written(several(["one", "two"]), "html"))


def hostile_explainers(names):
    """Names as explainers of one task."""
    return made({name: good(edge_ec=3 + k) for k, name in enumerate(names)}, n=2)


def hostile_tasks(names):
    """Names as tasks and networks."""
    parts = [
        made({"lrp": {"edge_pertinence": 0.8, "edge_ec": 3}}, n=1, task=name, model=name)
        for name in names
    ]
    return Results(tuple(own for part in parts for own in part.rows), Settings())


@pytest.mark.parametrize("start", [0, 20, 40])
@pytest.mark.parametrize("results", [hostile_explainers, hostile_tasks])
def test_hostile_names_break_no_format(results, start):
    names = HOSTILE[start : start + 20]
    content = build_report(results(names), title="".join(names)).content
    words = check_page(_REPORT_FORMATS["html"](content)).words
    assert [name for name in tidy_names(names).values() if name not in words] == []
    json.loads(_REPORT_FORMATS["json"](content))
    rows = list(csv.reader(io.StringIO(_REPORT_FORMATS["csv"](content))))
    assert {len(own) for own in rows} == {12}
    assert [
        cell
        for own in rows
        for cell in own
        if cell[:1] in tuple("=+-@\t\r") and not is_number(cell)
    ] == []
    lines = _REPORT_FORMATS["md"](content).splitlines()
    assert [line for line in lines if "<" in line] == []
    widths = {len(re.findall(r"(?<!\\)\|", line)) for line in lines if line.startswith("| ")}
    assert widths <= {3, 4, 9, 5}


def is_number(text):
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_folder_is_named_and_breaks_nothing(name):
    folder = Path("runs") / (name.replace("/", "").replace("\x00", "") or "x")[:200]
    told = provenance_facts(by_hand(n=1), folder)["folder"]
    assert told == tidy_text(folder.name)
    assert "\n" not in told


def test_a_report_can_be_written_under_any_name_the_file_system_takes(tmp_path):
    made_report = build_report(by_hand(n=2))
    for name in HOSTILE:
        usable = (
            name.encode("utf-8", "replace").decode().replace("/", "_").replace("\x00", "")[:100]
        )
        assert (
            made_report.save(tmp_path / f"{usable}.html")
            .read_bytes()
            .startswith(b"<!DOCTYPE html>")
        )


# --- the command ----------------------------------------------------------------------------------


def call(*arguments):
    return CliRunner().invoke(app, ["report", *map(str, arguments)])


def test_the_command_writes_beside_the_run_and_says_where(tmp_path):
    by_hand(n=5).save(tmp_path / "run")
    done = call(tmp_path / "run", "--features", 200, "--accuracy", 0.8, "--title", "Loans & more")
    assert (done.exit_code, done.stdout.strip()) == (0, str(tmp_path / "run" / "report.html"))
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "<h1>Loans &amp; more</h1>" in page
    assert "The accuracy (or r²) of the model" not in page
    assert "10% of 200 features" in page


def write_run(folder, results):
    """A benchmark run with these results, one shard of two finished."""
    rows = [own.record() for own in results.rows]
    shared = {name: rows[0][name] for name in ("task", "model", "seed", "settings", "version")}
    kept = [
        {
            name: value
            for name, value in own.items()
            if name not in shared and (value is not None or name == "seconds")
        }
        for own in rows
    ]
    with open_for_writing(folder) as store:
        config = {"name": "<b>mine</b>", "settings": results.settings.record()}
        store.append("run", "run", {"config": config, "plan": [{"key": "a"}, {"key": "b"}]})
        store.append_numbered(
            "session",
            {"engine": "inline", "versions": {"torch": "2.13.0"}, "machine": {"device": "cpu"}},
        )
        store.append("shard", "a", shared, kept)


def test_provenance_of_saved_results_tells_versions_and_how_the_network_was_treated(tmp_path):
    made = {"versions": {"torch": "2.13.0"}, "device": "cpu", "network": {"hops": 2, "halo": "in"}}
    replace(by_hand(n=1), made=made).save(tmp_path / "run")
    told = provenance_facts(gg.Results.load(tmp_path / "run"), tmp_path / "run")
    assert (told["versions"], told["device"], told["network: hops"], told["network: halo"]) == (
        "torch: 2.13.0",
        "cpu",
        "2",
        "in",
    )


def test_the_report_of_a_benchmark_tells_its_calls_and_whether_it_is_finished(tmp_path):
    write_run(tmp_path / "run", by_hand(n=5))
    done = call(tmp_path / "run")
    assert done.exit_code == 0
    page = text_of((tmp_path / "run" / "report.html").read_text(encoding="utf-8"))
    for told in (
        "folderrun",
        "experiment<b>mine</b>",
        "shards1 of 2 finished",
        "engine: inline; versions: torch: 2.13.0; machine: device: cpu",
    ):
        assert told in page
    assert (
        text_of(written(by_hand(n=5), "html")).split("Settings and provenance")[0]
        == page.split("Settings and provenance")[0]
    )


@pytest.mark.parametrize("format", ["md", "json", "csv"])
def test_the_format_is_the_suffix_or_what_is_asked_for(tmp_path, format):
    by_hand(n=5).save(tmp_path / "run")
    assert call(tmp_path / "run", "--output", tmp_path / f"a.{format}").exit_code == 0
    assert call(tmp_path / "run", "--format", format).exit_code == 0
    assert call(tmp_path / "run", "--output", tmp_path / "b", "--format", format).exit_code == 0
    texts = [
        path.read_bytes()
        for path in (
            tmp_path / f"a.{format}",
            tmp_path / "run" / f"report.{format}",
            tmp_path / "b",
        )
    ]
    assert len(set(texts)) == 1


def test_a_path_in_the_place_of_requirements_is_told_where_it_belongs():
    with pytest.raises(BadSetting, match=r"results.report\(\).save\(path\)"):
        made({"a": good()}).report("report.html")
