"""Find out what is installed: the required packages of graphgauge, and its extras.

No package is loaded for this. Each answer is one `DiagnosticLine`: ok, noted (works, but should be
known), missing (an extra that nothing needs yet) or broken.
"""

import importlib.metadata
import platform
from dataclasses import dataclass

from packaging.requirements import Requirement

import graphgauge

OK, NOTED, _MISSING, BROKEN = "ok", "noted", "missing", "broken"
#: extras that are not offered: for developers, or other names
_INTERNAL_EXTRAS = ("all", "bench", "dev", "docs", "interactive")


@dataclass(frozen=True)
class DiagnosticLine:
    """One answer. ``part``: "package", "machine", "extra", "project" or "check"."""

    part: str
    name: str
    status: str
    told: str = ""


def is_healthy(lines: list[DiagnosticLine]) -> bool:
    """Whether nothing is broken."""
    return all(line.status != BROKEN for line in lines)


def package_lines() -> list[DiagnosticLine]:
    """Python, graphgauge, and every package it cannot do without, with its version."""
    own = [
        DiagnosticLine("package", "python", OK, platform.python_version()),
        DiagnosticLine("package", "graphgauge", OK, graphgauge.__version__),
    ]
    return [
        *own,
        *(
            _required_package_line(need)
            for need in _declared_requirements("")
            if _requirement_applies(need, "")
        ),
    ]


def _required_package_line(need: Requirement) -> DiagnosticLine:
    """A package that must be there."""
    found = _installed_version(need.name)
    if found is None:
        return DiagnosticLine(
            "package", need.name, BROKEN, f"is not installed: pip install '{need}'"
        )
    if not need.specifier.contains(found, prereleases=True):
        return DiagnosticLine(
            "package",
            need.name,
            BROKEN,
            f"{found}, but {need.specifier} is needed: pip install '{need}'",
        )
    return DiagnosticLine("package", need.name, OK, found)


def extra_lines() -> list[DiagnosticLine]:
    """Every extra, and how to install those that are not there."""
    return [_extra_line(extra) for extra in _declared_extras() if extra not in _INTERNAL_EXTRAS]


def _extra_line(extra: str) -> DiagnosticLine:
    """One extra: all of its packages are there, or what to type."""
    wanted = [need for need in _declared_requirements(extra) if _requirement_applies(need, extra)]
    gaps = [need.name for need in wanted if _installed_version(need.name) is None]
    if gaps:
        return DiagnosticLine(
            "extra",
            extra,
            _MISSING,
            f"without {', '.join(gaps)}: pip install 'graphgauge[{extra}]'",
        )
    return DiagnosticLine(
        "extra",
        extra,
        OK,
        ", ".join(f"{need.name} {_installed_version(need.name)}" for need in wanted),
    )


def _declared_extras() -> list[str]:
    """The extras of the installed graphgauge; none where it runs from a folder without being
    installed.
    """
    try:
        return importlib.metadata.metadata("graphgauge").get_all("Provides-Extra") or []
    except importlib.metadata.PackageNotFoundError:
        return []


def _declared_requirements(extra: str) -> list[Requirement]:
    """Packages that graphgauge, or one extra of it, asks for."""
    try:
        found = [Requirement(text) for text in importlib.metadata.requires("graphgauge") or []]
    except importlib.metadata.PackageNotFoundError:
        return []
    return [need for need in found if ("extra" in str(need.marker or "")) == bool(extra)]


def _requirement_applies(need: Requirement, extra: str) -> bool:
    """Whether a requirement holds here, for an extra."""
    return need.marker is None or need.marker.evaluate({"extra": extra})


def _installed_version(name: str) -> str | None:
    """The version of an installed package."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
