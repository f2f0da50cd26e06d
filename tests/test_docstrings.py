"""Docstrings of public names say what each parameter is, what comes back, and show an example.

*Public* is what ``graphgauge`` itself and its rooms export. For the names of ``graphgauge``, which
users type, every parameter is explained and an example runs; so it is for their methods of two or
more parameters. For what rooms export to each other, every parameter is explained where there are
three or more; names, types and shapes say enough of fewer.
"""

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import graphgauge

SRC = Path(graphgauge.__file__).parent
ROOMS = sorted(path.parent.name for path in SRC.glob("*/__init__.pyi"))
SECTIONS = ("Args:", "Attributes:", "Returns:", "Raises:", "Yields:")


def section(docstring, *titles):
    """The lines under the first of these titles, up to the next section."""
    lines, found = [], False
    for line in inspect.cleandoc(docstring or "").splitlines():
        if line.strip() in SECTIONS and line == line.lstrip():
            found = line.strip() in titles
        elif found and line and line == line.lstrip():
            found = False
        elif found:
            lines.append(line)
    return lines


def explained(docstring, *titles):
    """Names that a section explains: `` name: what it is``."""
    entries = (re.match(r"    (\*{0,2}\w+(?:, \*{0,2}\w+)*):", line) for line in docstring)
    return {name.strip(" *") for entry in entries if entry for name in entry[1].split(",")}


def parameters_of(function):
    found = inspect.signature(function).parameters
    return [name for name in found if name not in ("self", "cls") and not name.startswith("_")]


def unexplained(function, docstring=None, least=1):
    """Parameters that the docstring of a function or class does not explain."""
    names = parameters_of(function)
    if len(names) < least:
        return []
    docstring = function.__doc__ if docstring is None else docstring
    known = explained(section(docstring, "Args:", "Attributes:"))
    return [name for name in names if name not in known]


def own_methods(cls):
    """Public methods that a class of ours defines itself, without properties."""
    for name, member in vars(cls).items():
        function = member.__func__ if isinstance(member, (staticmethod, classmethod)) else member
        if not name.startswith("_") and inspect.isfunction(function):
            yield name, function


def inherited_docstring(cls, method):
    """What the class and the classes above it say of a method: an override need not repeat it."""
    found = (vars(base).get(method) for base in cls.__mro__)
    return "\n".join(inspect.cleandoc(one.__doc__ or "") for one in found if one is not None)


def unexplained_of(cls, least):
    """Parameters of the public methods of a class that no docstring explains."""
    for method, function in own_methods(cls):
        docstring = inherited_docstring(cls, method)
        yield from (
            f"{cls.__name__}.{method}: {one}" for one in unexplained(function, docstring, least)
        )


def class_docstring(cls):
    init = vars(cls).get("__init__")
    docstrings = (cls.__doc__, getattr(init, "__doc__", ""))
    return "\n".join(inspect.cleandoc(docstring or "") for docstring in docstrings)


def gives_something(function):
    return function.__annotations__.get("return") not in (None, "None")


def public_objects():
    for name in graphgauge.__all__:
        found = getattr(graphgauge, name)
        if not inspect.ismodule(found) and callable(found):
            yield name, found


def missing_in(name, found):
    """What the docstring of a name of ``graphgauge`` leaves out, in words."""
    gaps = []
    if inspect.isclass(found):
        text = class_docstring(found)
        if not issubclass(found, Exception):
            gaps += [f"{name}: {one}" for one in unexplained(found, text)]
            gaps += [] if ">>>" in text else [f"{name}: no example"]
        for base in found.__mro__:
            if base.__module__.startswith("graphgauge"):
                gaps += unexplained_of(base, least=2)
    else:
        gaps += [f"{name}: {one}" for one in unexplained(found)]
        gaps += [] if ">>>" in (found.__doc__ or "") else [f"{name}: no example"]
        if gives_something(found) and not section(found.__doc__, "Returns:"):
            gaps.append(f"{name}: no Returns")
    return gaps


@pytest.mark.parametrize("name", [name for name, _ in public_objects()])
def test_a_public_docstring_explains_parameters_and_has_an_example(name):
    assert missing_in(name, getattr(graphgauge, name)) == []


@pytest.mark.parametrize("room", ROOMS)
def test_functions_that_rooms_export_explain_their_parameters(room):
    module = import_module(f"graphgauge.{room}")
    gaps = []
    for name in module.__all__:
        found = getattr(module, name)
        if inspect.isfunction(found) and found.__module__.startswith(f"graphgauge.{room}"):
            gaps += [f"{name}: {one}" for one in unexplained(found, least=3)]
        elif inspect.isclass(found) and found.__module__.startswith(f"graphgauge.{room}"):
            gaps += unexplained_of(found, least=3)
    assert gaps == []


def test_a_gap_would_be_seen():
    def scale(value, factor):  # noqa: D417
        """Multiply.

        Args:
            value: What is multiplied.

        Returns:
            The product.
        """

    assert unexplained(scale) == ["factor"]
    assert explained(["    a, b: Two numbers.", "    **more: Others."]) == {"a", "b", "more"}
    assert missing_in("scale", scale) == ["scale: factor", "scale: no example"]
