"""What is installed: the packages that graphgauge cannot do without, and its extras. Loads none of
them.

Each answer is one `Line`: ok, noted (works, but should be known), missing (an extra that nothing
needs yet) or broken.
"""

import importlib.metadata
import platform
from dataclasses import dataclass

from packaging.requirements import Requirement

import graphgauge

OK, NOTED, MISSING, BROKEN = "ok", "noted", "missing", "broken"
NOT_FOR_USERS = (
    "all",
    "bench",
    "dev",
    "docs",
    "interactive",
)  #: extras that are not offered: for developers, or other names


@dataclass(frozen=True)
class Line:
    """One answer. ``part``: "package", "machine", "extra", "project" or "check"."""

    part: str
    name: str
    status: str
    told: str = ""


def is_well(lines: list[Line]) -> bool:
    """Whether nothing is broken."""
    return all(line.status != BROKEN for line in lines)


def package_lines() -> list[Line]:
    """Python, graphgauge, and every package it cannot do without, with its version."""
    own = [
        Line("package", "python", OK, platform.python_version()),
        Line("package", "graphgauge", OK, graphgauge.__version__),
    ]
    return [*own, *(needed_line(need) for need in needs("") if applies(need, ""))]


def needed_line(need: Requirement) -> Line:
    """A package that must be there."""
    found = installed(need.name)
    if found is None:
        return Line("package", need.name, BROKEN, f"is not installed: pip install '{need}'")
    if not need.specifier.contains(found, prereleases=True):
        return Line(
            "package",
            need.name,
            BROKEN,
            f"{found}, but {need.specifier} is needed: pip install '{need}'",
        )
    return Line("package", need.name, OK, found)


def extra_lines() -> list[Line]:
    """Every extra, and how to install those that are not there."""
    return [extra_line(extra) for extra in extras() if extra not in NOT_FOR_USERS]


def extra_line(extra: str) -> Line:
    """One extra: all of its packages are there, or what to type."""
    wanted = [need for need in needs(extra) if applies(need, extra)]
    gaps = [need.name for need in wanted if installed(need.name) is None]
    if gaps:
        return Line(
            "extra", extra, MISSING, f"without {', '.join(gaps)}: pip install 'graphgauge[{extra}]'"
        )
    return Line(
        "extra", extra, OK, ", ".join(f"{need.name} {installed(need.name)}" for need in wanted)
    )


def extras() -> list[str]:
    """The extras of the installed graphgauge; none where it runs from a folder without being
    installed.
    """
    try:
        return importlib.metadata.metadata("graphgauge").get_all("Provides-Extra") or []
    except importlib.metadata.PackageNotFoundError:
        return []


def needs(extra: str) -> list[Requirement]:
    """Packages that graphgauge, or one extra of it, asks for."""
    try:
        found = [Requirement(text) for text in importlib.metadata.requires("graphgauge") or []]
    except importlib.metadata.PackageNotFoundError:
        return []
    return [need for need in found if ("extra" in str(need.marker or "")) == bool(extra)]


def applies(need: Requirement, extra: str) -> bool:
    """Whether a requirement holds here, for an extra."""
    return need.marker is None or need.marker.evaluate({"extra": extra})


def installed(name: str) -> str | None:
    """The version of an installed package."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
