"""The house stands: imports point down, rooms export what others use, importing costs nothing."""

import ast
import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import graphgauge
from graphgauge.core.registry import import_object
from graphgauge.core.renamed_names import RENAMED

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src" / "graphgauge"
#: a room imports rooms above it in this list, and those that stand before it on its own line
FLOORS = [
    "core",
    "datasets subgraphs execution models",
    "metrics perturbation explainers",
    "store evaluation",
    "guidelines narrative monitor checks benchmark",
    "plots",
    "report",
    "lifecycle",
    "serve dashboard",
    "cli",
]
ORDER = [room for rooms in FLOORS for room in rooms.split()]
FILES = sorted(SRC.glob("*/**/*.py"))
#: files with methods that people expect on a lower object but that need a higher room, such as
#: `Xplanation.draw`: these import the room in their body, and name its types in their signatures
REACHING_UP = {
    "benchmark/worker.py": {"report"},
    "core/xplanation.py": {"models", "narrative", "plots", "report"},
    "evaluation/concatenation.py": {"report"},
    "evaluation/evaluator.py": {"narrative"},
    "evaluation/results.py": {"benchmark", "guidelines", "narrative", "report"},
    "evaluation/score_trace.py": {"plots"},
}


def imports_of_rooms(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("graphgauge."):
            yield node


def imported_rooms(path):
    return [node.module.split(".")[1] for node in imports_of_rooms(ast.parse(path.read_text()))]


def imported_at_once(path):
    """Rooms that a file imports when it is imported itself."""
    for node in ast.parse(path.read_text()).body:
        is_for_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        if not is_for_types and not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield from (found.module.split(".")[1] for found in imports_of_rooms(node))


def not_below(rooms, room):
    return {other for other in rooms if ORDER.index(other) > ORDER.index(room)}


def not_exported(tree, room):
    """What a file imports from other rooms without their exporting it: ``(module, name)``."""
    for node in imports_of_rooms(tree):
        other = node.module.split(".")[1]
        if other != room:
            exported = import_module(f"graphgauge.{other}").__all__
            yield from (
                (node.module, name.name)
                for name in node.names
                if node.module != f"graphgauge.{other}" or name.name not in exported
            )


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SRC)))
def test_imports_point_down(path):
    name = path.relative_to(SRC).as_posix()
    room = path.relative_to(SRC).parts[0]
    assert not_below(imported_rooms(path), room) == REACHING_UP.get(name, set())
    assert not_below(imported_at_once(path), room) == set()


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SRC)))
def test_rooms_import_only_what_other_rooms_export(path):
    room = path.relative_to(SRC).parts[0]
    assert list(not_exported(ast.parse(path.read_text()), room)) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SRC)))
def test_private_names_stay_in_their_file(path):
    imported = [
        name.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("graphgauge")
        for name in node.names
    ]
    assert [name for name in imported if name.startswith("_") and name != "__version__"] == []


def test_the_tests_of_imports_would_see_a_wrong_one(tmp_path):
    path = tmp_path / "wrong.py"
    path.write_text("def f():\n    from graphgauge.report.html_report import write\n")
    assert imported_rooms(path) == ["report"]
    tree = ast.parse(path.read_text())
    assert list(not_exported(tree, "core")) == [("graphgauge.report.html_report", "write")]
    assert list(not_exported(tree, "report")) == []
    wrong = ast.parse("from graphgauge.models import BaseModel, no_such_name")
    assert list(not_exported(wrong, "core")) == [("graphgauge.models", "no_such_name")]


@pytest.mark.parametrize("room", sorted({path.relative_to(SRC).parts[0] for path in FILES}))
def test_every_room_is_known_and_exports_what_it_names(room):
    assert room in ORDER
    module = import_module(f"graphgauge.{room}")
    names = getattr(module, "__all__", [])
    assert all(getattr(module, name) is not None for name in names)
    assert set(names) <= set(dir(module))


def test_every_public_name_resolves_and_is_listed():
    assert all(getattr(graphgauge, name) is not None for name in graphgauge.__all__)
    assert {"Evaluator", "Xplanation", "check_model", "models"} <= set(dir(graphgauge))
    assert graphgauge.Explanation is graphgauge.Xplanation
    with pytest.raises(AttributeError, match="'graphgauge' has no attribute 'Explayner'"):
        _ = graphgauge.Explayner


@pytest.mark.parametrize("old", RENAMED)
def test_an_old_name_still_works_and_says_the_new_one(old):
    room, name = old.rsplit(".", 1)
    with pytest.warns(DeprecationWarning, match=f"{re.escape(old)} is now {RENAMED[old]};"):
        found = getattr(import_module(room), name)
    assert found is import_object(":".join(RENAMED[old].rsplit(".", 1)))


def test_rooms_are_reached_without_importing_them_first():
    code = (
        "import graphgauge\n"
        "print(len(graphgauge.checks.MODEL_CHECKS) > 20, graphgauge.datasets.__name__)"
    )
    assert run_python(code) == "True graphgauge.datasets"


@pytest.mark.parametrize("name", REACHING_UP)
def test_what_is_imported_from_a_higher_room_is_there(name):
    for node in imports_of_rooms(ast.parse((SRC / name).read_text())):
        assert all(hasattr(import_module(node.module), found.name) for found in node.names)


def test_methods_that_reach_up_take_what_their_functions_take():
    for method, function in (
        (graphgauge.Xplanation.draw, graphgauge.draw_explanation),
        (graphgauge.evaluation.ScoreTrace.plot, graphgauge.plot_deletion_curve),
        (graphgauge.Results.report, graphgauge.report.build_report),
    ):
        ours, theirs = (
            [
                (own.name, own.kind, own.default)
                for own in inspect.signature(each).parameters.values()
            ]
            for each in (method, function)
        )
        assert ours[1:] == theirs[1:]


def run_python(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_importing_graphgauge_loads_nothing_heavy():
    heavy = "torch torch_geometric numpy pandas scipy matplotlib networkx typer".split()
    loaded = run_python(
        f"import sys, graphgauge; print([name for name in {heavy!r} if name in sys.modules])"
    )
    assert loaded == "[]"


def test_the_command_line_loads_no_torch_for_its_help():
    code = (
        "import sys; sys.argv = ['graphgauge', '--help']\n"
        "from graphgauge.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    print('torch' in sys.modules)"
    )
    assert run_python(code).endswith("False")


def test_type_checkers_know_every_public_name_and_no_other(tmp_path):
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    names = ", ".join(f"gg.{name}" for name in graphgauge.__all__)
    right.write_text(f"import graphgauge as gg\nprint({names})\n")
    wrong.write_text("import graphgauge as gg\nprint(gg.NotThere)\n")
    options = ["--config-file", str(ROOT / "pyproject.toml"), "--follow-imports=silent"]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(right), str(wrong)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    errors = [line for line in checked.stdout.splitlines() if ": error:" in line]
    assert [line.partition("wrong.py:")[2] for line in errors] == [
        '2: error: Module has no attribute "NotThere"  [attr-defined]'
    ]


def test_no_file_is_called_utils():
    assert [
        path.name for path in FILES if re.match(r"(utils?|helpers?|common)\.py", path.name)
    ] == []


def test_versions_agree():
    assert f'version = "{graphgauge.__version__}"' in (ROOT / "pyproject.toml").read_text()
