"""The documents: their numbers are the run's, names are harmless, and nothing is claimed that
nobody stated.
"""

import hashlib
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from support.chosen_results import GOOD, good
from support.chosen_results import run as made
from support.decisions import decision
from support.monitoring_histories import drop, made_monitor
from typer.testing import CliRunner

from graphgauge.cli.main import app, main
from graphgauge.core.errors import BadFile, BadSetting
from graphgauge.guidelines import Requirements
from graphgauge.lifecycle import Owner, write_documents
from graphgauge.lifecycle.digests import digest_of_results
from graphgauge.lifecycle.documents import _DOCUMENT_NAMES
from graphgauge.lifecycle.markdown import _escape_value, safe_markdown_table
from graphgauge.lifecycle.shortlist import PROJECT_LIST

EDGE_EC = [3.0, 4.0, 8.5, 2.0] * 25
NUMBERS = {
    "lrp": good(edge_ec=EDGE_EC, feature_pertinence=0.7125),
    "random": good(edge_pertinence=0.4375, feature_pertinence=0.5, feature_ec=9),
}
WANTED = Requirements("node_classification", num_features=200)
CLAIMS = (
    r"(?i)conform|complian|complies|high[- ]risk|low[- ]risk|minimal[- "
    r"]risk|certif|approved|regulator"
)


@pytest.fixture
def run(tmp_path):
    made(NUMBERS).save(tmp_path / "run")
    return tmp_path / "run"


def texts(paths):
    return {path.stem: path.read_text(encoding="utf-8") for path in paths}


def cells(text, heading):
    """The rows of the first table whose heading begins so, as lists of cells."""
    lines = text[text.index(f"| {heading}") :].split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


def test_every_document_is_written(run, tmp_path):
    paths = write_documents(run, tmp_path / "out", requirements=WANTED)
    assert [path.name for path in paths] == [f"{name}.md" for name in _DOCUMENT_NAMES]
    assert all(text.strip() for text in texts(paths).values())


@pytest.mark.parametrize("name", ["model_card", "explainability", "annex_iv"])
def test_the_numbers_are_those_of_the_rows(run, tmp_path, name):
    text = texts(write_documents(run, tmp_path / "out", requirements=WANTED))[name]
    found = {row[0]: row[1:3] for row in cells(text, "number | mean")}
    expected = {
        "Feature pertinence": ["0.7125", "100"],
        "Edge pertinence": ["0.85", "100"],
        "Feature effective compactness": ["5", "100"],
        "Edge effective compactness": [f"{sum(EDGE_EC) / 100:.4g}", "100"],
        "Feature stability": ["1", "100"],
        "Edge stability": ["1", "100"],
        "Time": ["0.02 s", "100"],
    }
    assert found == expected


def test_every_explainer_stands_in_the_comparison_with_its_own_means(run, tmp_path):
    text = texts(write_documents(run, tmp_path / "out", requirements=WANTED))["explainability"]
    rows = {row[0]: row[1:] for row in cells(text, "explainer | Feature pertinence")}
    assert rows["lrp"] == ["0.7125", "0.85", "5", "4.375", "1", "1", "0.02 s"]
    assert rows["random"] == ["0.5", "0.4375", "9", "8", "1", "1", "0.02 s"]


def test_every_decimal_number_of_the_plan_is_in_the_run_or_its_thresholds(run, tmp_path):
    text = texts(write_documents(run, tmp_path / "out", requirements=WANTED))["monitoring_plan"]
    found = {
        number
        for row in cells(text, "number | at validation")
        for cell in row[1:3]
        for number in re.findall(r"\d+\.?\d*", cell)
    }
    measured = {"0.7125", "0.85", "5", "4.375", "1", "0.02"}
    thresholds = {"0.6", "0.8", "20"}  # 20: 10 % of 200 features; 5 s for time
    assert found == measured | thresholds


def test_front_matter_is_yaml_with_the_numbers(run, tmp_path):
    import yaml

    text = texts(write_documents(run, tmp_path / "out", requirements=WANTED))["model_card"]
    content = yaml.safe_load(text.split("---")[1])
    assert content["explainer"] == "lrp"
    assert content["explanation_quality"]["edge_ec"] == {"mean": pytest.approx(4.375), "n": 100}


def test_the_checklist_has_eight_points_with_their_evidence(run, tmp_path):
    (tmp_path / "readers.pdf").write_text("they understood")
    owner = Owner(evidence={"translation": str(tmp_path / "readers.pdf")})
    decision(requirements=WANTED.record()).write(run / "decision.json")
    text = texts(
        write_documents(run, tmp_path / "out", decision(requirements=WANTED.record()), owner)
    )["checklist"]
    points = re.findall(r"^- \[(.)\] (.*?)\. Evidence: (.*)$", text, re.M)
    assert [mark for mark, _, _ in points] == ["x", "x", "x", "x", "x", " ", " ", " "]
    assert [links for _, _, links in points] == [
        "[decision.json](../run/decision.json)",
        "[rows.csv](../run/rows.csv)",
        "[rows.csv](../run/rows.csv)",
        "-",
        "[readers.pdf](../readers.pdf)",
        "-",
        "-",
        "-",
    ]


@pytest.mark.parametrize(
    ("source", "mark"), [("the paper's own table", "x"), (PROJECT_LIST, " "), (None, " ")]
)
def test_an_explainer_that_was_compared_with_none_was_chosen_only_if_a_benchmark_was_asked(
    run, tmp_path, source, mark
):
    listed = {"names": ["lrp"], "source": source} if source else {}
    own = decision(requirements=WANTED.record(), consultation=listed)
    text = texts(write_documents(run, tmp_path / "out", own))["checklist"]
    assert f"- [{mark}] the explainer was chosen with a benchmark at hand" in text


def test_a_monitoring_store_fills_the_plan_and_the_checklist(run, tmp_path):
    store = tmp_path / "m.sqlite"
    made_monitor(store, 4, change=drop("edge_ec", 40, 4))
    found = texts(
        write_documents(run, tmp_path / "out", owner=Owner(monitor=str(store)), requirements=WANTED)
    )
    plan = found["monitoring_plan"]
    assert "How often: every 7 days so far (4 runs)" in plan
    assert "Targets per run: 50, drawn at random; the baseline has 150" in plan
    assert (
        "So far: 4 runs since the baseline of 2026-01-05, the last on 2026-02-02; 1 trigger "
        "waiting."
    ) in plan
    done = [
        line
        for line in found["checklist"].splitlines()
        if line.startswith("- [x]") and "(../m.sqlite)" in line
    ]
    assert [line.partition(" (done)")[0][6:] for line in done] == [
        "a dashboard follows the metrics",
        "what triggers a new validation, and how often, is written down",
    ]
    assert "at most 1 % of histories of 26 runs; again after 180 days at the latest" in done[1]


def test_a_store_without_runs_claims_no_monitoring(run, tmp_path):
    made_monitor(tmp_path / "m.sqlite")
    found = texts(
        write_documents(
            run,
            tmp_path / "out",
            owner=Owner(monitor=str(tmp_path / "m.sqlite")),
            requirements=WANTED,
        )
    )
    assert "- [ ] a dashboard follows the metrics" in found["checklist"]
    assert "How often: TODO(owner)" in found["monitoring_plan"]


def test_the_audit_trail_lists_every_file_with_its_sha256(run, tmp_path):
    made_by = decision(requirements=WANTED.record(), rows=digest_of_results(made(NUMBERS)))
    made_by.write(run / "decision.json")
    text = texts(write_documents(run, run / "documents", made_by))["audit_trail"]
    found = {re.search(r"\[(.*?)\]", row[0])[1]: row[1:] for row in cells(text, "file | bytes")}
    files = {path.name: path for path in run.iterdir() if path.is_file()}
    assert found == {
        name: [str(path.stat().st_size), hashlib.sha256(path.read_bytes()).hexdigest()]
        for name, path in files.items()
    }
    assert "their digests agree" in text
    assert made_by.digest in text


def test_a_digest_of_results_survives_saving_and_sees_a_changed_number(run):
    from graphgauge.evaluation import Results

    assert digest_of_results(Results.load(run)) == digest_of_results(made(NUMBERS))
    assert digest_of_results(
        made({**NUMBERS, "lrp": good(edge_ec=EDGE_EC[::-1])})
    ) != digest_of_results(made(NUMBERS))


def test_rows_of_another_run_are_told(run, tmp_path):
    text = texts(write_documents(run, tmp_path / "out", decision(requirements=WANTED.record())))[
        "annex_iv"
    ]
    assert "others than those that the decision was made by" in text


def test_what_nobody_stated_is_left_to_the_owner_and_nothing_is_claimed(run, tmp_path):
    bare = texts(write_documents(run, tmp_path / "bare", requirements=WANTED))
    assert "Classification, as stated by the owner: TODO(owner): classification" in bare["annex_iv"]
    assert {name: text.count("TODO(owner)") > 0 for name, text in bare.items()} == {
        **dict.fromkeys(_DOCUMENT_NAMES, True),
        "checklist": False,
    }
    for text in bare.values():
        assert (
            re.findall(CLAIMS, text.replace("documents for the regulator are ready (open)", ""))
            == []
        )


def test_what_the_owner_states_is_printed_as_the_owners(run, tmp_path):
    owner = Owner(
        "Sentinel 3", "risk@bank.example", "high-risk by our own reading", "/var/log/answers.sqlite"
    )
    found = texts(
        write_documents(run, tmp_path / "out", decision(requirements=WANTED.record()), owner)
    )
    assert (
        "Classification, as stated by the owner: high-risk by our own reading" in found["annex_iv"]
    )
    assert "Log of answers: /var/log/answers.sqlite" in found["monitoring_plan"]
    claims = [claim for text in found.values() for claim in re.findall(CLAIMS, text)]
    # the owner's own, and the name of a point of the checklist
    assert sorted(claims) == ["high-risk", "regulator"]
    assert "- [ ] documents for the regulator are ready (open)" in found["checklist"]
    assert "signed by | Ada, 2026-11-15T12:00:00+00:00" in found["explainability"]


HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "a | b",
    "x\n\n# Approved\n",
    "[click](javascript:alert(1))",
    "![x](http://evil.example/x.png)",
    "{{ 7 * 7 }}{% raw %}",
    "`code`**bold**",
    "</td></table><script>",
    "\u202egnp.exe",
    "\x00\x1b[31m",
    "http://evil.example",
    "---\nkey: value",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_text_in_every_document(tmp_path, name):
    made({name: GOOD, "random": good(edge_pertinence=0.4)}).save(tmp_path / "run")
    owner = Owner(name, name, name, name)
    record = decision(
        label=name, reason=name, warnings=(name,), signed_by=name, requirements=WANTED.record()
    )
    plain = decision(
        label="plain",
        reason="plain",
        warnings=("plain",),
        signed_by="plain",
        requirements=WANTED.record(),
    )
    found = texts(write_documents(tmp_path / "run", tmp_path / "out", record, owner))
    made({"plain": GOOD, "random": good(edge_pertinence=0.4)}).save(tmp_path / "run")
    usual = texts(write_documents(tmp_path / "run", tmp_path / "out", plain, Owner(*["plain"] * 4)))
    for document, text in found.items():
        body = text.split("\n---\n", 1)[1] if document == "model_card" else text
        other = (
            usual[document].split("\n---\n", 1)[1] if document == "model_card" else usual[document]
        )
        assert not re.search(r"[\x00\x1b\u202e]|http://evil", body)
        assert structure(body) == structure(other)


def structure(text):
    """Every tag of the page that a Markdown reader makes (raw HTML allowed), with the addresses of
    links.
    """
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    return re.findall(r"<[^>]*>", page)


@given(st.text())
def test_any_text_is_one_cell_of_one_line(text):
    found = safe_markdown_table(["a", "b"], [[text, text]])
    assert len(found.splitlines()) == 3
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", found.splitlines()[2])) == 3
    assert not re.search("[<>]", _escape_value(text))


def test_without_a_decision_beside_the_run_the_recommendation_is_documented(run, tmp_path):
    text = texts(write_documents(run, tmp_path / "out", requirements=WANTED))["explainability"]
    assert "TODO(owner): validate and sign" in text
    assert "by the method **lrp**" in text


# --- on the command line --------------------------------------------------------------------------


def test_the_command_takes_the_decision_beside_the_run(run, tmp_path):
    decision(requirements=WANTED.record()).write(run / "decision.json")
    done = CliRunner().invoke(
        app, ["documents", str(run), "--output", str(tmp_path / "out"), "--json"]
    )
    assert done.exit_code == 0, done.output
    assert len(json.loads(done.stdout)) == 6
    assert "Ada" in (tmp_path / "out" / "audit_trail.md").read_text()
    plain = CliRunner().invoke(
        app, ["documents", str(run), "--output", str(tmp_path / "out"), "--system", "S"]
    )
    assert re.search(r"\d+ places are marked TODO\(owner\)$", plain.stdout.strip())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no/run", "--output", "{}/out"], "no/run holds no results"),
        (["{}/run", "--output", "{}/file"], "could not be written"),
        (["{}/run", "--output", "{}/out", "--decision", "{}/none.json"], "holds no decision"),
        (
            ["{}/run", "--output", "{}/out", "--evidence", "monitoring"],
            "evidence is given as POINT=FILE",
        ),
        (["{}/run", "--output", "{}/out", "--evidence", "dinner=x"], "evidence names 'dinner'"),
    ],
)
def test_mistakes_are_code_2(run, tmp_path, arguments, message, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(
        "sys.argv", ["graphgauge", "documents", *(text.format(tmp_path) for text in arguments)]
    )
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_evidence_that_is_not_there_is_told(run, tmp_path):
    (tmp_path / "plan.pdf").write_text("")
    given = [f"translation={tmp_path / 'nope.pdf'}", f"monitoring={tmp_path / 'plan.pdf'}"]
    words = [
        "documents",
        str(run),
        "--output",
        str(tmp_path / "out"),
        *(word for text in given for word in ("--evidence", text)),
    ]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0
    notes = [line for line in done.stderr.splitlines() if "evidence" in line]
    assert notes == [
        (
            f"graphgauge: note: {tmp_path / 'nope.pdf'} is named as evidence for translation, but "
            "there is no such file."
        )
    ]


def test_errors_are_ours(run, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadFile, match="could not be written"):
        write_documents(run, tmp_path / "file", requirements=WANTED)
    with pytest.raises(BadSetting, match="evidence names"):
        write_documents(run, tmp_path / "out", owner=Owner(evidence={"x": "y"}))
