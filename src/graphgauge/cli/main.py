"""The `graphgauge` command: a table of all commands, each in a file of its own.

The file of a command is imported when the command is called, so that help answers at once. Its file
holds ``NAME_command``: a function, or a Typer of further commands.
"""

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from graphgauge import __version__
from graphgauge.cli.console import command_group, run_app

#: every command with its line of help, in the order in which people need them: first steps, your
#: own model, in production, the paper
_COMMANDS = {
    "demo": (
        "Train a small GCN on a generated BA-Shapes graph, show what decides its predictions, "
        "and which explainer says so best."
    ),
    "consult": (
        "Say which explainer to begin with, from a benchmark, before anything of your own was "
        "measured."
    ),
    "init": "Write a commented project file for a model of your own; never over another.",
    "doctor": (
        "Check packages, machine and extras, and a project from its file to its network: exit "
        "code 1 if something is broken."
    ),
    "evaluate": (
        "Measure explainers on your own model: exit code 0 pass, 1 below threshold, 3 "
        "incomplete, for the recommended one."
    ),
    "explain": (
        "Explain one prediction of your own model in words: exit code 1 if the explanation "
        "misses a threshold."
    ),
    "report": (
        "Write the report of a stored run: one page that says which explainer to trust, and why."
    ),
    "check": (
        "Compare a stored run with thresholds (its own, if any): exit code 0 pass, 1 below "
        "threshold, 2 usage, 3 incomplete."
    ),
    "validate": (
        "Measure the project's explainers, or a shortlist, on its data, choose one, write the "
        "decision. Exit codes as for check."
    ),
    "sign": "Put a name under a decision, after reading validation.md.",
    "serve": (
        "Explain predictions of your own model over HTTP. The token is in GRAPHGAUGE_TOKEN, "
        "in --token-file, or made and shown."
    ),
    "audit": "Check and export the log of answers.",
    "monitor": "Watch a model in use: does the quality of its explanations hold?",
    "dashboard": (
        "Show runs, thresholds, single explanations and monitoring in the browser, until "
        "Ctrl-C. Nothing is changed."
    ),
    "documents": (
        "Write model card section, instructions for use, Annex IV tables, monitoring plan, "
        "checklist and audit trail."
    ),
    "benchmark": (
        "Measure many explainers on many tasks and networks. Can be stopped at any time; the "
        "same command continues."
    ),
    "analyse": (
        "Write what a run says: the paper's Table 1, the comparison with it, Pareto fronts, "
        "tables and pictures."
    ),
    "datasets": "List the data sets of the paper, and whether their files are there.",
    "train": (
        "Search the paper's grid for its networks, and train the best again with five seeds."
    ),
    "explainers": "List the explainers that can be used by name.",
}


class _LazyGroup(TyperGroup):
    """Knows the names and help lines of its commands, and imports one when it is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        """The command that the arguments name, as its own file defines it."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, _load_command(str(name)), rest


def _load_command(name: str) -> Any:
    """Import the file of a command, and return what Typer makes of it."""
    command = getattr(import_module(f"graphgauge.cli.{name}"), f"{name}_command")
    if not isinstance(command, typer.Typer):
        single = command_group("")
        single.command(name)(command)
        command = single
    return typer.main.get_command(command)


def _show_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        typer.echo(f"graphgauge {__version__}")
        raise typer.Exit


app = typer.Typer(
    cls=_LazyGroup,
    help="Measure how good the explanations of a graph neural network are, without ground truth.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for _name, _line in _COMMANDS.items():
    app.command(_name, help=_line)(lambda: None)


@app.callback()
def global_options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Options before the command."""


def main() -> None:
    """Run the command line; our own errors become one line and exit code 2."""
    run_app(app)
