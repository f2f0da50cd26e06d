"""The benchmark on the command line: progress on stderr, the summary on stdout."""

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphgauge.benchmark import (
    BenchmarkRun,
    Engine,
    RunEnvironment,
    RunOptions,
    RunPlan,
    absolute_folder,
    create_engine,
    execute_plan,
    format_duration,
    plan_run,
    read_experiment,
    shipped_experiments,
)
from graphgauge.cli.console import sigterm_as_ctrl_c
from graphgauge.core import BadFile, JsonObject, resolve_device
from graphgauge.evaluation import NAN_ATTRIBUTION, STATUSES, Results

if TYPE_CHECKING:
    import pandas as pd

_SECONDS_BETWEEN_LINES = 20.0
_MIN_SHARE_SHOWN = 0.005  #: of the work, to be told
_STOPPED_EXIT_CODE = 130  #: exit code after Ctrl-C or SIGTERM


def _plan_experiment(name: str, place: RunEnvironment, targets: int | None) -> RunPlan:
    """The shards of an experiment."""
    return plan_run(
        read_experiment(name, {} if targets is None else {"targets.number": targets}), place
    )


def _build_environment(
    data: str | None, networks: str | None, device: str | None, memory: str | None
) -> RunEnvironment:
    """Where workers find things and compute."""
    return RunEnvironment(
        absolute_folder(data), absolute_folder(networks), str(resolve_device(device)), memory
    )


def _select_engine(
    name: str, workers: int | None, address: str | None, place: RunEnvironment
) -> Engine:
    """The engine asked for; on a GPU one process, unless said otherwise."""
    is_gpu = place.device.startswith("cuda")
    return create_engine(
        name, workers or (1 if is_gpu and name == "processes" else None), address, is_gpu
    )


def _build_call(
    plan: RunPlan, folder: str | None, place: RunEnvironment, restart: bool, retry: bool = False
) -> RunOptions:
    """Where the run is kept, and what is done with what is there."""
    return RunOptions(
        Path(folder) if folder else Path("runs") / plan.experiment.name, place, restart, retry
    )


def _run_plan(plan: RunPlan, call: RunOptions, engine: Engine) -> BenchmarkRun | None:
    """Carry it out; None after Ctrl-C or SIGTERM."""
    reporter = _ProgressReporter(plan.size)
    try:
        with sigterm_as_ctrl_c(), engine:
            return execute_plan(plan, call, engine, reporter)
    except KeyboardInterrupt:
        _print_note(f"stopped: {_kept_shards_text(call.folder)}")
        return None


def _kept_shards_text(folder: Path) -> str:
    """What a run that was stopped leaves, also if it had not begun yet."""
    try:
        done, all_shards = BenchmarkRun(folder).num_shards
    except BadFile:
        return f"nothing is kept in {folder} yet. The same command begins."
    return f"{done} of {all_shards} shards are kept in {folder}. The same command continues."


class _ProgressReporter:
    """A line on stderr now and then; a bar where somebody looks."""

    def __init__(self, size: int) -> None:
        from tqdm.auto import tqdm

        self.bar = tqdm(
            total=size,
            disable=None,
            leave=False,
            bar_format="{percentage:3.0f}%|{bar}| {elapsed}{postfix}",
            file=sys.stderr,
        )
        self.size, self.done, self.last, self.start = size, 0.0, 0.0, time.monotonic()

    def __call__(self, text: str, size: float) -> None:
        self.done += size
        if not self.bar.disable:
            self.bar.set_postfix_str(text, refresh=False)
            self.bar.update(size)
        elif time.monotonic() - self.last > _SECONDS_BETWEEN_LINES or self.done >= self.size:
            self.last = time.monotonic()
            _print_note(
                f"{self.done:.0f} of {self.size} explanations after "
                f"{format_duration(self.last - self.start)}: {text}"
            )
        if self.done >= self.size:
            self.bar.close()


def _check_mlflow_store(uri: str) -> None:
    """Refuse a store that cannot be opened, or a missing package, before the work."""
    from graphgauge.lifecycle import mlflow_client

    mlflow_client(uri)


def _log_benchmark_to_mlflow(run: BenchmarkRun, uri: str) -> str:
    """The run in MLflow, with its experiment file; the id it has there."""
    from graphgauge.lifecycle import Tracker, existing_files

    tracker = Tracker(uri, "graphgauge-benchmark", name=run.folder.name)
    return tracker(
        run.results(),
        {"finished": run.is_finished},
        existing_files(run.folder, ["experiment.yaml"]),
    )


def _print_note(text: str) -> None:
    """To people, not to programs."""
    print(text, file=sys.stderr, flush=True)


# --- what is shown --------------------------------------------------------------------------------


def _list_experiments() -> list[JsonObject]:
    """The shipped experiments."""
    return [_experiment_record(name, read_experiment(name)) for name in shipped_experiments()]


def _experiment_record(name: str, experiment: Any) -> JsonObject:
    """What people see of an experiment."""
    return {
        "name": name,
        "tasks": len(experiment.tasks),
        "models": len(experiment.models),
        "explainers": len(experiment.explainers),
        "targets": experiment.targets.number,
        "description": experiment.description,
    }


def _experiments_text(rows: list[JsonObject]) -> str:
    """The list for people."""
    line = "{name:<18}{tasks:>6}{models:>8}{explainers:>12}{targets:>9}  {description}"
    heading = line.format(**{name: name for name in rows[0]})
    return "\n".join([heading, *(line.format(**row) for row in rows)])


def _plan_record(plan: RunPlan) -> JsonObject:
    """What a run would do."""
    settings = plan.experiment.full_settings
    return {
        "experiment": plan.experiment.name,
        "shards": len(plan.shards),
        "explanations": plan.size,
        "rows": sum(
            len(shard.explainers) * len(shard.metrics_of(target))
            for shard in plan.shards
            for target in shard.targets
        ),
        "settings": settings.digest,
        "tasks": _task_sizes(plan),
    }


def _task_sizes(plan: RunPlan) -> dict[str, int]:
    """Explanations of each task and network."""
    found: dict[str, int] = {}
    for shard in plan.shards:
        group = f"{shard.task} {shard.model}"
        found[group] = found.get(group, 0) + shard.size
    return found


def _plan_text(found: JsonObject) -> str:
    """The same for people."""
    lines = [
        (
            f"{found['experiment']}: {found['explanations']} explanations in {found['shards']} "
            f"shards, {found['rows']} rows"
        )
    ]
    return "\n".join([*lines, *(f"  {name:<24}{size:>8}" for name, size in found["tasks"].items())])


def _run_record(run: BenchmarkRun) -> JsonObject:
    """The end of a run for programs."""
    results, shards = run.results(), run.shards()
    table = results.headline()
    return {
        "folder": str(run.folder),
        "finished": run.is_finished,
        "shards": len(shards),
        "rows": len(results),
        "seconds": float(shards["seconds"].sum()) if "seconds" in shards else 0.0,
        "phases": run.phases(),
        "faults": {**_nan_explainers(results), **_explainer_faults(shards)},
        "means": {
            str(name): {metric: _rounded_or_none(value) for metric, value in row.items()}
            for name, row in table.iterrows()
        },
    }


def _explainer_faults(shards: "pd.DataFrame") -> dict[str, str]:
    """Explainers that could not be measured everywhere, with the first reason."""
    found: dict[str, str] = {}
    for own in shards.get("faults", []):
        for label, fault in own.items() if isinstance(own, dict) else ():
            found.setdefault(label, f"{fault['status']}: {fault['message']}")
    return found


def _nan_explainers(results: Results) -> dict[str, str]:
    """Explainers that gave scores which are no numbers: nothing failed, but there is no value."""
    return {
        row.explainer: f"{NAN_ATTRIBUTION}: {STATUSES[NAN_ATTRIBUTION]}"
        for row in results.rows
        if row.cell.status == NAN_ATTRIBUTION
    }


def _rounded_or_none(value: float) -> float | None:
    """JSON has no NaN."""
    return None if value != value else round(float(value), 6)


def _benchmark_json(found: Any) -> str:
    """For programs."""
    return json.dumps(found, indent=2, allow_nan=False)


def _run_summary_text(run: BenchmarkRun) -> str:
    """The end of a run for people: means over tasks and networks, what went wrong, where it is."""
    found, table = _run_record(run), run.results().headline()
    lines = [table.to_string(float_format=lambda value: f"{value:.3f}", na_rep="-"), ""]
    lines += [
        f"{label} could not be measured everywhere: {why}" for label, why in found["faults"].items()
    ]
    lines += _phases_text(found["phases"])
    lines.append(
        f"{found['rows']} rows from {found['shards']} shards, {format_duration(found['seconds'])} "
        f"of work, in {Path(run.folder)}"
    )
    return "\n".join(lines)


def _phases_text(phases: dict[str, float]) -> list[str]:
    """What the seconds went to, the most first; nothing where a run does not tell.

    >>> _phases_text({"timing": 0.001, "edge_curves": 1.0, "stability": 3.0})
    ['the work: stability 75%, edge curves 25%']
    """
    shares = {name: seconds / sum(phases.values()) for name, seconds in phases.items() if seconds}
    largest = sorted(
        (name for name in shares if shares[name] >= _MIN_SHARE_SHOWN),
        key=lambda name: -shares[name],
    )
    told = ", ".join(f"{name} {shares[name]:.0%}" for name in largest).replace("_", " ")
    return [f"the work: {told}"] if told else []


def benchmark_command(
    experiment: Annotated[
        str,
        typer.Argument(help="A shipped experiment (see --list) or a file, my.yaml."),
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
    if list_:
        rows = _list_experiments()
        typer.echo(_benchmark_json(rows) if json else _experiments_text(rows))
        return
    place = _build_environment(data, networks, device, memory)
    chosen = _select_engine(engine, workers, address, place)
    plan = _plan_experiment(experiment, place, targets)
    if dry_run:
        found = _plan_record(plan)
        typer.echo(_benchmark_json(found) if json else _plan_text(found))
        return
    if mlflow is not None:
        _check_mlflow_store(mlflow)
    run = _run_plan(plan, _build_call(plan, folder, place, restart, retry), chosen)
    if run is None:
        raise typer.Exit(_STOPPED_EXIT_CODE)
    if mlflow is not None:
        _print_note(f"MLflow run {_log_benchmark_to_mlflow(run, mlflow)}")
    typer.echo(_benchmark_json(_run_record(run)) if json else _run_summary_text(run))
