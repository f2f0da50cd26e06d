"""Experiment files: every name resolves, every mistake is told at once with its line."""

import re

import pytest
from support.tiny_experiments import EXPERIMENT, write_experiment

from graphgauge.benchmark import read_experiment, shipped_experiments
from graphgauge.benchmark.planning import _run_config
from graphgauge.core.errors import BadFile, BadSetting, UnknownName
from graphgauge.evaluation import PRESETS
from graphgauge.explainers import find_explainer

EIGHT = (
    "saliency input_x_gradient integrated_gradients guided_backprop deconvolution lrp "
    "gnn_explainer graphmask"
).split()
TEN = [
    f"{data}-{level}"
    for data in ("cora", "github", "ba-shapes", "movielens", "synthetic")
    for level in ("node", "link")
]


def test_these_experiments_are_shipped():
    assert sorted(shipped_experiments()) == [
        "paper",
        "paper-calibrated",
        "paper-drop",
        "paper-fidelity",
        "paper-variants",
        "quick",
    ]


@pytest.mark.parametrize("name", shipped_experiments())
def test_every_name_in_every_shipped_file_resolves(name):
    experiment = read_experiment(name)
    assert experiment.name == name
    assert experiment.description
    for choice, label in zip(experiment.explainers, experiment.labels, strict=True):
        assert (choice.build().name, label) == (choice.name, choice.name)
    assert _run_config(experiment)["settings"] == experiment.full_settings.record()


def test_the_papers_experiments_are_what_the_paper_did():
    paper = read_experiment("paper")
    assert [task.name for task in paper.tasks] == TEN
    assert (paper.models, paper.labels, paper.targets.number) == (["gcn", "gat"], EIGHT, 100)
    assert paper.full_settings.record() == {**PRESETS["paper"].record(), "stability": "binomial"}
    assert read_experiment("paper-calibrated").full_settings.record() == {
        **PRESETS["calibrated"].record(),
        "timed": 0,
    }
    only_edges = {"edge_removal": "drop", "sides": "edges", "stability": "none", "timed": 0}
    assert read_experiment("paper-drop").full_settings.record() == {
        **paper.full_settings.record(),
        **only_edges,
    }
    variants = {
        choice.name: choice.parameters for choice in read_experiment("paper-variants").explainers
    }
    captum = {key: {"variant": "captum"} for key in ("lrp", "guided_backprop", "deconvolution")}
    assert variants == {**captum, "graphmask": {"variant": "pyg"}}
    for name in ("paper-calibrated", "paper-drop", "paper-variants"):
        other = read_experiment(name)
        assert (other.tasks, other.models, other.targets) == (
            paper.tasks,
            paper.models,
            paper.targets,
        )


def test_the_fidelity_family_is_measured_on_the_smaller_data_sets_by_the_papers_settings():
    fidelity = read_experiment("paper-fidelity")
    assert [task.name for task in fidelity.tasks] == [
        name for name in TEN if not name.startswith(("github", "movielens"))
    ]
    assert (fidelity.models, fidelity.labels) == (["gcn", "gat"], EIGHT)
    extra = {"extras": True, "stability": "none", "timed": 0}
    assert fidelity.full_settings.record() == {**PRESETS["paper"].record(), **extra}


def test_quick_needs_no_files():
    assert {task.data for task in read_experiment("quick").tasks} == {"BA-Shapes", "Synthetic"}


def test_a_file_of_ones_own(tmp_path):
    path = write_experiment(
        tmp_path / "my.yaml",
        tasks=[{"data": "cora", "level": "link"}, "GitHub-node"],
        metrics=["sparsity"],
    )
    experiment = read_experiment(path)
    assert [(task.data, task.level, task.name) for task in experiment.tasks] == [
        ("Cora", "link", "cora-link"),
        ("GitHub", "node", "github-node"),
    ]
    assert experiment.full_settings.trials == (3, 6)
    assert experiment.explainers[1].build() == find_explainer("gnn_explainer", epochs=2)
    assert [choice.build().name for choice in experiment.metrics] == ["sparsity"]
    assert read_experiment(path, {"targets.number": 7}).targets.number == 7


def test_an_experiment_without_a_name_is_called_like_its_file(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("tasks: [cora-node]\nmodels: [gcn]\nexplainers: [saliency]\n")
    assert read_experiment(path).name == "mine"


def test_an_explainer_twice_is_told_apart_by_its_parameters_or_label(tmp_path):
    name = "gnn_explainer"
    three = [name, {"name": name, "parameters": {"epochs": 5}}, {"name": name, "label": "third"}]
    path = write_experiment(tmp_path / "a.yaml", explainers=three)
    assert read_experiment(path).labels == [name, f"{name}(epochs=5)", "third"]
    with pytest.raises(
        BadSetting,
        match=(
            r"line \d+, explainers: saliency is listed twice: .*\{name: saliency, label: "
            r"another\}$"
        ),
    ):
        read_experiment(write_experiment(tmp_path / "a.yaml", explainers=["saliency", "saliency"]))
    with pytest.raises(BadSetting, match="explainers: third is listed twice"):
        read_experiment(
            write_experiment(
                tmp_path / "a.yaml", explainers=[three[2], {"name": "lrp", "label": "third"}]
            )
        )


def test_what_is_listed_twice_is_told_beside_other_mistakes_of_the_same_list(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(
        "tasks: [cora-node, cora-nod, cora-node]\nmodels: [gat, gcm, gat]\nexplainers:\n"
        "  - saliency\n"
        "  - salienc\n"
        "  - saliency\n"
        "  - {name: lrp, paramters: {}}\n"
        "targets: {number: 0}\n"
    )
    with pytest.raises(BadSetting) as caught:
        read_experiment(path)
    first, *rest = str(caught.value).splitlines()
    assert first == f"{path} has 8 mistakes:"
    expected = (
        "line 1, tasks.1: No task is called 'cora-nod'",
        "line 1, tasks: cora-node is listed twice as task",
        "line 2, models.1: No network is called 'gcm'",
        "line 2, models: gat is listed twice as network",
        "line 4, explainers: saliency is listed twice",
        "line 5, explainers.1.name: No explainer is called 'salienc'",
        "line 7, explainers.3.paramters: is no key here",
        "line 8, targets.number: ",
    )
    assert [
        line for line, own in zip(rest, expected, strict=True) if not line.strip().startswith(own)
    ] == []


@pytest.mark.parametrize("models", ["gcn", [], 7, None, {"gcn": 1}])
def test_a_list_that_is_none_is_told(tmp_path, models):
    with pytest.raises(BadSetting, match=r"has 1 mistake:\n  line \d+, models: "):
        read_experiment(write_experiment(tmp_path / "a.yaml", models=models))


WRONG = """\
tasks: [cora-nod, {data: Coral, level: node}, cora-link]
models: [gcm, gat]
explainers:
  - salienc
  - {name: gnn_explainer, parameters: {epoch: 5}}
  - {name: gnn_explainer, paramters: {epoch: 5}}
  - 7
settings: {capp: 5, cap: -1, edge_removal: drp}
targets: {number: 0}
blok: 4
metrics: [sparsty, pertinence]
preset: papr
seed: one
"""
TOLD = [
    r"line 1, tasks\.0: No task is called 'cora-nod'\. Did you mean 'cora-node'\?",
    r"line 1, tasks\.1\.data: No data set is called 'Coral'\. Did you mean 'Cora'\?",
    r"line 2, models\.0: No network is called 'gcm'\. Did you mean 'gcn'\?",
    r"line 4, explainers\.0\.name: No explainer is called 'salienc'\. Did you mean 'saliency'\?",
    (
        r"line 5, explainers\.1\.parameters: .* unexpected keyword argument 'epoch'\. Its "
        r"parameters: epochs"
    ),
    r"line 6, explainers\.2\.paramters: is no key here\. Did you mean 'parameters'\?",
    r"line 7, explainers\.3: Input should be .*, but is 7",
    (
        r"line 8, settings: No setting is called 'capp'\. Did you mean 'cap'\?.*edge_removal must "
        r"be one of.*; cap must be"
    ),
    r"line 9, targets\.number: Input should be greater than or equal to 1, but is 0",
    r"line 10, blok: is no key here\. Did you mean 'block'\?",
    (
        r"line 11, metrics\.0\.name: No metric that can be added is called 'sparsty'\. Did you "
        r"mean 'sparsity'\?"
    ),
    r"line 11, metrics\.1\.name: No metric that can be added is called 'pertinence'\.",
    r"line 12, preset: No preset is called 'papr'\. Did you mean 'paper'\?",
    r"line 13, seed: Input should be a valid integer, but is 'one'",
]


def test_every_mistake_is_told_at_once_with_its_line(tmp_path):
    path = tmp_path / "wrong.yaml"
    path.write_text(WRONG)
    with pytest.raises(BadSetting) as caught:
        read_experiment(path)
    first, *rest = str(caught.value).splitlines()
    assert first == f"{path} has {len(TOLD)} mistakes:"
    assert [
        line
        for line, pattern in zip(rest, TOLD, strict=True)
        if not re.match(r"  " + pattern, line)
    ] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tasks: [", "is not YAML"),
        ("tasks: !!python/object/apply:os.system ['ls']", "is not YAML"),
        ("seed: 1\nseed: 2", "the key 'seed' comes twice"),
        ("- cora", "must hold an experiment"),
        ("", "must hold an experiment"),
        ("tasks: []\nmodels: [gcn]\nexplainers: [lrp]", "tasks: List should have at least 1 item"),
        (
            "tasks: [cora-node, cora-node]\nmodels: [gcn, gcn]\nexplainers: [lrp]",
            "cora-node is listed twice as task",
        ),
        ("models: [gcn]", "tasks: is missing"),
        (
            "name: ../up\ntasks: [cora-node]\nmodels: [gcn]\nexplainers: [lrp]",
            "name: String should match pattern",
        ),
    ],
)
def test_files_that_are_no_experiments_are_refused(tmp_path, text, message):
    path = tmp_path / "my.yaml"
    path.write_text(text)
    with pytest.raises(BadSetting, match=re.escape(message)):
        read_experiment(path)


def test_windows_files_are_read(tmp_path):
    path = write_experiment(tmp_path / "my.yaml")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert read_experiment(path).name == EXPERIMENT["name"]


def test_experiments_that_are_not_there_are_named(tmp_path):
    with pytest.raises(
        UnknownName, match=r"No experiment is called 'papr'\. Did you mean 'paper'\?"
    ):
        read_experiment("papr")
    with pytest.raises(BadFile, match=r"no\.yaml cannot be read"):
        read_experiment(tmp_path / "no.yaml")
    with pytest.raises(BadFile, match="cannot be read"):
        read_experiment(tmp_path)
