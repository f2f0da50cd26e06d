"""`graphgauge monitor`: take a baseline, look again from time to time, say what is due, write the
page.
"""

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from graphgauge.cli.console import JsonOption, QuietOption, command_group, json_text, notifications
from graphgauge.core import BadFile, BadSetting, JsonObject
from graphgauge.evaluation import Results
from graphgauge.lifecycle import (
    DEFAULT_DAYS,
    Decision,
    MonitoredProject,
    Project,
    load_monitored_project,
    monitoring_thresholds,
    parse_utc_time,
    read_target_list,
    validation_from_decision,
)
from graphgauge.monitor import (
    Monitor,
    MonitoringRun,
    Plan,
    Status,
    append_json_line,
    check_webhook,
    post_json,
    to_utc,
)
from graphgauge.plots import count_noun
from graphgauge.report import write_monitoring_page

monitor_command = command_group("Watch a model in use: does the quality of its explanations hold?")

_ProjectFile = Annotated[str, typer.Argument(help="Project file of your model.")]
_StoreFile = Annotated[str, typer.Option("--store", help="The monitoring store.")]
_At = Annotated[
    str | None, typer.Option(help="Date of the run, such as 2026-03-02 (default: now).")
]
_Targets = Annotated[
    str | None, typer.Option(help="Exactly these: 3,17 (links 3-5,2-9), or a file with a list.")
]
_Among = Annotated[
    str | None,
    typer.Option(
        help="Draw from these: name of a mask or list in the data (default: as the project says)."
    ),
]
_Explainer = Annotated[
    str | None,
    typer.Option(
        help="Label of the project's explainer that is in use, where there is no decision."
    ),
]
_DEFAULT_STORE = "monitor.sqlite"


@monitor_command.command("baseline")
def baseline_command(
    source: Annotated[
        str,
        typer.Argument(
            help="Project file; or a folder of saved results (then only metrics are watched)."
        ),
    ],
    store: _StoreFile = _DEFAULT_STORE,
    decision: Annotated[
        str | None,
        typer.Option(
            help=(
                "Decision file, or folder of a validation: explainer, limits and date are taken "
                "from it."
            )
        ),
    ] = None,
    explainer: _Explainer = None,
    number: Annotated[int, typer.Option(min=2, help="Targets to draw.")] = 200,
    targets: _Targets = None,
    among: _Among = None,
    at: _At = None,
    runs: Annotated[int, typer.Option(min=1, help="Runs that share the false-alarm budget.")] = 26,
    budget: Annotated[
        float, typer.Option(help="Chance of a false drift trigger in so many runs.")
    ] = 0.01,
    per_run: Annotated[int, typer.Option(min=1, help="Targets of a run.")] = 50,
    age: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Days until the validation is too old (default: as the decision says, else 180).",
        ),
    ] = None,
    overdue: Annotated[
        int | None, typer.Option(min=1, help="Days after which the next run should have come.")
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Measure what later runs are held against. Repeat it after every new validation."""
    decided = _read_decision(decision)
    plan = Plan(per_run, budget, runs, age=_validation_days(age, decided), overdue=overdue)
    if Path(source).is_dir():
        label = _require_label(explainer or (decided.label if decided else None), source)
        limits, validated = (
            ({}, None)
            if decided is None
            else (monitoring_thresholds(decided.wanted()), validation_from_decision(decided))
        )
        found = Monitor(store, replace(plan, thresholds=limits)).baseline_of(
            Results.load(source), label, _parse_time(at), validated
        )
    else:
        own = load_monitored_project(Project.read(source), decision=decided, label=explainer)
        monitor = Monitor(store, replace(plan, thresholds=own.thresholds))
        pool, count = _target_pool(own, targets, among, number)
        with notifications(quiet):
            found = monitor.take_baseline(
                own.evaluator, own.explainer, pool, count, _parse_time(at), own.validated
            )
    record = {
        "baseline": found.number,
        "at": found.at.isoformat(),
        "targets": len(found.sample),
        "summary": found.body["summary"],
    }
    head = (
        f"baseline {found.number} of {len(found.sample)} targets, {found.at.date()}, "
        f"{found.facts.explainer}"
    )
    typer.echo(
        json_text(record) if json else "\n".join([head, *_metric_lines(found.body["summary"])])
    )


@monitor_command.command("run")
def run_command(
    project: _ProjectFile,
    store: _StoreFile = _DEFAULT_STORE,
    explainer: _Explainer = None,
    number: Annotated[
        int | None, typer.Option(min=1, help="Targets to draw (default: as at the baseline).")
    ] = None,
    targets: _Targets = None,
    among: _Among = None,
    at: _At = None,
    webhook: Annotated[
        str | None, typer.Option(help="POST the run there as JSON, if it raised a trigger.")
    ] = None,
    log: Annotated[
        str | None, typer.Option(help="Append the run to this file of JSON lines.")
    ] = None,
    pictures: Annotated[
        bool,
        typer.Option(help="Keep the worst and best explanations for the page, told and drawn."),
    ] = True,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Measure recent targets, compare with the baseline, store both. For cron or Airflow; ask
    `status` what is due.
    """
    if webhook is not None:
        check_webhook(webhook)
    stored = Monitor(_check_store_exists(store))
    own = load_monitored_project(
        Project.read(project), baseline=stored.history().baseline, label=explainer
    )
    monitor = Monitor(store, replace(stored.plan, thresholds=own.thresholds))
    pool, count = _target_pool(own, targets, among, number or stored.plan.number)
    with notifications(quiet):
        found = monitor.run(
            own.evaluator,
            own.explainer,
            pool,
            count,
            _parse_time(at),
            own.show() if pictures else None,
        )
    for problem in _notify_others(found, webhook, log):
        typer.echo(f"graphgauge: warning: {problem}", err=True)
    typer.echo(json_text(found.record()) if json else _monitor_run_text(found))


@monitor_command.command("status")
def status_command(
    store: _StoreFile = _DEFAULT_STORE, at: _At = None, json: JsonOption = False
) -> None:
    """Say what is due: exit code 0 nothing, 1 action, 3 incomplete."""
    found = _open_monitor(store).status(_parse_time(at))
    typer.echo(json_text(found.record()) if json else _status_text(found))
    raise typer.Exit(found.code)


@monitor_command.command("trigger")
def trigger_command(
    reason: Annotated[str, typer.Option(help="Such as 'regulatory update'.")],
    store: _StoreFile = _DEFAULT_STORE,
    who: Annotated[str, typer.Option(help="Who raises it.")] = "",
    at: _At = None,
) -> None:
    """Say by hand that validation is due."""
    typer.echo(f"raised: {_open_monitor(store).trigger(reason, who, _parse_time(at)).told}")


@monitor_command.command("settle")
def settle_command(
    name: Annotated[str, typer.Argument(help="Of the trigger, as `status` shows it: 7.2 or m1.")],
    note: Annotated[str, typer.Option(help="Why nothing has to be done, or what was done.")],
    store: _StoreFile = _DEFAULT_STORE,
    at: _At = None,
) -> None:
    """Close a trigger with a note."""
    typer.echo(f"settled: {', '.join(_open_monitor(store).settle(name, note, _parse_time(at)))}")


@monitor_command.command("page")
def page_command(
    store: _StoreFile = _DEFAULT_STORE,
    output: Annotated[str, typer.Option(help="The page, one HTML file.")] = "monitor.html",
    at: _At = None,
) -> None:
    """Write histories, triggers and the checklist as one page without outside parts."""
    typer.echo(
        str(write_monitoring_page(_open_monitor(store).history(), output, to_utc(_parse_time(at))))
    )


# --- what the options stand for -------------------------------------------------------------------


def _target_pool(
    own: MonitoredProject, targets: str | None, among: str | None, number: int
) -> tuple[Any, int]:
    """Where targets are drawn from (None: everywhere), and how many."""
    if targets is None:
        return own.pool(among), number
    listed = _parse_monitor_targets(targets)
    return listed, len(listed)


def _read_decision(path: str | None) -> Decision | None:
    """The decision in a file or in the folder of a validation."""
    return None if path is None else Decision.read(path)


def _validation_days(age: int | None, decision: Decision | None) -> int:
    """Days after which a validation is too old: as asked, else as long as the decision holds, else
    as usual.
    """
    if age is not None or decision is None:
        return age or DEFAULT_DAYS
    return max(1, (parse_utc_time(decision.expires) - parse_utc_time(decision.made)).days)


def _parse_monitor_targets(text: str) -> list[Any]:
    """Targets from the command line, or from a file."""
    if Path(text).is_file():
        return read_target_list(Path(text))
    try:
        parts = [[int(end) for end in part.split("-")] for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise BadSetting(
            "--targets must be ids such as 3,17, links such as 3-5,2-9, or a file, but is "
            f"{text!r}."
        ) from error
    return [part[0] if len(part) == 1 else part for part in parts]


def _parse_time(text: str | None) -> datetime | None:
    """A date, or a date and time; UTC where no zone is said."""
    try:
        return None if text is None else datetime.fromisoformat(text)
    except ValueError as error:
        raise BadSetting(
            f"--at must be a date such as 2026-03-02 or 2026-03-02T06:00, but is {text!r}."
        ) from error


def _require_label(explainer: str | None, source: str) -> str:
    """The label of an explainer in saved results."""
    if explainer is None:
        raise BadSetting(
            f"{source} is a folder of results: say with --explainer which explainer of it is in "
            "use."
        )
    return explainer


def _check_store_exists(path: str) -> str:
    """Refuse a store that is not there: only a baseline makes one."""
    if not Path(path).exists():
        raise BadFile(
            f"there is no monitoring store {path}. Take a baseline first: graphgauge monitor "
            "baseline."
        )
    return path


def _open_monitor(path: str) -> Monitor:
    """The monitor of a store that is there."""
    return Monitor(_check_store_exists(path))


def _notify_others(found: MonitoringRun, webhook: str | None, log: str | None) -> list[str]:
    """Send the run to a webhook (if it raised a trigger) and to a file; what went wrong."""
    problems = [post_json(webhook, found.record())] if webhook and found.triggers else []
    return [
        problem
        for problem in [*problems, append_json_line(log, found.record()) if log else ""]
        if problem
    ]


# --- for people and programs ----------------------------------------------------------------------


def _metric_lines(summary: JsonObject) -> list[str]:
    """One line per metric: mean, median and number of targets."""
    return [
        f"  {metric:<22} mean {own['mean']:.4g}  median {own['quantiles'][3]:.4g}  n {own['n']}"
        for metric, own in summary.items()
    ]


def _monitor_run_text(found: MonitoringRun) -> str:
    """A run for people."""
    record = found.record()
    head = (
        f"run {found.number}, {found.at.date()}: {count_noun(len(found.sample), 'target')}, "
        f"{count_noun(len(found.triggers), 'trigger')}"
    )
    means = [f"  {metric:<22} mean {mean:.4g}" for metric, mean in record["means"].items()]
    return "\n".join(
        [
            head,
            *means,
            *(f"  {own.name}: {own.told}" for own in found.triggers),
            f"{found.status.told}",
        ]
    )


def _status_text(found: Status) -> str:
    """What is due, for people."""
    lines = []
    for own in found.due:
        since = f"since {own.first.date()}" + (f", {own.times} times" if own.times > 1 else "")
        name = f"{own.name}  " if own.name else ""
        lines += [
            f"{name}{own.trigger.name}: {own.trigger.told} ({since})",
            f"    {own.trigger.revalidate}",
        ]
    lines += [f"incomplete: {gap}" for gap in found.gaps]
    lines += [f"note: {note}" for note in found.notes]
    when = f"{count_noun(found.runs, 'run')} since the baseline" + (
        f" of {found.baseline_at.date()}" if found.baseline_at else ""
    )
    return "\n".join([*lines, f"{found.told} ({when})"])
