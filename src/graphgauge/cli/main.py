"""The `graphgauge` command. Heavy imports happen inside the commands, so that help answers at once."""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from graphgauge import __version__
from graphgauge.cli.answering import audit, serve
from graphgauge.cli.conventions import run_app
from graphgauge.cli.dashboard import dashboard
from graphgauge.cli.monitor import commands as monitor_commands
from graphgauge.cli.own_model import COMMANDS

#: as `--help` lists them: first steps, your own model, in production, the paper
ORDER = """demo consult init doctor evaluate explain report check validate sign serve audit monitor dashboard documents
benchmark analyse datasets train explainers""".split()


class InOrder(TyperGroup):
    """Commands in the order in which people need them."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Known ones first."""
        return sorted(
            self.commands, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER)
        )


app = typer.Typer(
    cls=InOrder,
    help="Measure how good the explanations of a graph neural network are, without ground truth.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(monitor_commands, name="monitor")


def show_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        typer.echo(f"graphgauge {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Options before the command."""


@app.command()
def demo(
    targets: Annotated[
        str, typer.Option(help="Nodes to look at, such as 0,302,510.")
    ] = "0,302,510,604,699",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the graph and of the training.")] = 1,
    report: Annotated[str, typer.Option(help="Where the report goes.")] = "report.html",
    number: Annotated[int, typer.Option(min=1, help="Targets to measure explainers on.")] = 20,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Train a small GCN on a generated BA-Shapes graph, show what decides its predictions, and
    which explainer says so best.
    """
    from graphgauge.cli.demo import as_json, as_text, run_demo

    shown = run_demo(read_list(targets), seed, report, number)
    typer.echo(as_json(shown) if json else as_text(shown))


@app.command()
def explainers(
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List the explainers that can be used by name."""
    from graphgauge.cli.explainers import as_json, as_text, listed

    rows = listed()
    typer.echo(as_json(rows) if json else as_text(rows))


@app.command()
def datasets(
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    data: Annotated[
        str | None,
        typer.Option(help="Folder with the raw files; else GRAPHGAUGE_DATA, else the cache."),
    ] = None,
) -> None:
    """List the data sets of the paper, and whether their files are there."""
    from graphgauge.cli.datasets import as_json, as_text, listed

    rows = listed(data)
    typer.echo(as_json(rows) if json else as_text(rows))


@app.command()
def train(
    task: Annotated[
        str, typer.Argument(help="Such as cora-node-gcn, cora-node (both networks) or all.")
    ],
    data: Annotated[
        str | None, typer.Option(help="Folder with the data sets (default: GRAPHGAUGE_DATA).")
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="Such as cpu or cuda (default: cuda where there is one).")
    ] = None,
    folder: Annotated[
        str | None, typer.Option(help="Where finished runs are kept (default: the cache folder).")
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(help="Write the chosen network (.toml and .safetensors) to this folder."),
    ] = None,
    decoder_bias: Annotated[
        bool, typer.Option("--decoder-bias", help="Also try inner products plus a learned number.")
    ] = False,
    seed: Annotated[
        int,
        typer.Option(
            min=0, help="Seed of the grid; the next five are those of the chosen network."
        ),
    ] = 0,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs at most.")] = 200,
    patience: Annotated[
        int, typer.Option(min=1, help="Epochs without a lower loss before training stops.")
    ] = 10,
    watch: Annotated[
        str, typer.Option(help="Whose loss early stopping watches: val or train.")
    ] = "val",
    points: Annotated[
        int | None, typer.Option(min=1, help="Try so many points of the grid, not all.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Search the paper's grid for its networks, and train the best again with five seeds."""
    from graphgauge.cli.train import places, show_training
    from graphgauge.datasets.grid import Search
    from graphgauge.datasets.stopping import Stopping

    wanted = Search(Stopping(epochs, patience, watch), seed, points, decoder_bias)
    if failed := show_training(task, wanted, places(data, device, folder, keep), json):
        typer.echo(f"graphgauge: error: no network was made for {', '.join(failed)}", err=True)
        raise typer.Exit(1)


@app.command()
def analyse(
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
    from graphgauge.cli.analyse import as_json, as_text, run_analysis

    paths = run_analysis(run, output, draws, seed, variants)
    typer.echo(as_json(paths) if json else as_text(paths))


@app.command()
def check(
    run: Annotated[
        str,
        typer.Argument(
            help="Folder with results: of evaluate, benchmark or Results.save, or a published run."
        ),
    ],
    explainer: Annotated[
        list[str] | None,
        typer.Option(help="Check only this one (may be repeated); else all but random."),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(help="Kind of task, such as link-regression; else seen from the run."),
    ] = None,
    stakes: Annotated[str | None, typer.Option(help="standard (usual) or high-stakes.")] = None,
    latency: Annotated[
        str | None, typer.Option(help="interactive, batch or offline; else the paper's 5 s.")
    ] = None,
    features: Annotated[
        int | None, typer.Option(min=1, help="Number of features; limits are shares of it.")
    ] = None,
    focus: Annotated[
        str | None, typer.Option(help="feature or edge: judge that side only.")
    ] = None,
    decision: Annotated[
        str | None, typer.Option(help="Take thresholds and explainer from this decision file.")
    ] = None,
    other_data: Annotated[
        bool, typer.Option("--other-data", help="With --decision: the run may be on other data.")
    ] = False,
    junit: Annotated[
        str | None, typer.Option(help="Also write the verdicts to this JUnit XML file.")
    ] = None,
    annotations: Annotated[
        bool, typer.Option("--annotations", help="Also print GitHub annotations to stderr.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Compare a stored run with thresholds (its own, if any): exit code 0 pass, 1 below threshold,
    2 usage, 3 incomplete.
    """
    from graphgauge.cli.check import agreed, as_json, as_text, gated, run_check, write_for_pipelines
    from graphgauge.evaluation import Results
    from graphgauge.lifecycle.decision import Decision

    given = {
        "task_kind": task,
        "stakes": stakes,
        "latency": latency,
        "num_features": features,
        "focus": focus,
    }
    decided = None if decision is None else Decision.read(decision)
    wanted, chosen = agreed(run, decided, given, explainer or [])
    results = Results.load(run)
    found = gated(run_check(results, wanted, chosen, decided, other_data), decided)
    accuracy = results.accuracy or (None if decided is None else decided.accuracy_of_model())
    write_for_pipelines(found, junit, annotations)
    typer.echo(as_json(found, wanted, accuracy) if json else as_text(found, accuracy))
    raise typer.Exit(found.code)


@app.command()
def validate(
    config: Annotated[str, typer.Argument(help="A project file, my.yaml.")],
    output: Annotated[
        str | None,
        typer.Option(help="Folder for the files (default: 'validation' beside the config)."),
    ] = None,
    signed_by: Annotated[
        str, typer.Option(help="Who answers for the decision; else sign later.")
    ] = "",
    days: Annotated[int, typer.Option(min=1, help="Days until the decision expires.")] = 180,
    accuracy: Annotated[
        float | None, typer.Option(help="Of the network, from 0 to 1 (default: from the data).")
    ] = None,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="Take the place of a validation in the folder; a signed one is kept in 'earlier'.",
        ),
    ] = False,
    mlflow: Annotated[
        str | None, typer.Option(help="Also log to this MLflow store, such as sqlite:///runs.db.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Measure the project's explainers, or a shortlist, on its data, choose one, write the
    decision. Exit codes as for check.
    """
    from graphgauge.cli.validate import as_json, as_text, output_folder, run_validation, tracked
    from graphgauge.lifecycle.project import Project
    from graphgauge.lifecycle.tracking import client_for
    from graphgauge.lifecycle.validation import Terms

    if mlflow is not None:
        client_for(mlflow)  # a missing package is told before the work
    project = Project.read(config)
    folder = output_folder(config, output, replace)  # before an hour of measuring
    found = run_validation(project, Terms(signed_by, days, accuracy))
    found.save(folder, replace=replace)
    if mlflow is not None:
        typer.echo(f"MLflow run {tracked(found, folder, mlflow)}", err=True)
    typer.echo(as_json(found, folder) if json else as_text(found, folder))
    raise typer.Exit(found.check.code)


@app.command()
def sign(
    decision: Annotated[
        str, typer.Argument(help="A decision file, or the folder of a validation.")
    ],
    by: Annotated[str, typer.Option(help="The name of who answers for it.")],
    again: Annotated[
        bool,
        typer.Option(
            "--again", help="Sign although somebody has; the earlier name is kept in the file."
        ),
    ] = False,
) -> None:
    """Put a name under a decision, after reading validation.md."""
    from graphgauge.cli.validate import sign as put_name

    signed = put_name(decision, by, again)
    typer.echo(
        f"{signed.label}: signed by {signed.signed_by}, holds until {signed.expires}, digest {signed.digest}"
    )


@app.command()
def documents(
    run: Annotated[str, typer.Argument(help="Folder of a validation, a run, or saved results.")],
    output: Annotated[str, typer.Option(help="Folder for the documents.")],
    decision: Annotated[
        str | None, typer.Option(help="A decision file (default: the one in the run's folder).")
    ] = None,
    system: Annotated[str, typer.Option(help="Name of the system.")] = "",
    contact: Annotated[str, typer.Option(help="Who answers questions.")] = "",
    classification: Annotated[
        str, typer.Option(help="Classification as the owner states it; printed as the owner's.")
    ] = "",
    audit_log: Annotated[str, typer.Option(help="Where the log of answers is.")] = "",
    monitor: Annotated[
        str,
        typer.Option(
            help="A store of `graphgauge monitor`, for the monitoring plan and the checklist."
        ),
    ] = "",
    evidence: Annotated[
        list[str] | None,
        typer.Option(help="POINT=FILE for a point of the checklist (may be repeated)."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the written files as JSON.")] = False,
) -> None:
    """Write model card section, instructions for use, Annex IV tables, monitoring plan, checklist
    and audit trail.
    """
    from graphgauge.cli.documents import (
        as_json,
        as_text,
        missing_files,
        read_evidence,
        run_documents,
    )
    from graphgauge.lifecycle.documents import Owner

    owner = Owner(
        system, contact, classification, audit_log, read_evidence(evidence or []), monitor
    )
    paths = run_documents(run, output, decision, owner)
    for missing in missing_files(owner.evidence):
        typer.echo(f"graphgauge: note: {missing}", err=True)
    typer.echo(as_json(paths) if json else as_text(paths))


@app.command()
def consult(
    task: Annotated[
        str,
        typer.Argument(
            help="node-classification, node-regression, link-classification or link-regression."
        ),
    ],
    stakes: Annotated[str, typer.Option(help="standard or high-stakes.")] = "standard",
    latency: Annotated[
        str | None, typer.Option(help="interactive, batch or offline; else the paper's 5 s.")
    ] = None,
    features: Annotated[
        int | None, typer.Option(min=1, help="Number of features; limits are shares of it.")
    ] = None,
    focus: Annotated[
        str | None, typer.Option(help="feature or edge: judge that side only.")
    ] = None,
    requirements: Annotated[
        str | None, typer.Option(help="Also write the requirements document to this Markdown file.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Say which explainer to begin with, from a benchmark, before anything of your own was
    measured.
    """
    from graphgauge.cli.consult import as_json, as_text, run_consult
    from graphgauge.guidelines import Requirements

    wanted = Requirements(None, stakes, latency, features, focus=focus)
    found = run_consult(task, wanted, requirements)
    typer.echo(as_json(found) if json else as_text(found))


@app.command()
def report(
    run: Annotated[str, typer.Argument(help="Folder of a run, or of saved results.")],
    output: Annotated[
        str | None, typer.Option(help="File to write (default: report.html in the run's folder).")
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(help="html, md, json, csv or pdf (default: as the file is called)."),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(help="Kind of task, such as link-regression; else seen from the run."),
    ] = None,
    stakes: Annotated[
        str | None, typer.Option(help="standard or high-stakes (default: as the run was judged).")
    ] = None,
    latency: Annotated[
        str | None, typer.Option(help="interactive, batch or offline; else the paper's 5 s.")
    ] = None,
    features: Annotated[
        int | None, typer.Option(min=1, help="Number of features; limits are shares of it.")
    ] = None,
    focus: Annotated[
        str | None, typer.Option(help="feature or edge: judge that side only.")
    ] = None,
    accuracy: Annotated[
        float | None,
        typer.Option(help="Of the model on its task, from 0 to 1 (default: as in the run)."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="What stands at the top of the page.")] = None,
    language: Annotated[
        str, typer.Option(help="Of sentences on single explanations: en, it, de, fr or es.")
    ] = "en",
    audience: Annotated[
        str, typer.Option(help="Of these sentences: expert, internal or affected_person.")
    ] = "expert",
) -> None:
    """Write the report of a stored run: one page that says which explainer to trust, and why."""
    from graphgauge.cli.report import run_report

    asked = {
        "task_kind": task,
        "stakes": stakes,
        "latency": latency,
        "num_features": features,
        "focus": focus,
    }
    told = {"accuracy": accuracy, "title": title, "language": language, "audience": audience}
    typer.echo(run_report(run, output, format, asked, told))


@app.command()
def benchmark(
    experiment: Annotated[
        str, typer.Argument(help="A shipped experiment (see --list) or a file, my.yaml.")
    ] = "quick",
    folder: Annotated[
        str | None, typer.Option(help="Where the run is kept (default: runs/NAME).")
    ] = None,
    engine: Annotated[str, typer.Option(help="inline, processes, dask or ray.")] = "processes",
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Processes (default: one for each core; one on a GPU)."),
    ] = None,
    address: Annotated[str | None, typer.Option(help="Of a running Dask or Ray cluster.")] = None,
    device: Annotated[
        str | None, typer.Option(help="Such as cpu or cuda (default: cuda where there is one).")
    ] = None,
    targets: Annotated[
        int | None,
        typer.Option(min=1, help="Targets per task, instead of what the experiment says."),
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="Folder with the data sets (default: GRAPHGAUGE_DATA).")
    ] = None,
    networks: Annotated[
        str | None, typer.Option(help="Folder with kept networks (default: those of the library).")
    ] = None,
    memory: Annotated[
        str | None, typer.Option(help="Memory that a worker's batches may take, such as 2GiB.")
    ] = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="Remove the run in the folder and start over.")
    ] = False,
    retry: Annotated[
        bool, typer.Option("--retry", help="Also measure again what failed or took too long.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say how much there is to do.")
    ] = False,
    mlflow: Annotated[
        str | None, typer.Option(help="Also log to this MLflow store, such as sqlite:///runs.db.")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the shipped experiments.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Measure many explainers on many tasks and networks. Can be stopped at any time; the same
    command continues.
    """
    from graphgauge.cli import benchmark as bench

    if list_:
        rows = bench.listed()
        typer.echo(bench.as_json(rows) if json else bench.list_text(rows))
        return
    place = bench.place_of(data, networks, device, memory)
    chosen = bench.chosen_engine(engine, workers, address, place)
    plan = bench.planned(experiment, place, targets)
    if dry_run:
        found = bench.dry(plan)
        typer.echo(bench.as_json(found) if json else bench.dry_text(found))
        return
    if mlflow is not None:
        bench.check_store(mlflow)
    run = bench.run_plan(plan, bench.call_of(plan, folder, place, restart, retry), chosen)
    if run is None:
        raise typer.Exit(bench.STOPPED)
    if mlflow is not None:
        bench.tell(f"MLflow run {bench.tracked(run, mlflow)}")
    typer.echo(bench.as_json(bench.summary(run)) if json else bench.summary_text(run))


def read_list(text: str) -> list[int | str]:
    """Comma-separated numbers; what is no number stays text, so that the library can refuse it by
    name.
    """
    return [read_number(part.strip()) for part in text.split(",") if part.strip()]


def read_number(text: str) -> int | str:
    """A whole number, or the text as it is."""
    try:
        return int(text)
    except ValueError:
        return text


for command in (*COMMANDS, serve, dashboard):
    app.command()(command)
app.add_typer(audit, name="audit")


def main() -> None:
    """Run the command line; our own errors become one line and exit code 2."""
    run_app(app)
