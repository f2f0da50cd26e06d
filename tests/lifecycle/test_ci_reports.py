"""The gate: JUnit, annotations, exit codes, and thresholds from a decision."""

import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.chosen_results import GOOD, good
from support.chosen_results import run as made
from support.decisions import decision
from typer.testing import CliRunner

from graphgauge.cli.main import app, main
from graphgauge.core.verdicts import Verdict
from graphgauge.guidelines import CheckAnswer, Requirements, check
from graphgauge.lifecycle import format_annotations, format_junit
from graphgauge.lifecycle.digests import digest_of_results

WANTED = Requirements("node_classification", num_features=200)
LATER = "2999-01-01T00:00:00+00:00"
#: what the made decision was measured on
IDENTITY = {"task": "node_classification", "network": "network-digest", "data": "data-digest"}
MIXED = good(edge_pertinence=0.4, edge_stability="nan_attribution", time=0.02)


def suites(found):
    return ElementTree.fromstring(format_junit(found).encode())


def counts(element):
    return [int(element.get(name)) for name in ("tests", "failures", "errors", "skipped")]


def test_each_number_is_a_case_with_its_outcome():
    root = suites(check(made({"lrp": MIXED}), WANTED))
    assert counts(root) == counts(root[0]) == [7, 1, 1, 1]
    found = {case.get("name"): [child.tag for child in case] for case in root.iter("testcase")}
    assert found == {
        "feature_pertinence": [],
        "edge_pertinence": ["failure"],
        "feature_ec": [],
        "edge_ec": ["skipped"],  # no threshold is prescribed
        "feature_stability": [],
        "edge_stability": ["error"],
        "time": [],
    }
    failure = next(root.iter("failure"))
    assert failure.get("message").startswith("Edge pertinence 0.4 (mean of 100 targets)")


def test_a_doubtful_number_passes_and_says_why():
    root = suites(check(made({"lrp": GOOD}, n=10), WANTED))
    assert counts(root)[1:3] == [0, 0]
    assert "10 targets are few" in next(root.iter("system-out")).text


def test_an_incomplete_check_without_a_gap_is_an_error_of_its_own():
    found = CheckAnswer(3, (), "0 of 0 numbers could not be judged")
    assert counts(suites(found)) == [1, 0, 1, 0]
    assert format_annotations(found) == [
        "::error title=graphgauge::0 of 0 numbers could not be judged"
    ]


@pytest.mark.parametrize(
    ("numbers", "code"),
    [(GOOD, 0), (good(edge_pertinence=0.4), 1), (good(edge_stability="nan_attribution"), 3)],
)
def test_junit_is_red_exactly_when_the_exit_code_is_not_0(numbers, code):
    found = check(made({"lrp": numbers}), WANTED)
    _, failures, errors, _ = counts(suites(found))
    assert found.code == code
    assert (failures + errors > 0) == (code != 0)
    assert any(line.startswith("::error") for line in format_annotations(found)) == (code != 0)


def test_annotations_tell_failures_gaps_and_doubts():
    lines = format_annotations(
        check(
            made({"lrp": {**MIXED, "time": 0.2}}),
            Requirements("node_classification", "high-stakes", "interactive", 200),
        )
    )
    levels = {line.split("::")[1].split(" title=")[1]: line.split()[0] for line in lines}
    assert levels == {
        "lrp edge_pertinence": "::error",
        "lrp edge_stability": "::error",
        "lrp time": "::warning",
    }


@given(st.text(), st.text(), st.text())
def test_names_can_hold_anything(explainer, task, reason):
    found = CheckAnswer(
        1,
        (
            Verdict("fail", "time", reason, 1.0, 0.5, explainer, task=task),
            Verdict("warn", "time", reason),
        ),
        reason,
    )
    assert counts(suites(found))[:2] == [2, 1]
    lines = format_annotations(found)
    assert [line.partition(" ")[0] for line in lines] == ["::error", "::warning"]
    assert not any(sign in line for line in lines for sign in "\r\n")
    assert all(
        line.count("title=") >= 1 and "::" not in line[2:].partition("::")[0] for line in lines
    )


# --- on the command line --------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def folder(tmp_path):
    results = made({"lrp": good(edge_ec=6.0), "saliency": good(edge_pertinence=0.1)})
    replace(results, made={"identity": IDENTITY}).save(tmp_path / "run")
    return tmp_path


def test_a_decision_brings_thresholds_and_explainer(folder):
    decision(
        requirements=Requirements(
            "node_classification", num_features=200, limits={"edge_ec": 5.0}
        ).record()
    ).write(folder / "strict.json")
    decision(requirements=WANTED.record(), expires=LATER).write(folder / "mild.json")
    strict = run("check", str(folder / "run"), "--decision", str(folder / "strict.json"))
    assert strict.exit_code == 1
    assert "Edge effective compactness 6" in strict.stdout
    assert "saliency" not in strict.stdout
    assert run("check", str(folder / "run"), "--decision", str(folder / "mild.json")).exit_code == 0
    # saliency counts without the decision
    assert run("check", str(folder / "run"), "--features", "200").exit_code == 1


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"signed_by": "", "expires": LATER}, "nobody has signed the decision"),
        ({"expires": "2026-01-01T00:00:00+00:00"}, "the decision held until 2026-01-01"),
    ],
)
def test_a_decision_that_nobody_answers_for_opens_no_gate(folder, changed, told):
    decision(requirements=WANTED.record(), **changed).write(folder / "d.json")
    done = run(
        "check",
        str(folder / "run"),
        "--decision",
        str(folder / "d.json"),
        "--junit",
        str(folder / "j.xml"),
    )
    assert done.exit_code == 3
    assert told in done.stdout.splitlines()[-1]
    root = ElementTree.parse(folder / "j.xml").getroot()
    assert (root.get("failures"), root.get("errors")) == ("0", "1")
    assert told in root.find(".//testcase[@name='complete']/error").get("message")


@pytest.mark.parametrize(
    ("kind", "identity"),
    [
        ("network", {**IDENTITY, "network": "retrained"}),
        ("data", {**IDENTITY, "data": "moved"}),
        ("task", {"task": "link_classification", "network": "of links", "data": "of links"}),
    ],
)
def test_a_run_of_another_network_task_or_data_is_refused_by_name_however_good_its_numbers(
    folder, kind, identity
):
    decision(requirements=WANTED.record(), expires=LATER).write(folder / "d.json")
    options = ("--decision", str(folder / "d.json"), "--junit", str(folder / "j.xml"))
    assert run("check", str(folder / "run"), *options).exit_code == 0
    replace(made({"lrp": GOOD}), made={"identity": identity}).save(folder / "run")
    done = run("check", str(folder / "run"), *options)
    told = f"refused: the run is of another {kind} than the decision: {identity[kind]}, not "
    assert (done.exit_code, done.stdout.splitlines()[-1].startswith(told)) == (2, True)
    root = ElementTree.parse(folder / "j.xml").getroot()
    assert (root.get("failures"), root.get("errors")) == ("0", "1")
    assert run("check", str(folder / "run"), *options, "--other-data").exit_code == (
        0 if kind == "data" else 2
    )


def test_a_run_that_does_not_say_what_it_measured_is_incomplete_unless_it_is_the_decisions_own(
    folder,
):
    own = made({"lrp": GOOD})
    own.save(folder / "run")
    decision(requirements=WANTED.record(), expires=LATER).write(folder / "d.json")
    done = run("check", str(folder / "run"), "--decision", str(folder / "d.json"))
    assert done.exit_code == 3
    assert "does not say which network and data it measured" in done.stdout
    decision(requirements=WANTED.record(), expires=LATER, rows=digest_of_results(own)).write(
        folder / "d.json"
    )
    assert run("check", str(folder / "run"), "--decision", str(folder / "d.json")).exit_code == 0


def test_the_folder_of_a_validation_is_judged_by_its_decision(folder):
    decision(requirements=WANTED.record()).write(folder / "run" / "decision.json")
    found = json.loads(run("check", str(folder / "run"), "--json").stdout)
    assert found["requirements"] == WANTED.record()


def test_junit_and_annotations_leave_stdout_to_the_answer(folder):
    plain = run("check", str(folder / "run"), "--features", "200")
    done = run(
        "check",
        str(folder / "run"),
        "--features",
        "200",
        "--junit",
        str(folder / "j.xml"),
        "--annotations",
    )
    assert (done.exit_code, done.stdout) == (1, plain.stdout)
    assert done.stderr.startswith("::error title=saliency edge_pertinence::Edge pertinence 0.1")
    assert counts(ElementTree.parse(folder / "j.xml").getroot())[:2] == [14, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--junit", "no/such/folder/j.xml"], "could not be written"),
        (["--decision", "no.json"], "holds no decision"),
        (["--decision", "{}/edited.json"], "was edited"),
        (["--decision", "{}/fine.json", "--features", "3"], "leave --explainer"),
        (["--decision", "{}/other.json"], "no explainer 'graphmask'"),
    ],
)
def test_mistakes_are_code_2(folder, arguments, message, monkeypatch, capsys):
    decision().write(folder / "fine.json")
    decision(label="graphmask").write(folder / "other.json")
    (folder / "edited.json").write_text(
        (folder / "fine.json").read_text().replace('"lrp"', '"saliency"')
    )
    monkeypatch.setattr(
        "sys.argv",
        ["graphgauge", "check", str(folder / "run"), *(text.format(folder) for text in arguments)],
    )
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert message in capsys.readouterr().err
