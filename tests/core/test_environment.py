"""What is installed: versions compared, extras with their command, nothing heavy loaded."""

import subprocess
import sys

import pytest
from packaging.requirements import Requirement

from graphgauge.core import environment as packages
from graphgauge.core.environment import (
    DiagnosticLine,
    _extra_line,
    _required_package_line,
    is_healthy,
    package_lines,
)

REQUIRES = [
    "torch>=2.10",
    "nothing_like_it>=1",
    "tomli; python_version < '3'",
    "ray; extra == 'ray'",
    "pytest>=1; extra == 'test'",
]


@pytest.fixture
def pretend(monkeypatch):
    versions = {"torch": "2.13.0+cpu", "pytest": "9.0"}
    monkeypatch.setattr(packages.importlib.metadata, "requires", lambda name: REQUIRES)
    monkeypatch.setattr(packages, "_installed_version", versions.get)


def test_needed_packages_are_there_in_a_version_that_will_do(pretend):
    assert [(line.name, line.status, line.told) for line in package_lines()[2:]] == [
        ("torch", "ok", "2.13.0+cpu"),
        ("nothing_like_it", "broken", "is not installed: pip install 'nothing_like_it>=1'"),
    ]
    old = _required_package_line(Requirement("torch>=3"))
    assert (old.status, old.told) == (
        "broken",
        "2.13.0+cpu, but >=3 is needed: pip install 'torch>=3'",
    )


def test_extras_come_with_their_command(pretend):
    assert _extra_line("ray") == DiagnosticLine(
        "extra", "ray", "missing", "without ray: pip install 'graphgauge[ray]'"
    )
    assert _extra_line("test") == DiagnosticLine("extra", "test", "ok", "pytest 9.0")


def test_only_what_is_broken_makes_the_whole_broken():
    assert is_healthy(
        [DiagnosticLine("extra", "ray", "missing"), DiagnosticLine("machine", "cache", "noted")]
    )
    assert not is_healthy([DiagnosticLine("package", "torch", "broken")])


def test_a_graphgauge_that_is_not_installed_has_no_list(monkeypatch):
    def missing(name):
        raise packages.importlib.metadata.PackageNotFoundError(name)

    for function in ("requires", "metadata"):
        monkeypatch.setattr(packages.importlib.metadata, function, missing)
    assert [line.name for line in package_lines()] == ["python", "graphgauge"]
    assert packages.extra_lines() == []


def test_looking_at_packages_loads_none():
    code = (
        "import sys; from graphgauge.core.environment import package_lines; package_lines(); "
        "print('torch' in sys.modules)"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "False"
    )
