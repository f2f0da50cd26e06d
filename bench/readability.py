"""How easily can a stranger read the source? Measures of names, signatures, docstrings and lengths.

    python bench/readability.py [CHECKOUT] [--names]

CHECKOUT is the folder of a repository; without it, this one is measured. The same script measures
an older checkout too (``git worktree add OLD COMMIT``), so that two versions can be compared.
``--names`` also lists what was counted, such as every function of one word.

A *module-level name* is a function or a class that a file of ``src/graphgauge`` defines outside of
functions and classes. *One word* means that no underscore separates words; a leading one does not
count. A *reference* is a place in ``src`` that reads the name, in the file that defines the
function or in one that imports it; an import alone is none. *Exported* is what the ``__init__``
file of a room offers to other rooms and to users.
"""

import argparse
import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "graphgauge"
LONGEST_FILE, LONGEST_LINE = 350, 100
FOLDERS_OF_LINES = ("src", "tests", "bench", "docs")
_STORED_FOLDERS = {"fixtures", "stored"}  #: of the tests, with files that the package wrote
MOST_MODULES = 3  #: that may define the same name without being listed

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef


@dataclass(frozen=True)
class Module:
    """One file of the package: its dotted name, its path in the checkout and its syntax tree."""

    name: str
    path: str
    num_lines: int
    tree: ast.Module

    def functions(self) -> list[Function]:
        """The functions that the file defines at its top level."""
        return [node for node in self.tree.body if isinstance(node, Function)]

    def definitions(self) -> list[Definition]:
        """The functions and classes that the file defines at its top level."""
        return [node for node in self.tree.body if isinstance(node, Definition)]


@dataclass(frozen=True)
class Measure:
    """One line of the report, and what it counted."""

    title: str
    count: int
    total: int | None = None
    names: tuple[str, ...] = ()
    is_always_listed: bool = False

    def as_row(self) -> str:
        """The line of a Markdown table.

        >>> Measure("private names", 3, 4).as_row()
        '| private names | 3 of 4 | 75.0 % |'
        """
        if self.total is None:
            return f"| {self.title} | {self.count:,} | |"
        share = f"{100 * self.count / self.total:.1f} %" if self.total else ""
        return f"| {self.title} | {self.count:,} of {self.total:,} | {share} |"


def is_dunder(name: str) -> bool:
    """Whether Python itself gives the name its meaning, as ``__all__``."""
    return name.startswith("__") and name.endswith("__")


def is_private(name: str) -> bool:
    """Whether a leading underscore marks the name as private."""
    return name.startswith("_") and not is_dunder(name)


def is_one_word(name: str) -> bool:
    """Whether the name of a function has a single word.

    >>> is_one_word("_told"), is_one_word("mean_ranks")
    (True, False)
    """
    return "_" not in name.strip("_")


def read_modules(checkout: Path) -> list[Module]:
    """Parse every file of the package."""
    source = checkout / "src"
    modules = []
    for path in sorted((source / PACKAGE).rglob("*.py")):
        name = ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        modules.append(Module(name, str(path.relative_to(checkout)), len(text.splitlines()), tree))
    return modules


def all_functions(modules: list[Module]) -> Iterator[tuple[str, Function]]:
    """Every function and method, also those inside others, with its place as ``path:name``."""
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, Function):
                yield f"{module.path}:{node.name}", node


def parameters(function: Function) -> list[ast.arg]:
    """The parameters of a function, without the ``self`` or ``cls`` of a method."""
    arguments = function.args
    listed = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    listed += [extra for extra in (arguments.vararg, arguments.kwarg) if extra is not None]
    return [argument for argument in listed if argument.arg not in ("self", "cls")]


def has_any(function: Function) -> bool:
    """Whether an annotation of the signature holds ``Any``, also inside a text."""
    annotations = [argument.annotation for argument in parameters(function)] + [function.returns]
    nodes = [node for each in annotations if each is not None for node in ast.walk(each)]
    return any(
        (isinstance(node, ast.Name) and node.id == "Any")
        or (isinstance(node, ast.Constant) and "Any" in str(node.value))
        for node in nodes
    )


def needs_arguments(function: Function) -> bool:
    """Whether the docstring of a function should explain parameters: public, three or more."""
    return not function.name.startswith("_") and len(parameters(function)) >= 3


def explains_arguments(function: Function) -> bool:
    """Whether the docstring has a section with the parameters."""
    return "Args:" in (ast.get_docstring(function) or "")


def read_exports(checkout: Path) -> set[tuple[str, str]]:
    """What each room exports: names that its ``__init__`` file, or the stub of it, imports."""
    package = checkout / "src" / PACKAGE
    return {
        (f"{PACKAGE}.{path.parent.name}", alias.name)
        for path in sorted([*package.glob("*/__init__.py"), *package.glob("*/__init__.pyi")])
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def public_functions(
    modules: list[Module], exports: set[tuple[str, str]]
) -> Iterator[tuple[str, Function]]:
    """Functions that rooms export, and methods of classes that they export."""
    for module in modules:
        room = ".".join(module.name.split(".")[:2])
        for node in module.definitions():
            if (room, node.name) not in exports:
                continue
            if isinstance(node, Function):
                yield f"{module.path}:{node.name}", node
            else:
                for method in node.body:
                    if isinstance(method, Function):
                        yield f"{module.path}:{node.name}.{method.name}", method


def repeated_names(modules: list[Module]) -> dict[str, list[str]]:
    """The functions and classes whose name more than `MOST_MODULES` files define.

    A leading underscore does not make a name another one.
    """
    places: dict[str, list[str]] = defaultdict(list)
    for module in modules:
        for name in {node.name for node in module.definitions() if not is_dunder(node.name)}:
            places[name.lstrip("_")].append(module.path)
    return {name: paths for name, paths in sorted(places.items()) if len(paths) > MOST_MODULES}


def count_references(modules: list[Module]) -> dict[tuple[str, str], int]:
    """How often the package reads each module-level function, by module and name.

    An import from a room counts for every file of the room that defines the name.
    """
    functions = {(module.name, node.name) for module in modules for node in module.functions()}
    count = dict.fromkeys(functions, 0)
    for module in modules:
        meaning: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for function in module.functions():
            meaning[function.name].append((module.name, function.name))
        for source, name, alias in imported_names(module):
            inside = f"{source}."
            meaning[alias] += [
                (home, own)
                for home, own in functions
                if own == name and home != module.name and f"{home}.".startswith(inside)
            ]
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                for key in meaning.get(node.id, ()):
                    count[key] += 1
    return count


def imported_names(module: Module) -> Iterator[tuple[str, str, str]]:
    """What a file imports from the package: module, name there, name here."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE):
            for alias in node.names:
                yield str(node.module), alias.name, alias.asname or alias.name


def long_lines(checkout: Path, folder: str) -> list[str]:
    """The places of all lines of Python and Markdown over `LONGEST_LINE` characters.

    Files that the package itself wrote are left as they are.
    """
    return [
        f"{path.relative_to(checkout)}:{number}"
        for path in sorted((checkout / folder).rglob("*"))
        if path.suffix in (".py", ".pyi", ".md") and not _STORED_FOLDERS.intersection(path.parts)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > LONGEST_LINE
    ]


def measure_names(modules: list[Module]) -> list[Measure]:
    """Private names, names of one word, names that many files define."""
    definitions = [
        node.name for module in modules for node in module.definitions() if not is_dunder(node.name)
    ]
    functions = [
        (f"{module.path}:{node.name}", node.name)
        for module in modules
        for node in module.functions()
        if not is_dunder(node.name)
    ]
    short = tuple(place for place, name in functions if is_one_word(name))
    repeated = repeated_names(modules)
    lines = tuple(f"{name}: {', '.join(paths)}" for name, paths in repeated.items())
    return [
        Measure("private module-level names", sum(map(is_private, definitions)), len(definitions)),
        Measure("module functions of one word", len(short), len(functions), short),
        Measure(
            f"names that more than {MOST_MODULES} modules define",
            len(repeated),
            names=lines,
            is_always_listed=True,
        ),
    ]


def measure_signatures(checkout: Path, modules: list[Module]) -> list[Measure]:
    """Functions with ``Any``, and docstrings that explain parameters."""
    every = list(all_functions(modules))
    vague = tuple(place for place, function in every if has_any(function))
    public = [
        (place, function)
        for place, function in public_functions(modules, read_exports(checkout))
        if needs_arguments(function)
    ]
    silent = tuple(place for place, function in public if not explains_arguments(function))
    return [
        Measure("functions with Any in the signature", len(vague), len(every), vague),
        Measure(
            "exported functions of three or more parameters without Args",
            len(silent),
            len(public),
            silent,
        ),
    ]


def measure_sizes(checkout: Path, modules: list[Module]) -> list[Measure]:
    """Long files, long lines, and functions with one reference."""
    long = tuple(
        f"{module.path}: {module.num_lines}"
        for module in modules
        if module.num_lines > LONGEST_FILE
    )
    lines = {folder: tuple(long_lines(checkout, folder)) for folder in FOLDERS_OF_LINES}
    references = count_references(modules)
    once = tuple(f"{home}:{name}" for (home, name), number in references.items() if number == 1)
    return [
        Measure(f"files over {LONGEST_FILE} lines", len(long), len(modules), long, True),
        *(
            Measure(f"lines over {LONGEST_LINE} columns in {folder}", len(places), names=places)
            for folder, places in lines.items()
        ),
        Measure("module functions with one reference", len(once), len(references), once),
    ]


def report(checkout: Path, with_names: bool = False) -> str:
    """The table of all measures, and the lists under it."""
    modules = read_modules(checkout)
    measures = [
        *measure_names(modules),
        *measure_signatures(checkout, modules),
        *measure_sizes(checkout, modules),
    ]
    table = ["| measure | number | share |", "|---|---|---|", *(each.as_row() for each in measures)]
    lists = [
        "\n".join([f"\n{each.title}:", *(f"- {name}" for name in sorted(each.names))])
        for each in measures
        if each.names and (each.is_always_listed or with_names)
    ]
    return "\n".join([*table, *lists])


def main() -> None:
    """Measure a checkout and print the report."""
    parser = argparse.ArgumentParser(description="Measures of how easily the source can be read.")
    parser.add_argument("checkout", type=Path, nargs="?", default=Path(__file__).parent.parent)
    parser.add_argument("--names", action="store_true", help="list every name that was counted")
    arguments = parser.parse_args()
    print(report(arguments.checkout, arguments.names))


if __name__ == "__main__":
    main()
