"""The analysis of a run: read its results, write tables and pictures, say where they are."""

import json
from pathlib import Path
from typing import Annotated

import typer

from graphgauge.benchmark import with_variants
from graphgauge.evaluation import Results
from graphgauge.report import ANALYSIS_PAGE, write_analysis

_ANALYSIS_FOLDER = "analysis"  #: below the run, unless another place is asked for


def _run_analysis(
    run: str, out: str | None, draws: int, seed: int, variants: str | None = None
) -> list[Path]:
    """Analyse the results in a folder, with the explainers of a run of variants in the places of
    theirs.
    """
    own = Results.load(run)
    results = own if variants is None else with_variants(own, Results.load(variants))
    return write_analysis(results, out or Path(run) / _ANALYSIS_FOLDER, draws, seed)


def _analysis_text(paths: list[Path]) -> str:
    """The page to begin with, and how many files lie beside it."""
    page = next(path for path in paths if path.name == ANALYSIS_PAGE)
    return f"{page}\n{len(paths) - 1} tables and pictures beside it"


def _analysis_json(paths: list[Path]) -> str:
    """Every file."""
    return json.dumps([str(path) for path in paths], indent=2)


def analyse_command(
    run: Annotated[str, typer.Argument(help="Folder of a run, or of saved results.")],
    variants: Annotated[
        str | None, typer.Option(help="Put the explainers of this run in the places of theirs.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "--out", help="Folder (default: 'analysis' in the run's)."),
    ] = None,
    draws: Annotated[int, typer.Option(min=1, help="Bootstrap draws.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draws.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print the written files as JSON.")] = False,
) -> None:
    """Write what a run says: the paper's Table 1, the comparison with it, Pareto fronts, tables and
    pictures.
    """
    paths = _run_analysis(run, output, draws, seed, variants)
    typer.echo(_analysis_json(paths) if json else _analysis_text(paths))
