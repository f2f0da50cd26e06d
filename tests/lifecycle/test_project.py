"""Project files: from paths and names to a wrapped model, explainers, targets, names and
requirements; mistakes all at once.
"""

import sys
from importlib import import_module

import pytest
import torch
from support.user_networks import SEED, LinkNet, NodeNet, node_graph, write_project

from graphgauge.core.errors import BadFile, BadModel, BadSetting, BadTarget
from graphgauge.evaluation import sample_targets
from graphgauge.explainers import GNNExplainer, RandomExplainer, Saliency
from graphgauge.lifecycle import Project
from graphgauge.models import NodeClassificationModel


def test_a_project_gives_the_model_that_its_files_describe(tmp_path):
    project = Project.read(write_project(tmp_path))
    model = project.model()
    torch.manual_seed(SEED)
    expected = NodeClassificationModel(NodeNet(), node_graph())
    assert torch.equal(model.pred_continuous([0, 7]), expected.pred_continuous([0, 7]))
    assert (type(model), project.folder) == (NodeClassificationModel, tmp_path)


@pytest.mark.parametrize(
    ("level", "task", "wrapper", "target"),
    [
        ("node", "classification", "NodeClassificationModel", 3),
        ("node", "regression", "NodeRegressionModel", 3),
        ("link", "classification", "LinkClassificationModel", (0, 5)),
        ("link", "regression", "LinkRegressionModel", (0, 5)),
        ("graph", "classification", "GraphClassificationModel", 3),
        ("graph", "regression", "GraphRegressionModel", 3),
    ],
)
def test_level_and_task_choose_the_wrapper(tmp_path, level, task, wrapper, target):
    keys = {
        "level": level,
        "task": task,
        "targets": [list(target) if isinstance(target, tuple) else target],
    }
    if task == "regression" and level != "link":
        keys |= {"weights": None, "arguments": {"out": 1}}
    project = Project.read(write_project(tmp_path, **keys))
    model = project.model()
    assert type(model).__name__ == wrapper
    assert project.targets(model) == [target]
    assert project.requirements(model).task_kind == f"{level}_{task}"


def test_explainers_have_the_labels_that_results_show(tmp_path):
    chosen = [
        "saliency",
        {"name": "gnn_explainer", "parameters": {"epochs": 5}, "label": "short"},
        "gnn_explainer",
    ]
    found = Project.read(write_project(tmp_path, explainers=chosen)).explainers()
    assert found == {
        "saliency": Saliency(),
        "short": GNNExplainer(epochs=5),
        "gnn_explainer": GNNExplainer(),
    }
    assert (
        RandomExplainer()
        in Project.read(write_project(tmp_path, explainers=None)).explainers().values()
    )


def test_settings_reach_the_evaluator(tmp_path):
    keys = {
        "preset": "calibrated",
        "settings": {"cap": 7, "trials": [3, 9]},
        "seed": 5,
        "name": "loans",
        "metrics": ["sparsity"],
    }
    evaluator = Project.read(write_project(tmp_path, **keys)).evaluator()
    assert (evaluator.settings.cap, evaluator.settings.trials, evaluator.settings.headline) == (
        7,
        (3, 9),
        "twins",
    )
    assert (evaluator.seed, evaluator.task, [metric.name for metric in evaluator.metrics]) == (
        5,
        "loans",
        ["sparsity"],
    )


def test_the_name_of_a_project_changes_neither_targets_nor_numbers(tmp_path):
    quick = {
        "targets": 5,
        "explainers": ["random"],
        "settings": {"cap": 3, "trials": [3, 3], "timed": 0},
        "preset": "calibrated",
    }

    def measured(name, **keys):
        project = Project.read(write_project(tmp_path, name=name, **quick, **keys))
        model = project.model()
        rows = project.evaluator(model).compare(project.explainers(), project.targets(model)).rows
        return {row.task for row in rows}, [
            (row.target, row.metric, repr(row.cell)) for row in rows if "time" not in row.metric
        ]

    first, second = measured("loans"), measured("loans, second quarter")
    assert (first[0], second[0]) == ({"loans"}, {"loans, second quarter"})
    assert first[1] == second[1]
    assert first[1] != measured("loans", seed=1)[1]  # it is the seed that draws


def test_targets_are_drawn_listed_or_read(tmp_path):
    def targets(**keys):
        project = Project.read(write_project(tmp_path, **keys))
        return project.targets(project.model())

    project = Project.read(write_project(tmp_path, targets=5, seed=3))
    model = project.model()
    assert project.targets(model) == project.evaluator(model).sample(5)
    assert targets(targets={"number": 100, "among": "test_mask"}) == [6, 7, 8, 9, 10, 11]
    assert targets(targets=[4, 2, 4]) == [4, 2, 4]
    (tmp_path / "t.txt").write_text("3\n\n11\n")
    (tmp_path / "t.json").write_text("[1, 2]")
    assert (targets(targets="t.txt"), targets(targets={"file": "t.json"})) == ([3, 11], [1, 2])
    (tmp_path / "pairs.csv").write_text("0,5\n7 3\n")
    assert targets(targets="pairs.csv", level="link") == [(0, 5), (7, 3)]
    drawn = targets(targets={"number": 9, "among": "test_pairs"}, level="link")
    assert drawn == [(0, 5), (1, 6), (2, 7)]
    assert len(sample_targets(model, 5)) == 5


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ([99], BadTarget, r"target 99 is not in this data: its 12 nodes are 0\.\.11"),
        ("missing.txt", BadFile, r"missing\.txt holds no list of targets"),
        (
            "words.txt",
            BadTarget,
            (
                "no node is called 'seventeen': a target is a number, such as 17, or a node's "
                "name, but no node has one"
            ),
        ),
        (
            "map.json",
            BadFile,
            r"map\.json must hold a list of targets, such as \[0, 17\], but holds dict",
        ),
        (
            {"number": 3, "among": "no_mask"},
            BadTarget,
            r"targets\.among is 'no_mask', but it names no target",
        ),
        (
            {"number": 3, "among": "val_mask"},
            BadSetting,
            r"'val_mask', but the data has no such tensor\. It has: .*test_mask",
        ),
    ],
)
def test_wrong_targets_are_named(tmp_path, given, error, message):
    (tmp_path / "words.txt").write_text("seventeen")
    (tmp_path / "map.json").write_text("{}")
    project = Project.read(write_project(tmp_path, targets=given))
    with pytest.raises(error, match=message):
        project.targets(project.model())


@pytest.mark.parametrize(
    ("level", "given", "expected"),
    [
        ("node", ["Ada", "2", 4, "Bob, junior"], [1, 2, 4, 3]),
        ("node", "people.txt", [1, 5, 3]),
        ("node", "people.json", [3, 5]),
        ("link", [["Ada", 5], "5, Ada"], [(1, 5), (5, 1)]),
        ("link", "pairs.txt", [(1, 5), (0, 5)]),
        ("graph", ["third", 0], [2, 0]),
    ],
)
def test_targets_go_by_name_too(tmp_path, level, given, expected):
    names = (
        {"graphs": {2: "third"}}
        if level == "graph"
        else {"nodes": {1: "Ada", 3: "Bob, junior", 6: "Eve", 7: "Eve"}}
    )
    (tmp_path / "people.txt").write_text("Ada\n5\n Bob, junior \n")
    (tmp_path / "people.json").write_text('["Bob, junior", 5]')
    (tmp_path / "pairs.txt").write_text("Ada, 5\n0 5\n")
    project = Project.read(write_project(tmp_path, targets=given, level=level, names=names))
    assert project.targets(project.model()) == expected


@pytest.mark.parametrize(
    ("level", "given", "message"),
    [
        ("node", "Eve", "2 nodes are called 'Eve', such as 6 and 7: say which, by its number"),
        (
            "node",
            "Adam",
            (
                "no node is called 'Adam': a target is a number, such as 17, or a node's name "
                "such as 'Ada'"
            ),
        ),
        ("link", "Ada", "target 'Ada' is not a link: say both of its ends, such as 3,5"),
        ("node", "-1", "target -1 is not in this data"),
    ],
)
def test_names_that_are_no_target_are_refused(tmp_path, level, given, message):
    names = {"nodes": {1: "Ada", 6: "Eve", 7: "Eve"}}
    project = Project.read(write_project(tmp_path, level=level, names=names))
    with pytest.raises(BadTarget, match=message):
        project.read_targets(project.model(), [given])


def test_names_come_from_the_file_and_then_from_the_data(tmp_path):
    project = Project.read(
        write_project(
            tmp_path, names={"classes": ["declined", "granted"], "node": ["account", "accounts"]}
        )
    )
    names = project.names(project.model())
    assert (names.classes, names.features) == (
        {0: "declined", 1: "granted"},
        {0: "income", 1: "age", 2: "debt"},
    )
    assert names.node == ("account", "accounts")


def test_requirements_know_the_kind_the_features_and_the_limits(tmp_path):
    keys = {
        "thresholds": {"feature_ec": "50%"},
        "use": {"stakes": "high-stakes", "latency": "batch"},
    }
    project = Project.read(write_project(tmp_path, **keys))
    wanted = project.requirements(project.model())
    assert (wanted.stakes, wanted.latency, wanted.num_features, wanted.limit("feature_ec")) == (
        "high-stakes",
        "batch",
        3,
        1.5,
    )


def test_toml_says_the_same(tmp_path):
    expected = Project.read(
        write_project(tmp_path, names={"features": {0: "income"}}, targets=[1, 2])
    )
    lines = [
        'model = "support.user_networks:NodeNet"',
        'weights = "w.safetensors"',
        'data = "g.safetensors"',
        'level = "node"',
    ]
    lines += [
        'task = "classification"',
        'explainers = ["saliency", "random"]',
        "targets = [1, 2]",
        'device = "cpu"',
    ]
    (tmp_path / "project.toml").write_text("\n".join([*lines, "[names.features]", '0 = "income"']))
    assert Project.read(tmp_path / "project.toml") == expected


def test_all_mistakes_are_told_at_once_with_their_lines(tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text(
        "model: net.py\n"
        "data: g.safetensors\n"
        "level: nod\n"
        "task: classification\n"
        "explainers: [lrp, salience]\n"
        "epochs: 3\n"
        "settings: {cap: 0, top_k: 1}\ntargets: {number: 0}\nuse: {stakes: huge, latncy: batch}\n"
        "thresholds: {speed: 1}\nnames: {colours: [red]}\nwrapping: {output: logit}\n"
    )
    with pytest.raises(BadSetting) as caught:
        Project.read(path)
    told = str(caught.value).splitlines()
    assert told[0] == f"{path} has 11 mistakes:"
    expected = [
        "line 1, model: String should match pattern",
        "line 3, level: No level is called 'nod'. Did you mean 'node'?",
        "line 12, wrapping.output: Input should be 'logits', 'log_probs', 'probs', 'multi_label' "
        "or 'multi_label_logits', but is 'logit'",
        "line 5, explainers.1.name: No explainer is called 'salience'. Did you mean 'saliency'?",
        "line 7, settings: No setting is called 'top_k'.",
        "line 8, targets.number: Input should be greater than or equal to 1, but is 0",
        "line 11, names: No kind of names is called 'colours'.",
        "line 10, thresholds: limits names 'speed', but judged are",
        "line 9, use.stakes: stakes must be one of 'standard', 'high-stakes', but 'huge' was given",
        "line 9, use.latncy: is no key here. Did you mean 'latency'?",
        "line 6, epochs: is no key here.",
    ]
    for part in expected:
        assert any(line.strip().startswith(part) for line in told), part
    assert "cap must be" in next(line for line in told if ", settings:" in line)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"targets": {"number": 3, "file": "a.txt"}},
            "must say one of number, chosen and file, but says number and file",
        ),
        (
            {"targets": {"among": "test_mask"}},
            "must say one of number, chosen and file, but says none of them",
        ),
        (
            {"targets": {"file": "a.txt", "among": "m"}},
            "among says where to draw from, and goes with number only",
        ),
        (
            {"use": {"stakes": "huge"}},
            "stakes must be one of 'standard', 'high-stakes', but 'huge' was given",
        ),
        ({"explainers": ["saliency", "saliency"]}, "explainers: saliency is listed twice"),
        ({"level": None}, "level: is missing"),
    ],
)
def test_contradictions_are_told(tmp_path, keys, message):
    with pytest.raises(BadSetting, match=message):
        Project.read(write_project(tmp_path, **keys))


@pytest.mark.parametrize(
    ("keys", "error", "message"),
    [
        (
            {"model": "support.user_networks:Net"},
            BadModel,
            r"user_networks has no Net\. It defines: NodeNet, LinkNet",
        ),
        (
            {"model": "no_such_module:net"},
            BadModel,
            "no_such_module cannot be imported: ModuleNotFoundError",
        ),
        (
            {"model": "support.user_networks:broken"},
            BadModel,
            r"support.user_networks:broken\(\) failed: RuntimeError: no spoon",
        ),
        (
            {"model": "support.user_networks:no_network"},
            BadModel,
            "must give a torch.nn.Module, but gave dict",
        ),
        (
            {"model": "support.user_networks:ready"},
            BadModel,
            "must be a function or class that gives the network, but is NodeNet",
        ),
        ({"arguments": {"depth": 3}}, BadModel, r"NodeNet\(depth=3\) failed: TypeError"),
        (
            {"arguments": {"width": 5}},
            BadModel,
            (
                r"the weights in .*w\.safetensors are not those of NodeNet: .* in the file and .* "
                r"in the network"
            ),
        ),
        ({"weights": "w.pt"}, BadFile, r"w\.pt may be a pickle.*Convert it first: .*save_file"),
        ({"weights": "none.safetensors"}, BadFile, r"none\.safetensors cannot be read as weights"),
        ({"data": "g.pt"}, BadFile, r"g\.pt may be a pickle.*save_graph"),
        ({"device": "gpu"}, BadSetting, "device 'gpu' cannot be used here"),
        (
            {"task": "regression", "wrapping": {"output": "logits"}},
            BadSetting,
            "task is regression: leave it out",
        ),
    ],
)
def test_a_model_that_cannot_be_made_says_why(tmp_path, keys, error, message):
    project = Project.read(write_project(tmp_path, **keys))
    with pytest.raises(error, match=message):
        project.model()


def test_one_graph_and_a_list_of_graphs_are_not_confused(tmp_path):
    path = write_project(tmp_path, level="graph")
    with pytest.raises(
        BadFile, match=r"g\.safetensors holds a list of 5 graphs, but level: node needs one graph"
    ):
        Project.read(path, {"level": "node"}).model()
    write_project(tmp_path)
    with pytest.raises(BadFile, match="holds one graph, but level: graph needs a list of graphs"):
        Project.read(path, {"level": "graph"}).model()


def test_modules_beside_the_file_are_found_and_nothing_stays_on_the_path(tmp_path):
    (tmp_path / "mine_alone.py").write_text(
        "from support.user_networks import NodeNet\n\n\n"
        "def make(width):\n"
        "    return NodeNet(width)\n"
    )
    before = list(sys.path)
    project = Project.read(write_project(tmp_path, model="mine_alone:make", arguments={"width": 4}))
    assert type(project.model()).__name__ == "NodeClassificationModel"
    assert sys.path == before


def test_a_module_of_the_same_name_from_elsewhere_is_refused(tmp_path):
    (tmp_path / "readability.py").write_text("")
    import_module("readability")  # the one of bench
    with pytest.raises(
        BadModel,
        match=r"readability\.py was meant, but another module readability was imported before",
    ):
        Project.read(write_project(tmp_path, model="readability:NodeNet")).model()


def test_making_a_model_leaves_random_numbers_alone_and_is_repeatable(tmp_path):
    project = Project.read(write_project(tmp_path, weights=None))
    torch.manual_seed(9)
    expected = torch.rand(3)
    torch.manual_seed(9)
    first = project.net()
    assert torch.equal(torch.rand(3), expected)
    assert torch.equal(first.first.lin.weight, project.net().first.lin.weight)


def test_a_function_of_ones_own_calls_the_network(tmp_path):
    project = Project.read(
        write_project(
            tmp_path,
            wrapping={"forward": "support.user_networks:called", "num_hops": 2, "output": "logits"},
        )
    )
    model = project.model()
    assert (model.call.style, model.num_hops, model.output) == ("custom", 2, "logits")


def test_targets_of_a_network_with_several_labels_name_one(tmp_path):
    given = [[3, 1], "5, 0", "0,1"]
    path = write_project(
        tmp_path, wrapping={"output": "multi_label_logits"}, targets={"chosen": given}
    )
    project = Project.read(path)
    model = project.model()
    assert project.targets(model) == [(3, 1), (5, 0), (0, 1)]
    assert all(
        len(target) == 2 for target in Project.read(path, {"targets": {"number": 3}}).targets(model)
    )
    with pytest.raises(
        BadTarget,
        match="target 3 has no label: say the node and the label it is about, such as 3,1",
    ):
        project.read_targets(model, [3])


def test_a_column_of_a_regression_network_can_be_chosen(tmp_path):
    model = Project.read(
        write_project(tmp_path, task="regression", wrapping={"output_column": 1})
    ).model()
    assert model.output_column == 1
    with pytest.raises(
        BadSetting, match="output_column chooses one of several values; task is classification"
    ):
        Project.read(write_project(tmp_path, wrapping={"output_column": 1})).model()


def test_a_project_without_a_file(tmp_path):
    write_project(tmp_path, level="link")
    keys = {
        "model": "support.user_networks:LinkNet",
        "weights": "w.safetensors",
        "data": "g.safetensors",
        "level": "link",
    }
    project = Project.from_keys({**keys, "task": "classification"}, tmp_path)
    assert isinstance(project.model().net, LinkNet)
    with pytest.raises(BadSetting, match="the command line has 1 mistake:\n  task: is missing"):
        Project.from_keys(keys, tmp_path, "the command line")
