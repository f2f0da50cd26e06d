"""The analysis of a run in one folder: ``analysis.md``, CSV tables, and pictures of the fronts.

What the results do not allow (no task of the paper, no fidelity measured) is left out, and the page
says why.
"""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pandas as pd

from graphgauge.benchmark.bootstrap import ranking
from graphgauge.benchmark.comparison import compare_with_paper
from graphgauge.benchmark.correlation import agreement
from graphgauge.benchmark.counting import effort
from graphgauge.benchmark.kinds import shown_kind
from graphgauge.benchmark.paper import METRICS
from graphgauge.benchmark.pareto import ALL_PAIRS, fronts, robustly_non_dominated, scopes
from graphgauge.benchmark.study import Study, study_of
from graphgauge.benchmark.summary import summary_table
from graphgauge.benchmark.table import table_1
from graphgauge.benchmark.typeset import as_markdown
from graphgauge.core.errors import BadFile, UndefinedScore
from graphgauge.core.progress import advance, progress
from graphgauge.evaluation.results import Results
from graphgauge.report.pareto import plot_fronts

RANKED = ("feature_pertinence", "edge_pertinence", "feature_ec", "edge_ec")
PAGE = "analysis.md"


@dataclass(frozen=True)
class Section:
    """One part of the page: a heading, text in Markdown, and the files that belong to it."""

    heading: str
    text: str
    files: dict[str, str] = field(default_factory=dict)  #: name -> content


Maker = Callable[[Study], Section]


def write_analysis(
    results: Results | Study, folder: str | os.PathLike[str], draws: int = 2000, seed: int = 0
) -> list[Path]:
    """Write the analysis of a run into a folder: a page, tables and pictures.

    Args:
        results: What a benchmark or an evaluator measured.
        folder: The folder; it is made if it does not exist.
        draws: Bootstrap draws for intervals and ranks.
        seed: Seed of these draws.

    Returns:
        The paths of all files, ``analysis.md`` among them.

    Raises:
        BadFile: The folder cannot be written.
    """
    study, place = study_of(results), Path(folder)
    drawing = (comparison_section, front_section, ranking_section)
    makers: list[Maker] = [
        table_section,
        *(partial(maker, draws=draws, seed=seed) for maker in drawing),
    ]
    makers += [
        partial(agreement_section, draws=min(draws, 500), seed=seed),
        effort_section,
        summary_section,
    ]
    try:
        place.mkdir(parents=True, exist_ok=True)
        with progress(len(makers) + 1, "analyse"):
            sections = [section_or_reason(maker, study) for maker in makers]
            pictures = list(write_pictures(study, place, draws, seed))
            advance(1)
        files = {name: text for section in sections for name, text in section.files.items()}
        files[PAGE] = page(study, [*sections, picture_section(pictures)])
        return [*(write_text(place / name, text) for name, text in files.items()), *pictures]
    except OSError as error:
        raise BadFile(
            f"the analysis could not be written into {os.fspath(folder)}: {error}."
        ) from error


def section_or_reason(maker: Maker, study: Study) -> Section:
    """Make a section, or say why there is none."""
    try:
        return maker(study)
    except UndefinedScore as reason:
        made = maker.func if isinstance(maker, partial) else maker
        return Section(" ".join((made.__doc__ or "").split()).rstrip("."), f"Left out: {reason}\n")
    finally:
        advance(1)


def page(study: Study, sections: list[Section]) -> str:
    """Return the whole page."""
    explained = study.table[["task", "model", "explainer", "case"]].drop_duplicates()
    networks = explained[["task", "model"]].drop_duplicates()
    head = (
        "# Analysis\n\n"
        f"{len(study.tasks)} tasks, {len(networks)} tasks and models, "
        f"{len(study.explainers)} explainers, {len(explained):,} explanations scored. "
        "docs/analysis.md of graphgauge says how each number is computed.\n"
    )
    return head + "".join(f"\n## {section.heading}\n\n{section.text}" for section in sections)


# --- sections -------------------------------------------------------------------------------------


def table_section(study: Study) -> Section:
    """Table 1."""
    paper, twins = table_1(study), table_1(study, "calibrated")
    text = (
        "Means ± SD over data sets and models; in brackets the number of targets with a value. "
        "Best in bold.\n\n"
        f"{paper.as_markdown()}\nWith the calibrated twins of pertinence and stability (*):\n\n"
        f"{twins.as_markdown()}"
    )
    files = {
        f"table_1{name}.csv": made.as_csv() for name, made in (("", paper), ("_calibrated", twins))
    }
    files |= {
        f"table_1{name}.tex": made.as_latex()
        for name, made in (("", paper), ("_calibrated", twins))
    }
    return Section("Table 1", text, files)


def comparison_section(study: Study, draws: int, seed: int) -> Section:
    """Beside the paper."""
    comparison = compare_with_paper(study, draws, seed)
    cells_off = comparison.disagreements[
        ["kind", "metric", "label", "ours", "paper", "difference", "reason"]
    ]
    disagreements = as_markdown(cells_off) if len(cells_off) else "None.\n"
    compared = [metric for metric in METRICS if (comparison.cells["metric"] == metric).any()]
    beside = "\n".join(
        f"{METRICS[metric]}, ours / the paper's:\n\n{as_markdown(comparison.side_by_side(metric))}"
        for metric in compared
    )
    text = (
        f"{as_markdown(comparison.claims())}\n{beside}\n{as_markdown(comparison.orders)}\n"
        f"{len(cells_off)} of {len(comparison.cells)} cells disagree "
        f"(by more than 0.1, 10 edits, or a factor of 3 in time):\n\n{disagreements}"
    )
    files = {
        "comparison_cells.csv": comparison.cells,
        "comparison_orders.csv": comparison.orders,
        "disagreements.csv": comparison.disagreements,
    }
    return Section("Beside the paper", text, {name: as_csv(table) for name, table in files.items()})


def front_section(study: Study, draws: int, seed: int) -> Section:
    """Pareto fronts."""
    table, robust = (
        fronts(study, draws=draws, seed=seed),
        robustly_non_dominated(study, draws=draws, seed=seed),
    )
    of_kinds = table[(table["scope"] == "kind") & table["front"]]
    columns = [
        "name",
        "first",
        "second",
        "explainer",
        "first_mean",
        "second_mean",
        "share",
        "paper_front",
    ]
    everywhere = (
        robust[robust["pair"] == ALL_PAIRS].drop(columns="pair").rename(columns={"tasks": "fronts"})
    )
    in_every_task = robust[robust["robust"] & (robust["pair"] != ALL_PAIRS)]
    text = (
        "On the front of each kind of task; share: of bootstrap draws in which it is.\n\n"
        f"{as_markdown(of_kinds[columns])}\nOn the front in every task:\n\n"
        f"{as_markdown(in_every_task) if robust['robust'].any() else 'None.' + chr(10)}"
        f"\nOver all pairs of metrics and all tasks:\n\n{as_markdown(everywhere)}"
    )
    return Section(
        "Pareto fronts",
        text,
        {"fronts.csv": as_csv(table), "robustly_non_dominated.csv": as_csv(robust)},
    )


def ranking_section(study: Study, draws: int, seed: int) -> Section:
    """Which explainer is best."""
    best, pairs = [], []
    for kind in study.kinds:
        of_kind = study.only(kind=kind)
        for metric in (metric for metric in RANKED if metric in of_kind.by_metric):
            try:
                ranks = ranking(of_kind, metric, draws=draws, seed=seed)
            except UndefinedScore:
                continue
            place = {
                "kind": kind,
                "metric": metric,
                "targets": ranks.targets,
                "configurations": ranks.configurations,
            }
            best.append({**place, **ranks.best.to_dict()})
            pairs.append(ranks.as_table().assign(kind=kind, metric=metric))
    if not best:
        raise UndefinedScore(
            "in no kind of task do all explainers have values for the same targets."
        )
    text = (
        "Share of bootstrap draws in which each explainer is best, on the targets that all "
        "have:\n\n" + as_markdown(pd.DataFrame(best), 2)
    )
    return Section(
        "Which explainer is best",
        text,
        {"best.csv": as_csv(pd.DataFrame(best)), "pairs.csv": as_csv(pd.concat(pairs))},
    )


def agreement_section(study: Study, draws: int, seed: int) -> Section:
    """Fidelity beside Pertinence and EC."""
    table = agreement(study, draws=draws, seed=seed)
    whole = table[(table["kind"] == "all") & (table["explainer"] == "all")].drop(
        columns=["kind", "explainer"]
    )
    text = (
        "Spearman's ρ, over targets (within explainer, task and model) and over the explainers' "
        "means:\n\n" + as_markdown(whole)
    )
    return Section("Fidelity beside Pertinence and EC", text, {"agreement.csv": as_csv(table)})


def effort_section(study: Study) -> Section:
    """Effort."""
    measured = effort(study)
    text = "\n".join(map(as_markdown, (measured.trials, measured.stops, measured.explanations)))
    files = {
        "trials.csv": measured.trials,
        "stops.csv": measured.stops,
        "explanations.csv": measured.explanations,
    }
    return Section("Effort", text, {name: as_csv(table) for name, table in files.items()})


def summary_section(study: Study) -> Section:
    """Summary."""
    table = summary_table(study)
    text = (
        f"`summary.csv` has mean, sd and n of {table['metric'].nunique()} metrics for each kind of "
        "task and each task.\n"
    )
    return Section("Summary", text, {"summary.csv": as_csv(table)})


def picture_section(pictures: list[Path]) -> Section:
    """The pictures of the fronts."""
    shown = [path.name for path in pictures if path.suffix == ".png"]
    return Section(
        "Pictures",
        "".join(f"![{name}]({name})\n\n" for name in shown)
        or "None: no pair of metrics was measured.\n",
    )


# --- files ----------------------------------------------------------------------------------------


def write_pictures(study: Study, place: Path, draws: int, seed: int) -> Iterator[Path]:
    """Draw the fronts of each kind of task and of each task, as PNG and SVG."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    for name, part in {name: part for _, name, part in scopes(study)}.items():
        try:
            figure = plot_fronts(part, shown_kind(name), draws=min(draws, 500), seed=seed)
        except UndefinedScore:
            continue
        for suffix, without in ((".png", {}), (".svg", {"Date": None})):
            path = place / f"fronts_{file_name(name)}{suffix}"
            with mpl.rc_context({"svg.hashsalt": name}):
                figure.savefig(path, dpi=120, metadata=without)
            yield path
        plt.close(figure)


def file_name(name: str) -> str:
    """Return a file name that every file system accepts.

    >>> file_name("BA-Shapes/node")
    'ba-shapes-node'
    """
    return re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-") or "task"


def as_csv(table: pd.DataFrame) -> str:
    """Write a table as CSV, with numbers to the last bit."""
    return table.to_csv(index=False, lineterminator="\n")


def write_text(path: Path, text: str) -> Path:
    """Write a file, and return its path."""
    path.write_text(text, encoding="utf-8")
    return path
