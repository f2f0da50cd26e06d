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

from graphgauge.benchmark import (
    ALL_PAIRS,
    TABLE_COLUMNS,
    Study,
    agreement,
    analysis_scopes,
    as_study,
    compare_with_paper,
    effort,
    format_markdown,
    fronts,
    kind_title,
    ranking,
    robustly_non_dominated,
    summary_table,
    table_1,
)
from graphgauge.core import BadFile, UndefinedScore, advance_progress, progress_bar
from graphgauge.evaluation import Results
from graphgauge.plots import plot_fronts

_RANKED_METRICS = ("feature_pertinence", "edge_pertinence", "feature_ec", "edge_ec")
ANALYSIS_PAGE = "analysis.md"


@dataclass(frozen=True)
class _AnalysisSection:
    """One part of the page: a heading, text in Markdown, and the files that belong to it."""

    heading: str
    text: str
    files: dict[str, str] = field(default_factory=dict)  #: name -> content


_SectionMaker = Callable[[Study], _AnalysisSection]


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

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = gg.write_analysis(results, folder, draws=20)
    >>> "analysis.md" in [path.name for path in paths]
    True
    """
    study, place = as_study(results), Path(folder)
    drawing = (_comparison_section, _front_section, _ranking_section)
    makers: list[_SectionMaker] = [
        _table_section,
        *(partial(maker, draws=draws, seed=seed) for maker in drawing),
    ]
    makers += [
        partial(_agreement_section, draws=min(draws, 500), seed=seed),
        _effort_section,
        _summary_section,
    ]
    try:
        place.mkdir(parents=True, exist_ok=True)
        with progress_bar(len(makers) + 1, "analyse"):
            sections = [_make_section(maker, study) for maker in makers]
            pictures = list(_write_front_pictures(study, place, draws, seed))
            advance_progress(1)
        files = {name: text for section in sections for name, text in section.files.items()}
        files[ANALYSIS_PAGE] = _assemble_page(study, [*sections, _picture_section(pictures)])
        return [*(_write_text_file(place / name, text) for name, text in files.items()), *pictures]
    except OSError as error:
        raise BadFile(
            f"the analysis could not be written into {os.fspath(folder)}: {error}."
        ) from error


def _make_section(maker: _SectionMaker, study: Study) -> _AnalysisSection:
    """Make a section, or say why there is none."""
    try:
        return maker(study)
    except UndefinedScore as reason:
        made = maker.func if isinstance(maker, partial) else maker
        return _AnalysisSection(
            " ".join((made.__doc__ or "").split()).rstrip("."), f"Left out: {reason}\n"
        )
    finally:
        advance_progress(1)


def _assemble_page(study: Study, sections: list[_AnalysisSection]) -> str:
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


def _table_section(study: Study) -> _AnalysisSection:
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
    return _AnalysisSection("Table 1", text, files)


def _comparison_section(study: Study, draws: int, seed: int) -> _AnalysisSection:
    """Beside the paper."""
    comparison = compare_with_paper(study, draws, seed)
    cells_off = comparison.disagreements[
        ["kind", "metric", "label", "ours", "paper", "difference", "reason"]
    ]
    disagreements = format_markdown(cells_off) if len(cells_off) else "None.\n"
    compared = [metric for metric in TABLE_COLUMNS if (comparison.cells["metric"] == metric).any()]
    beside = "\n".join(
        (
            f"{TABLE_COLUMNS[metric]}, ours / the paper's:\n\n"
            f"{format_markdown(comparison.side_by_side(metric))}"
        )
        for metric in compared
    )
    text = (
        f"{format_markdown(comparison.claims())}\n{beside}\n{format_markdown(comparison.orders)}\n"
        f"{len(cells_off)} of {len(comparison.cells)} cells disagree "
        f"(by more than 0.1, 10 edits, or a factor of 3 in time):\n\n{disagreements}"
    )
    files = {
        "comparison_cells.csv": comparison.cells,
        "comparison_orders.csv": comparison.orders,
        "disagreements.csv": comparison.disagreements,
    }
    return _AnalysisSection(
        "Beside the paper", text, {name: _table_as_csv(table) for name, table in files.items()}
    )


def _front_section(study: Study, draws: int, seed: int) -> _AnalysisSection:
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
        f"{format_markdown(of_kinds[columns])}\nOn the front in every task:\n\n"
        f"{format_markdown(in_every_task) if robust['robust'].any() else 'None.' + chr(10)}"
        f"\nOver all pairs of metrics and all tasks:\n\n{format_markdown(everywhere)}"
    )
    return _AnalysisSection(
        "Pareto fronts",
        text,
        {"fronts.csv": _table_as_csv(table), "robustly_non_dominated.csv": _table_as_csv(robust)},
    )


def _ranking_section(study: Study, draws: int, seed: int) -> _AnalysisSection:
    """Which explainer is best."""
    best, pairs = [], []
    for kind in study.kinds:
        of_kind = study.only(kind=kind)
        for metric in (metric for metric in _RANKED_METRICS if metric in of_kind.by_metric):
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
        "have:\n\n" + format_markdown(pd.DataFrame(best), 2)
    )
    return _AnalysisSection(
        "Which explainer is best",
        text,
        {
            "best.csv": _table_as_csv(pd.DataFrame(best)),
            "pairs.csv": _table_as_csv(pd.concat(pairs)),
        },
    )


def _agreement_section(study: Study, draws: int, seed: int) -> _AnalysisSection:
    """Fidelity beside Pertinence and EC."""
    table = agreement(study, draws=draws, seed=seed)
    whole = table[(table["kind"] == "all") & (table["explainer"] == "all")].drop(
        columns=["kind", "explainer"]
    )
    text = (
        "Spearman's ρ, over targets (within explainer, task and model) and over the explainers' "
        "means:\n\n" + format_markdown(whole)
    )
    return _AnalysisSection(
        "Fidelity beside Pertinence and EC", text, {"agreement.csv": _table_as_csv(table)}
    )


def _effort_section(study: Study) -> _AnalysisSection:
    """Effort."""
    measured = effort(study)
    text = "\n".join(map(format_markdown, (measured.trials, measured.stops, measured.explanations)))
    files = {
        "trials.csv": measured.trials,
        "stops.csv": measured.stops,
        "explanations.csv": measured.explanations,
    }
    return _AnalysisSection(
        "Effort", text, {name: _table_as_csv(table) for name, table in files.items()}
    )


def _summary_section(study: Study) -> _AnalysisSection:
    """Summary."""
    table = summary_table(study)
    text = (
        f"`summary.csv` has mean, sd and n of {table['metric'].nunique()} metrics for each kind of "
        "task and each task.\n"
    )
    return _AnalysisSection("Summary", text, {"summary.csv": _table_as_csv(table)})


def _picture_section(pictures: list[Path]) -> _AnalysisSection:
    """The pictures of the fronts."""
    shown = [path.name for path in pictures if path.suffix == ".png"]
    return _AnalysisSection(
        "Pictures",
        "".join(f"![{name}]({name})\n\n" for name in shown)
        or "None: no pair of metrics was measured.\n",
    )


# --- files ----------------------------------------------------------------------------------------


def _write_front_pictures(study: Study, place: Path, draws: int, seed: int) -> Iterator[Path]:
    """Draw the fronts of each kind of task and of each task, as PNG and SVG."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    scopes = {_safe_file_name(name): (name, part) for _, name, part in analysis_scopes(study)}
    for file_name, (name, part) in scopes.items():
        try:
            figure = plot_fronts(part, kind_title(name), draws=min(draws, 500), seed=seed)
        except UndefinedScore:
            continue
        for suffix, without in ((".png", {}), (".svg", {"Date": None})):
            path = place / f"fronts_{file_name}{suffix}"
            with mpl.rc_context({"svg.hashsalt": name}):
                figure.savefig(path, dpi=120, metadata=without)
            yield path
        plt.close(figure)


def _safe_file_name(name: str) -> str:
    """Return a file name that every file system accepts.

    >>> _safe_file_name("BA-Shapes/node")
    'ba-shapes-node'
    """
    return re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-") or "task"


def _table_as_csv(table: pd.DataFrame) -> str:
    """Write a table as CSV, with numbers to the last bit."""
    return table.to_csv(index=False, lineterminator="\n")


def _write_text_file(path: Path, text: str) -> Path:
    """Write a file, and return its path."""
    path.write_text(text, encoding="utf-8")
    return path
