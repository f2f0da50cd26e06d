"""The house stands: imports point down, rooms export what they promise, importing costs nothing."""

import ast
import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import graphgauge

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src" / "graphgauge"
FLOORS = [
    "core",
    "datasets models",
    "explainers metrics perturbation",
    "evaluation store",
    "benchmark guidelines monitor narrative",
    "report",
    "lifecycle",
    "dashboard serve",
    "cli",
]
FLOOR = {room: height for height, rooms in enumerate(FLOORS) for room in rooms.split()}
FILES = sorted(SRC.glob("*/**/*.py"))
#: files with methods that people expect on a lower object but that need a higher room, such as
#: `Xplanation.draw`: these import the room in their body, and name its types in their signatures
REACHING_UP = {
    "core/xplanation.py": {"models", "narrative", "report"},
    "evaluation/concatenation.py": {"report"},
    "evaluation/evaluator.py": {"narrative"},
    "evaluation/results.py": {"benchmark", "guidelines", "narrative", "report"},
    "evaluation/stories.py": {"report"},
    "benchmark/work.py": {"report"},
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
    return {other for other in rooms if other != room and FLOOR[other] >= FLOOR[room]}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SRC)))
def test_imports_point_down(path):
    name = path.relative_to(SRC).as_posix()
    room = path.relative_to(SRC).parts[0]
    assert not_below(imported_rooms(path), room) == REACHING_UP.get(name, set())
    assert not_below(imported_at_once(path), room) == set()


def test_the_direction_test_would_see_an_import_that_points_up(tmp_path):
    path = tmp_path / "wrong.py"
    path.write_text("def f():\n    from graphgauge.report.page import write\n")
    assert list(imported_rooms(path)) == ["report"]


@pytest.mark.parametrize("room", sorted({path.relative_to(SRC).parts[0] for path in FILES}))
def test_every_room_is_known_and_exports_what_it_names(room):
    assert room in FLOOR
    module = import_module(f"graphgauge.{room}")
    assert all(hasattr(module, name) for name in getattr(module, "__all__", []))


def test_every_public_name_resolves_and_is_listed():
    assert all(getattr(graphgauge, name) is not None for name in graphgauge.PUBLIC)
    assert set(graphgauge.PUBLIC) <= set(dir(graphgauge))
    with pytest.raises(AttributeError, match="no attribute 'Explayner'"):
        _ = graphgauge.Explayner


def test_rooms_are_reached_without_importing_them_first():
    assert run_python(
        "import graphgauge; print(len(graphgauge.models.MODEL_CHECKS) > 20, graphgauge.datasets.__name__)"
    ) == ("True graphgauge.datasets")


@pytest.mark.parametrize("name", REACHING_UP)
def test_what_is_imported_from_a_higher_room_is_there(name):
    for node in imports_of_rooms(ast.parse((SRC / name).read_text())):
        assert all(hasattr(import_module(node.module), found.name) for found in node.names)


def test_methods_that_reach_up_take_what_their_functions_take():
    from graphgauge.evaluation.exporting import to_parquet
    from graphgauge.evaluation.stories import Story
    from graphgauge.report.page import report

    for method, function in (
        (graphgauge.Xplanation.draw, graphgauge.draw_explanation),
        (Story.plot, graphgauge.plot_deletion_curve),
        (graphgauge.Results.report, report),
        (graphgauge.Results.to_parquet, to_parquet),
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


def test_no_file_is_called_utils():
    assert [
        path.name for path in FILES if re.match(r"(utils?|helpers?|common)\.py", path.name)
    ] == []


def test_versions_agree():
    assert f'version = "{graphgauge.__version__}"' in (ROOT / "pyproject.toml").read_text()
