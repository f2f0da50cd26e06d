"""`init`, `doctor`, `evaluate` and `explain` on a model of one's own."""

import json
import os
import signal
from pathlib import Path

import pytest
from support.user_networks import write_project
from typer.testing import CliRunner

import graphgauge
from graphgauge.cli.evaluate import _default_run_folder
from graphgauge.cli.explain import _draw_for_audience
from graphgauge.cli.main import app, main
from graphgauge.core.errors import BadModel
from graphgauge.core.xplanation import Xplanation
from graphgauge.evaluation import Evaluator, Results
from graphgauge.evaluation.phases import EvaluationPhases
from graphgauge.lifecycle import Project, explain_one

QUICK = {
    "settings": {
        "trials": [4, 4],
        "early_stop": "none",
        "twin_trials": 4,
        "permutations": 2,
        "timed": 1,
    },
    "targets": [1, 2, 8],
}
LEARNED = {"name": "gnn_explainer", "parameters": {"epochs": 3}}
EASY = {
    "feature_pertinence": 0,
    "edge_pertinence": 0,
    "feature_ec": 99,
    "feature_stability": 0,
    "edge_stability": 0,
    "time": 99,
}
HARD = {**EASY, "edge_pertinence": 1.5}


def run(*arguments):
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Writes a project that is measured in no time; commands run in its folder."""
    monkeypatch.chdir(tmp_path)
    return lambda **changes: str(
        write_project(tmp_path, **{**QUICK, "thresholds": EASY, **changes})
    )


# --- evaluate -------------------------------------------------------------------------------------


def test_evaluate_ends_with_a_verdict_and_saves_what_the_library_finds(project):
    path = project(name="loans")
    done = run("evaluate", path, "--output", "out")
    assert done.exit_code == 3  # three targets decide nothing
    assert done.stderr.splitlines() == [
        "model: NodeClassificationModel(NodeNet, 12 nodes, 33 edges) on cpu",
        "measuring saliency, random on 3 node targets",
        "saved in out",
    ]
    lines = done.stdout.splitlines()
    assert lines[0].split()[:3] == ["metric", "feature_stability", "edge_stability"]
    assert [line.split()[0] for line in lines[2:4]] == ["saliency", "random"]
    assert "Recommended for loans: saliency (from your own results)" in lines
    said = (
        "incomplete: saliency, 5 of 7 are undecided, for fewer than 10 targets decide nothing. "
        "The run is in out;"
    )
    assert lines[-1].startswith(said)
    own = Project.read(path)
    expected = own.evaluator().compare(own.explainers(), [1, 2, 8])
    found = Results.load("out").to_pandas()
    kept = ["explainer", "target", "metric", "value", "status"]
    same = ~found["metric"].str.startswith("time")
    assert found[same][kept].equals(expected.to_pandas()[same][kept])


def test_the_run_says_what_it_is_of(project, tmp_path):
    import hashlib

    run("evaluate", project(), "--output", "out")
    record = json.loads((tmp_path / "out" / "project.json").read_text())
    assert (
        record["sha256"]["weights"]
        == hashlib.sha256((tmp_path / "w.safetensors").read_bytes()).hexdigest()
    )
    assert record["project"]["model"] == "support.user_networks:NodeNet"
    assert (record["requirements"]["num_features"], record["versions"]["graphgauge"]) == (
        3,
        graphgauge.__version__,
    )


@pytest.mark.parametrize(
    ("level", "task", "targets", "target"),
    [("link", "regression", [[0, 5], [3, 7]], "0,5"), ("graph", "classification", [0, 3], "3")],
)
def test_links_and_graphs_are_evaluated_and_told_alike(project, level, task, targets, target):
    path = project(
        level=level,
        task=task,
        targets=targets,
        thresholds={**EASY, "feature_ec": 999},
        settings={**QUICK["settings"], "cap": 5},
    )
    done = run("evaluate", path, "--output", "out", "-q", "--json")
    rows = Results.load("out").rows
    assert {row.target for row in rows} == {
        tuple(own) if level == "link" else own for own in targets
    }
    assert json.loads(done.stdout)["requirements"]["task_kind"] == f"{level}_{task}"
    assert done.exit_code == json.loads(run("check", "out", "--json").stdout)["code"]
    told = run("explain", path, "--target", target, "--no-measure", "--picture", "x.svg")
    single = explain_one(
        Project.read(path), tuple(targets[0]) if level == "link" else 3, measured=False
    )
    assert (told.exit_code, told.stdout) == (0, single.text() + "\n")


def test_check_judges_a_saved_run_by_what_the_project_asked(project, tmp_path, monkeypatch, capsys):
    run("evaluate", project(thresholds=HARD, use={"focus": "edge"}), "--output", "out", "-q")
    found = json.loads(run("check", "out", "--json").stdout)
    assert (found["code"], found["requirements"]["limits"], found["requirements"]["focus"]) == (
        1,
        HARD,
        "edge",
    )
    other = json.loads(run("check", "out", "--focus", "feature", "--json").stdout)
    assert (other["code"], other["requirements"]["focus"]) == (3, "feature")
    # of three targets; the time passes
    assert {own["outcome"] for own in other["verdicts"]} == {"undecided", "pass"}
    (tmp_path / "out" / "project.json").write_text("{}")
    monkeypatch.setattr("sys.argv", ["graphgauge", "check", "out"])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    assert "does not say what the run was judged by" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("loans", "loans"),
        ("../up", "up"),
        ("a b/c", "a-b-c"),
        ("...", "graphgauge"),
        ("", "project"),
        ("früh", "früh"),
    ],
)
def test_a_run_goes_to_a_folder_of_its_name_and_never_elsewhere(project, name, folder):
    path = project(name=name)
    assert _default_run_folder(Project.read(path), path) == Path("runs") / folder


def test_a_missed_threshold_is_code_1(project):
    done = run("evaluate", project(thresholds=HARD), "--quiet")
    assert (done.exit_code, done.stderr) == (1, "")
    assert "below threshold: saliency, 1 of 7 numbers miss their threshold." in done.stdout
    assert "1 fail, 1 not applicable (edge_pertinence)" in done.stdout


def test_the_answer_is_that_of_the_recommended_explainer(project):
    # a learned mask is never exactly twice the same
    limits = {**EASY, "feature_stability": 1, "edge_stability": 1}
    done = run(
        "evaluate", project(explainers=[LEARNED, "saliency"], thresholds=limits), "--json", "-q"
    )
    found = json.loads(done.stdout)
    assert (done.exit_code, found["recommendation"]["chosen"]) == (3, "saliency")
    assert {own["explainer"] for own in found["verdicts"] if own["outcome"] == "fail"} == {
        "gnn_explainer"
    }


def test_an_explainer_that_cannot_be_run_is_left_out_and_the_answer_incomplete(project):
    path = project(model="support.user_networks:OddNet", explainers=["saliency", "lrp", "random"])
    done = run("evaluate", path)
    assert done.exit_code == 3
    assert "lrp is left out: LRP has no rule for" in done.stderr
    assert (
        "incomplete: saliency, 5 of 7 are undecided, for fewer than 10 targets decide "
        "nothing, but lrp could not"
    ) in done.stdout
    with pytest.raises(BadModel, match="no explainer can be run on this network"):
        run(
            "evaluate",
            project(model="support.user_networks:OddNet", explainers=["lrp"]),
            "--replace",
        )


def test_the_doctor_tries_every_explainer(project):
    done = run(
        "doctor", project(model="support.user_networks:OddNet", explainers=["saliency", "lrp"])
    )
    assert done.exit_code == 1
    assert "  broken  explainers  saliency, not lrp: LRP has no rule for Odd." in done.stdout


def test_nothing_but_the_baseline_is_incomplete(project):
    done = run("evaluate", project(explainers=["random"]), "--json")
    found = json.loads(done.stdout)
    assert (done.exit_code, found["answer"], found["recommendation"]) == (3, "incomplete", None)
    assert "no explainer of task '' has a value" in found["reason"]


def test_ctrl_c_is_incomplete(project, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    path = project()
    monkeypatch.setattr(Evaluator, "compare", interrupted)
    done = run("evaluate", path)
    assert (done.exit_code, done.stdout) == (3, "")
    assert done.stderr.splitlines()[-1] == (
        "stopped: no finished step in runs/project/unfinished. The same command continues."
    )


def test_a_stopped_evaluation_continues_with_the_same_numbers(project, monkeypatch, tmp_path):
    path = project(explainers=["saliency", LEARNED])
    run("evaluate", path, "--output", "whole")
    measure = EvaluationPhases.run

    def terminated(self, name, explainer="shared", steps=0.0):
        if (name, explainer) == ("stability", "gnn_explainer"):
            signal.raise_signal(signal.SIGTERM)
        return measure(self, name, explainer, steps)

    with monkeypatch.context() as patch:
        patch.setattr(EvaluationPhases, "run", terminated)
        done = run("evaluate", path, "--output", "out")
    assert (done.exit_code, done.stdout) == (3, "")
    assert done.stderr.splitlines()[-1] == (
        "stopped: 6 finished steps in out/unfinished. The same command continues."
    )
    assert not (tmp_path / "out" / "rows.csv").exists()
    done = run("evaluate", path, "--output", "out")
    text = "6 finished steps of a stopped call in out/unfinished: continuing"
    assert done.stderr.splitlines()[0] == text
    assert not (tmp_path / "out" / "unfinished").exists()
    found, whole = (Results.load(folder).to_pandas() for folder in ("out", "whole"))
    same = ~found["metric"].str.startswith("time")
    kept = ["explainer", "target", "metric", "value", "status"]
    assert found[same][kept].equals(whole[same][kept])
    examples = [(tmp_path / name / "examples.json").read_text() for name in ("out", "whole")]
    assert examples[0].count("curve") == examples[1].count("curve")


def test_the_table_tells_which_explainer_costs_what(project):
    lines = run("evaluate", project()).stdout.splitlines()
    start = lines.index('Seconds of this call (what all explainers have in common is "shared"):')
    assert lines[start + 1].split()[0] == "explaining"
    assert [line.split()[0] for line in lines[start + 2 : start + 5]] == [
        "saliency",
        "random",
        "shared",
    ]


def test_options_replace_what_the_file_says(project):
    path = project(targets={"number": 5, "among": "test_mask"}, preset="calibrated")
    flags = [
        "--explainers",
        "input_x_gradient, random",
        "--targets",
        "2",
        "--preset",
        "paper",
        "--seed",
        "4",
        "--device",
        "cpu",
    ]
    run("evaluate", path, *flags, "--output", "out", "-q")
    found = Results.load("out")
    assert list(dict.fromkeys(row.explainer for row in found.rows)) == [
        "input_x_gradient",
        "random",
    ]
    assert len({row.target for row in found.rows}) == 2
    assert {row.target for row in found.rows} <= set(range(6, 12))
    assert ({row.seed for row in found.rows}, found.settings.headline) == ({4}, "paper")


def test_a_model_can_be_named_without_a_file(project, tmp_path, monkeypatch):
    project()
    (tmp_path / "project.yaml").unlink()
    flags = [
        "--model",
        "support.user_networks:NodeNet",
        "--weights",
        "w.safetensors",
        "--data",
        "g.safetensors",
        "--level",
        "node",
    ]
    done = run(
        "evaluate",
        *flags,
        "--task",
        "classification",
        "--explainers",
        "saliency",
        "--targets",
        "2",
        "-q",
        "--json",
    )
    assert json.loads(done.stdout)["run"] == os.path.join("runs", "graphgauge")
    assert list(json.loads(done.stdout)["means"]) == ["saliency"]
    monkeypatch.setattr("sys.argv", ["graphgauge", "evaluate", *flags])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["evaluate"],
            (
                "no model was named: give a project file (`graphgauge init` writes "
                "graphgauge.yaml), or --model"
            ),
        ),
        (["evaluate", "none.yaml"], "a project was asked for, but none.yaml cannot be read"),
        (
            ["evaluate", "project.yaml", "--explainers", "lrpp"],
            "No explainer is called 'lrpp'. Did you mean 'lrp'?",
        ),
        (
            ["evaluate", "project.yaml", "--output", "project.yaml/x"],
            "project.yaml/x cannot be written to",
        ),
        (["evaluate", "project.yaml", "--output", "bench"], "bench holds a benchmark run"),
        (
            ["explain", "project.yaml", "--target", "x"],
            (
                "no node is called 'x': a target is a number, such as 17, or a node's name, but "
                "no node has one here"
            ),
        ),
        (["explain", "project.yaml", "--target", "99"], "target 99 is not in this data"),
        (["explain", "project.yaml", "--target", "1", "--language", "xx"], "xx"),
        (
            ["explain", "project.yaml", "--target", "1", "--audience", "boss"],
            "No audience is called 'boss'",
        ),
        (
            ["explain", "project.yaml", "--target", "1", "--picture", "a.doc"],
            "--picture must end in one of .svg, .png, .pdf",
        ),
        (
            ["explain", "project.yaml", "--target", "1", "--explainer", "lrpp"],
            "No explainer is called 'lrpp'",
        ),
        (["init", "project.yaml"], "could not be written"),
    ],
)
def test_mistakes_are_one_line_and_code_2(
    project, tmp_path, monkeypatch, capsys, arguments, message
):
    project()
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "run.sqlite").touch()
    monkeypatch.setattr("sys.argv", ["graphgauge", *arguments])
    with pytest.raises(SystemExit) as caught:
        main()
    out, err = capsys.readouterr()
    assert (caught.value.code, out) == (2, "")
    assert err.startswith("graphgauge: error: ")
    assert message in err


# --- explain --------------------------------------------------------------------------------------


def test_explain_says_what_the_library_says(project):
    path = project(names={"classes": ["declined", "granted"]})
    done = run("explain", path, "--target", "8")
    single = explain_one(Project.read(path), 8)
    assert (done.exit_code, done.stdout, done.stderr) == (0, single.text() + "\n", "")
    assert single.x.explainer == "saliency"
    assert "All 5 quality thresholds are met." in done.stdout
    assert "declined" in done.stdout or "granted" in done.stdout


def test_a_text_says_which_thresholds_an_explanation_misses(project):
    done = run("explain", project(thresholds=HARD), "--target", "8")
    assert done.exit_code == 1
    assert "misses 1 of 5 quality thresholds: edge pertinence" in done.stdout
    unmeasured = run("explain", project(thresholds=HARD), "--target", "8", "--no-measure")
    assert unmeasured.exit_code == 0
    assert "No quality thresholds have been applied." in unmeasured.stdout


def test_language_audience_and_number_of_factors_reach_the_text(project):
    path = project(explainers=["random", "input_x_gradient"])
    done = run(
        "explain",
        path,
        "--target",
        "8",
        "--language",
        "it",
        "--audience",
        "affected_person",
        "--top",
        "1",
    )
    assert (
        done.stdout
        == explain_one(Project.read(path), 8, "input_x_gradient").text("it", "affected person", 1)
        + "\n"
    )
    assert "Risultato del modello" in done.stdout


def test_the_explanation_is_saved_and_drawn(project, tmp_path):
    run(
        "explain",
        project(explainers=["saliency", LEARNED]),
        "--target",
        "8",
        "--explainer",
        "gnn_explainer",
        "--output",
        "x.safetensors",
        "--picture",
        "x.svg",
    )
    x = Xplanation.load(tmp_path / "x.safetensors")
    assert (x.target, x.explainer, x.metrics["edge_ec"] > 0) == (8, "gnn_explainer", True)
    assert "<svg" in (tmp_path / "x.svg").read_text()


def test_json_has_the_text_the_facts_and_the_verdicts(project):
    found = json.loads(run("explain", project(), "--target", "8", "--json").stdout)
    assert (found["code"], found["facts"]["target"]["ids"], len(found["verdicts"])) == (0, [8], 7)
    assert found["text"].startswith("Target: node 8.")


def test_a_picture_for_an_affected_person_names_nobody_else(project):
    path = project(level="link", targets=[[0, 5]], explainers=["saliency"])
    axes = _draw_for_audience(
        explain_one(Project.read(path), (0, 5), measured=False), is_redacted=True
    )
    told = [text.get_text() for text in axes.findobj(lambda item: hasattr(item, "get_text"))]
    labels = [
        text
        for text in told
        if "feature" in text or any(word in text for word in ("income", "age", "debt"))
    ]
    assert labels
    assert not any("→" in text or "link" in text for text in told)


# --- init and doctor ------------------------------------------------------------------------------


def test_init_writes_a_file_that_is_a_project_and_never_overwrites_it(
    tmp_path, monkeypatch, capsys
):
    done = run("init", str(tmp_path / "new" / "folder"))
    path = tmp_path / "new" / "folder" / "graphgauge.yaml"
    assert done.stdout == f"{path}\nEdit the lines marked EDIT, then: graphgauge doctor {path}\n"
    form = Project.read(path).config
    assert (form.level, form.targets.number, form.explainers[-1].name) == ("node", 100, "random")
    path.write_text("mine")
    monkeypatch.setattr("sys.argv", ["graphgauge", "init", str(path.parent)])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    assert "is there already, and is left as it is" in capsys.readouterr().err
    assert path.read_text() == "mine"


def test_every_commented_line_of_the_file_is_right_too(tmp_path):
    run("init", str(tmp_path))
    path = tmp_path / "graphgauge.yaml"
    text = path.read_text()
    for line in (
        "# wrapping:",
        "# settings:",
        "# metrics:",
        "# latency:",
        "# focus:",
        "# thresholds:",
        "# names:",
        "# device:",
        "# - lrp",
    ):
        assert line in text
        text = text.replace(line, line[2:])
    for key in ("features", "classes", "node", "groups"):
        text = text.replace(f"#   {key}:", f"  {key}:")
    path.write_text(text)
    form = Project.read(path).config
    assert (form.use.latency, form.use.focus, form.device, form.wrapping.num_hops) == (
        "interactive",
        "feature",
        "cpu",
        3,
    )
    assert form.names["groups"] == {"accounts with prior defaults": [4, 7]}
    assert "lrp" in [choice.name for choice in form.explainers]


def test_the_doctor_finds_a_project_in_order(project):
    done = run("doctor", project())
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert "  ok      graphgauge" in done.stdout
    assert "  ok      network     NodeNet, 26 weights" in lines
    assert "  ok      targets     3 of them" in lines
    assert "  ok      names       3 features, 0 nodes, 2 classes" in lines
    assert lines[-1] == "ok: nothing is broken"


@pytest.mark.parametrize("kind", ["classes", "features"])
def test_the_doctor_refuses_the_names_that_explain_refuses(project, kind, monkeypatch, capsys):
    path = project(names={kind: ["a", "b", "c", "d"]})
    doctor = [
        line["told"]
        for line in json.loads(run("doctor", path, "--json").stdout)["lines"]
        if line["status"] == "broken"
    ]
    monkeypatch.setattr("sys.argv", ["graphgauge", "explain", path, "--target", "1", "--quiet"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert [capsys.readouterr().err.strip()] == [f"graphgauge: error: {told}" for told in doctor]


def test_the_doctor_notes_names_that_are_fewer_than_what_they_name(project):
    done = run(
        "doctor",
        project(
            names={"features": ["income", "age"], "nodes": {3: "Ada"}, "classes": ["no", "yes"]}
        ),
    )
    assert done.exit_code == 0
    short = (
        "2 of 3 features have a name, 1 of 12 nodes have a name: the others are told by their "
        "numbers"
    )
    assert (
        f"  noted   names       2 features, 1 nodes, 2 classes; {short}" in done.stdout.splitlines()
    )


@pytest.mark.parametrize(
    ("changes", "name", "told"),
    [
        ({"level": "nod"}, "file", "No level is called 'nod'"),
        ({"weights": "w.pt"}, "network", "may be a pickle"),
        ({"data": "none.safetensors"}, "graph", "cannot be read as a graph"),
        ({"task": "regression"}, "model", "a regression model gives one value per node"),
        (
            {"model": "support.user_networks:PairNet"},
            "model",
            'In a project file: `wrapping: {forward: "my_net:call"}`.',
        ),
        ({"targets": [99]}, "targets", "target 99 is not in this data"),
        (
            {"names": {"features": ["a", "b", "c", "d"]}},
            "names",
            "names.features speaks of number 3, but there are 3",
        ),
        (
            {"names": {"classes": ["a", "b", "c"]}},
            "names",
            "names.classes speaks of number 2, but there are 2",
        ),
        (
            {"names": {"groups": {"late ones": [99]}}},
            "names",
            "names.groups speaks of number 99, but there are 12",
        ),
        (
            {"names": {"feature_groups": {"money": [7]}}},
            "names",
            "names.feature_groups speaks of number 7, but there are 3",
        ),
    ],
)
def test_the_doctor_names_the_step_that_is_broken(tmp_path, changes, name, told):
    level = changes.pop("level", None)
    path = write_project(tmp_path, **{**QUICK, **changes})
    if level:
        path.write_text(path.read_text().replace("level: node", f"level: {level}"))
    done = run("doctor", str(path), "--json")
    lines = [line for line in json.loads(done.stdout)["lines"] if line["status"] == "broken"]
    assert (done.exit_code, [line["name"] for line in lines]) == (1, [name])
    assert told in lines[0]["told"]
    assert run("doctor", str(path)).stdout.splitlines()[-1] == f"broken: {name}"


def test_the_doctor_looks_at_the_project_in_this_folder_as_evaluate_does(project, monkeypatch):
    path = Path(project())
    monkeypatch.chdir(path.parent)
    path.rename("graphgauge.yaml")
    found, named = (
        json.loads(run("doctor", *config, "--json").stdout)["lines"]
        for config in ([], ["graphgauge.yaml"])
    )
    parts = [
        [line for line in lines if line["part"] in ("project", "check")] for lines in (found, named)
    ]
    assert parts[0] == parts[1] != []
    Path("graphgauge.yaml").write_text("model: no.such:thing")
    done = run("doctor")
    assert (done.exit_code, "The project" in done.stdout) == (1, True)


def test_the_doctor_without_a_project_looks_at_packages_machine_and_extras(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRAPHGAUGE_DATA", str(tmp_path / "none"))
    monkeypatch.setenv("GRAPHGAUGE_CACHE", str(tmp_path))
    found = {
        (line["part"], line["name"]): line
        for line in json.loads(run("doctor", "--json").stdout)["lines"]
    }
    assert found["package", "torch"]["status"] == "ok"
    assert found["machine", "device"]["status"] == "ok"
    assert found["machine", "cache"]["told"].startswith(str(tmp_path))
    assert found["machine", "data"] == {
        "part": "machine",
        "name": "data",
        "status": "broken",
        "told": f"GRAPHGAUGE_DATA names {tmp_path / 'none'}, but there is no such folder",
    }
    assert ("extra", "dask") in found
    assert ("extra", "dev") not in found
