"""The house stands: imports point down, rooms export what they promise, importing costs nothing."""

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import graphgauge
from graphgauge.core.later import resolve

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
    "cli dashboard serve",
]
FLOOR = {room: height for height, rooms in enumerate(FLOORS) for room in rooms.split()}
FILES = sorted(SRC.glob("*/**/*.py"))


def imported_rooms(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("graphgauge."):
            yield node.module.split(".")[1]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SRC)))
def test_imports_point_down(path):
    room = path.relative_to(SRC).parts[0]
    assert [
        other for other in imported_rooms(path) if other != room and FLOOR[other] >= FLOOR[room]
    ] == []


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


def test_every_later_address_resolves():
    addresses = [
        found
        for path in FILES
        for found in re.findall(r"later\(\"([\w.]+:\w+)\"\)", path.read_text())
    ]
    assert all(resolve(address) is not None for address in addresses)


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
