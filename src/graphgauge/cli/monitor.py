"""`graphgauge monitor`: take a baseline, look again from time to time, say what is due, write the page."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphgauge.cli.conventions import as_json, telling
from graphgauge.core.errors import BadFile, BadSetting
from graphgauge.core.registry import lookup

if TYPE_CHECKING:
    from graphgauge.explainers import BaseExplainer
    from graphgauge.lifecycle import Project
    from graphgauge.models import BaseModel
    from graphgauge.monitor import Monitor, Run, Status, Threshold

commands = typer.Typer(help="Watch a model in use: does the quality of its explanations hold?", no_args_is_help=True)

ProjectFile = Annotated[str, typer.Argument(help="Project file of your model.")]
StoreFile = Annotated[str, typer.Option("--store", help="The monitoring store.")]
At = Annotated[str | None, typer.Option(help="Date of the run, such as 2026-03-02 (default: now).")]
Targets = Annotated[str | None, typer.Option(help="Exactly these: 3,17 (links 3-5,2-9), or a file with a list.")]
Among = Annotated[
    str | None, typer.Option(help="Draw from these: name of a mask or list in the data (default: as the project says).")
]
Explainer = Annotated[str | None, typer.Option(help="Label of the project's explainer that is in use.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes on stderr.")]
STORE = "monitor.sqlite"


@commands.command()
def baseline(
    source: Annotated[str, typer.Argument(help="Project file; or a folder of saved results (then only metrics are watched).")],
    store: StoreFile = STORE,
    explainer: Explainer = None,
    number: Annotated[int, typer.Option(min=2, help="Targets to draw.")] = 200,
    targets: Targets = None,
    among: Among = None,
    at: At = None,
    runs: Annotated[int, typer.Option(min=1, help="Runs that share the false-alarm budget.")] = 26,
    budget: Annotated[float, typer.Option(help="Chance of a false drift trigger in so many runs.")] = 0.01,
    per_run: Annotated[int, typer.Option(min=1, help="Targets of a run.")] = 50,
    age: Annotated[int, typer.Option(min=1, help="Days after which the validation is too old.")] = 180,
    overdue: Annotated[int | None, typer.Option(min=1, help="Days after which the next run should have come.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure what later runs are held against. Repeat it after every new validation."""
    from graphgauge.evaluation import Results
    from graphgauge.monitor import Monitor, Plan

    plan = Plan(per_run, budget, runs, age=age, overdue=overdue)
    if Path(source).is_dir():
        label = needed(explainer, source)
        found = Monitor(store, plan).baseline_of(Results.load(source), label, read_time(at))
    else:
        own = Opened(source, explainer, None)
        monitor = Monitor(store, replace(plan, thresholds=own.thresholds()))
        pool, count = own.pool(targets, among, number)
        with telling(quiet):
            found = monitor.take_baseline(own.project.evaluator(own.model), own.explainer, pool, count, read_time(at))
    record = {"baseline": found.number, "at": found.at.isoformat(), "targets": len(found.sample), "summary": found.body["summary"]}
    head = f"baseline {found.number} of {len(found.sample)} targets, {found.at.date()}, {found.facts.explainer}"
    typer.echo(as_json(record) if json else "\n".join([head, *metric_lines(found.body["summary"])]))


@commands.command()
def run(
    project: ProjectFile,
    store: StoreFile = STORE,
    explainer: Explainer = None,
    number: Annotated[int | None, typer.Option(min=1, help="Targets to draw (default: as at the baseline).")] = None,
    targets: Targets = None,
    among: Among = None,
    at: At = None,
    webhook: Annotated[str | None, typer.Option(help="POST the run there as JSON, if it raised a trigger.")] = None,
    log: Annotated[str | None, typer.Option(help="Append the run to this file of JSON lines.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure recent targets, compare with the baseline, store both. For cron or Airflow; ask `status` what is due."""
    from graphgauge.monitor import Monitor
    from graphgauge.monitor.outputs import check_webhook

    if webhook is not None:
        check_webhook(webhook)
    stored = Monitor(stored_file(store))
    last = stored.history().baseline
    own = Opened(project, explainer, last.facts.explainer if last else None)
    monitor = Monitor(store, replace(stored.plan, thresholds=own.thresholds()))
    pool, count = own.pool(targets, among, number or stored.plan.number)
    with telling(quiet):
        found = monitor.run(own.project.evaluator(own.model), own.explainer, pool, count, read_time(at))
    for problem in told_others(found, webhook, log):
        typer.echo(f"graphgauge: warning: {problem}", err=True)
    typer.echo(as_json(found.record()) if json else run_text(found))


@commands.command()
def status(store: StoreFile = STORE, at: At = None, json: Json = False) -> None:
    """Say what is due: exit code 0 nothing, 1 action, 3 incomplete."""
    found = opened(store).status(read_time(at))
    typer.echo(as_json(found.record()) if json else status_text(found))
    raise typer.Exit(found.code)


@commands.command()
def trigger(
    reason: Annotated[str, typer.Option(help="Such as 'regulatory update'.")],
    store: StoreFile = STORE,
    who: Annotated[str, typer.Option(help="Who raises it.")] = "",
    at: At = None,
) -> None:
    """Say by hand that validation is due."""
    typer.echo(f"raised: {opened(store).trigger(reason, who, read_time(at)).told}")


@commands.command()
def settle(
    name: Annotated[str, typer.Argument(help="Of the trigger, as `status` shows it: 7.2 or m1.")],
    note: Annotated[str, typer.Option(help="Why nothing has to be done, or what was done.")],
    store: StoreFile = STORE,
    at: At = None,
) -> None:
    """Close a trigger with a note."""
    typer.echo(f"settled: {', '.join(opened(store).settle(name, note, read_time(at)))}")


@commands.command()
def page(
    store: StoreFile = STORE,
    output: Annotated[str, typer.Option(help="The page, one HTML file.")] = "monitor.html",
    at: At = None,
) -> None:
    """Write histories, triggers and the checklist as one page without outside parts."""
    from graphgauge.monitor.watch import utc
    from graphgauge.report.monitoring import write_monitoring

    typer.echo(str(write_monitoring(opened(store).history(), output, utc(read_time(at)))))


# --- what the options stand for -----------------------------------------------------------------------------------------


class Opened:
    """A project with its model and the explainer that is in use; ``known``: the name of the one at the baseline."""

    def __init__(self, path: str, explainer: str | None, known: str | None) -> None:
        from graphgauge.lifecycle import Project

        self.project: Project = Project.read(path)
        self.explainer: BaseExplainer = chosen_explainer(self.project, explainer, known)
        self.model: BaseModel = self.project.model()
        named: Any = self.project.names(self.model).features
        if named:
            self.model.feature_names = tuple(str(named.get(k, f"feature {k}")) for k in range(self.model.source.x.size(1)))

    def thresholds(self) -> "dict[str, Threshold]":
        """The limits that the project's use asks for."""
        from graphgauge.guidelines.book import guide
        from graphgauge.guidelines.limits import limit_of
        from graphgauge.monitor import Threshold

        wanted = self.project.requirements(self.model)
        metrics = [entry["metric"] for entry in guide("thresholds")["threshold"]]
        limits = {metric: limit_of(metric, wanted.task_kind, wanted) for metric in metrics if is_asked(metric, wanted.focus)}
        return {
            metric: Threshold(limit.value, limit.direction)
            for metric, limit in limits.items()
            if not isinstance(limit, str) and not limit.never_fails
        }

    def pool(self, targets: str | None, among: str | None, number: int) -> tuple[Any, int]:
        """Where targets are drawn from (None: everywhere), and how many."""
        from graphgauge.lifecycle.project import targets_among

        if targets is not None:
            listed = read_targets(targets)
            return listed, len(listed)
        name = among or self.project.form.targets.among
        return (None if name is None else targets_among(self.model, name)), number


def is_asked(metric: str, focus: str | None) -> bool:
    """Whether a metric is of the side that counts."""
    return focus is None or metric == "time" or metric.startswith(focus)


def chosen_explainer(project: "Project", label: str | None, known: str | None) -> "BaseExplainer":
    """The explainer in use: by label, or as at the baseline, or the only one beside chance."""
    offered = project.explainers()
    if label is not None:
        return lookup(offered, label, "explainer of the project")
    real = {name: own for name, own in offered.items() if own.name != project.form.use.baseline}
    same = [own for own in offered.values() if own.name == known]
    found = same if known is not None else list(real.values())
    if len(found) != 1:
        raise BadSetting(f"which explainer is in use? Say --explainer, one of: {', '.join(offered)}.")
    return found[0]


def read_targets(text: str) -> list[Any]:
    """Targets from the command line, or from a file."""
    from graphgauge.lifecycle.project import read_list

    if Path(text).is_file():
        return read_list(Path(text))
    try:
        parts = [[int(end) for end in part.split("-")] for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise BadSetting(f"--targets must be ids such as 3,17, links such as 3-5,2-9, or a file, but is {text!r}.") from error
    return [part[0] if len(part) == 1 else part for part in parts]


def read_time(text: str | None) -> datetime | None:
    """A date, or a date and time; UTC where no zone is said."""
    try:
        return None if text is None else datetime.fromisoformat(text)
    except ValueError as error:
        raise BadSetting(f"--at must be a date such as 2026-03-02 or 2026-03-02T06:00, but is {text!r}.") from error


def needed(explainer: str | None, source: str) -> str:
    """The label of an explainer in saved results."""
    if explainer is None:
        raise BadSetting(f"{source} is a folder of results: say with --explainer which explainer of it is in use.")
    return explainer


def stored_file(path: str) -> str:
    """Refuse a store that is not there: only a baseline makes one."""
    if not Path(path).exists():
        raise BadFile(f"there is no monitoring store {path}. Take a baseline first: graphgauge monitor baseline.")
    return path


def opened(path: str) -> "Monitor":
    """The monitor of a store that is there."""
    from graphgauge.monitor import Monitor

    return Monitor(stored_file(path))


def told_others(found: "Run", webhook: str | None, log: str | None) -> list[str]:
    """Send the run to a webhook (if it raised a trigger) and to a file; what went wrong."""
    from graphgauge.monitor.outputs import append_line, post

    problems = [post(webhook, found.record())] if webhook and found.triggers else []
    return [problem for problem in [*problems, append_line(log, found.record()) if log else ""] if problem]


# --- for people and programs ---------------------------------------------------------------------------------------------


def metric_lines(summary: dict[str, Any]) -> list[str]:
    """One line per metric: mean, median and number of targets."""
    return [
        f"  {metric:<22} mean {own['mean']:.4g}  median {own['quantiles'][3]:.4g}  n {own['n']}" for metric, own in summary.items()
    ]


def run_text(found: "Run") -> str:
    """A run for people."""
    record = found.record()
    head = f"run {found.number}, {found.at.date()}: {len(found.sample)} targets, {len(found.triggers)} triggers"
    means = [f"  {metric:<22} mean {mean:.4g}" for metric, mean in record["means"].items()]
    return "\n".join([head, *means, *(f"  {own.name}: {own.told}" for own in found.triggers), f"{found.status.told}"])


def status_text(found: "Status") -> str:
    """What is due, for people."""
    lines = []
    for own in found.due:
        since = f"since {own.first.date()}" + (f", {own.times} times" if own.times > 1 else "")
        name = f"{own.name}  " if own.name else ""
        lines += [f"{name}{own.trigger.name}: {own.trigger.told} ({since})", f"    {own.trigger.revalidate}"]
    lines += [f"incomplete: {gap}" for gap in found.gaps]
    lines += [f"note: {note}" for note in found.notes]
    when = f"{found.runs} runs since the baseline" + (f" of {found.baseline_at.date()}" if found.baseline_at else "")
    return "\n".join([*lines, f"{found.told} ({when})"])
