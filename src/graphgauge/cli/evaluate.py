"""The user's own model, from files to a verdict: the table, the verdicts, the recommendation."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from graphgauge.cli.console import (
    EXIT_LABELS,
    ConfigArgument,
    ExitCode,
    JsonOption,
    Notifier,
    QuietOption,
    colour_word,
    notifications,
    print_answer,
    sigterm_as_ctrl_c,
)
from graphgauge.core import NOT_APPLICABLE, OUTCOMES, BadSetting, JsonObject, Verdict
from graphgauge.evaluation import UNKNOWN_ACCURACY, count_kept_phases, remove_kept_phases
from graphgauge.lifecycle import Assessment, Project, assess, check_folder

_CONFIG_FILE = (
    "graphgauge.yaml"  #: what `graphgauge init` writes, and what is read where no file is named
)
_UNFINISHED_FOLDER = "unfinished"  #: in the folder of a run: what a stopped call has finished
_PATH_OPTIONS = ("weights", "data")


@dataclass(frozen=True)
class _SavedAssessment:
    """An assessment and the folder it was saved in."""

    assessment: Assessment
    folder: Path

    @property
    def code(self) -> ExitCode:
        """Of the recommended explainer."""
        return ExitCode(self.assessment.code)


def project_from_options(config: str | None, options: JsonObject) -> Project:
    """The project in a file, changed by options; or one made of options alone.

    Options that are None were not given. Their paths start from here, those of the file from its
    folder.
    """
    given = {name: value for name, value in options.items() if value is not None}
    given |= {name: str(Path(given[name]).absolute()) for name in _PATH_OPTIONS if name in given}
    path = config or (default_config_file() if "model" not in given else None)
    if path is not None:
        return Project.read(path, given)
    if "model" not in given:
        raise BadSetting(
            f"no model was named: give a project file (`graphgauge init` writes {_CONFIG_FILE}), "
            "or --model package.module:function, --data graph.safetensors, --level and --task."
        )
    return Project.from_keys(given, Path.cwd(), "the command line")


def default_config_file() -> str | None:
    """The project file that is read where none is named."""
    return _CONFIG_FILE if Path(_CONFIG_FILE).exists() else None


def _default_run_folder(project: Project, config: str | None) -> Path:
    """Where a run goes if nobody says: after the project's name, or its file's, with what is odd in
    a path left out.
    """
    name = re.sub(r"[^\w.-]+", "-", project.config.name or Path(config or _CONFIG_FILE).stem).strip(
        ".-"
    )
    return Path("runs") / (name or Path(_CONFIG_FILE).stem)


def _run_evaluate(
    project: Project, folder: str | Path, tell: Notifier, replace: bool = False
) -> _SavedAssessment | None:
    """Measure, judge and save; None after Ctrl-C or SIGTERM, with what was finished kept."""
    place = check_folder(folder, replace)
    unfinished = place / _UNFINISHED_FOLDER
    earlier = count_kept_phases(unfinished)
    if earlier:
        tell(f"{_count_phases(earlier)} of a stopped call in {unfinished}: continuing")
    try:
        with sigterm_as_ctrl_c():
            found = assess(project, tell, unfinished)
    except KeyboardInterrupt:
        number = count_kept_phases(unfinished)
        tell(f"stopped: {_count_phases(number)} in {unfinished}. The same command continues.")
        return None
    found.save(place, project, replace)
    remove_kept_phases(unfinished)
    tell(f"saved in {place}")
    return _SavedAssessment(found, place)


def _count_phases(number: int) -> str:
    """As in '3 finished steps'."""
    return "no finished step" if not number else f"{number} finished step{'s' * (number > 1)}"


def _evaluation_record(done: _SavedAssessment) -> JsonObject:
    """Everything for programs."""
    found = done.assessment
    table = found.results.headline()
    return {
        "code": int(done.code),
        "answer": EXIT_LABELS[done.code],
        "reason": found.reason,
        "run": str(done.folder),
        "accuracy": None if found.accuracy is None else found.accuracy.record(),
        "identity": dict(found.results.made["identity"]),
        "means": {
            str(name): {str(metric): float(value) for metric, value in row.items()}
            for name, row in table.iterrows()
        },
        "verdicts": [verdict.record() for verdict in found.verdicts],
        "recommendation": None if found.recommendation is None else found.recommendation.record(),
        "left_out": dict(found.left_out),
        "findings": [finding.record() for finding in found.findings],
        "seconds": found.results.costs().to_dict("index"),
        "requirements": found.requirements.record(),
    }


def _evaluation_text(done: _SavedAssessment) -> str:
    """Table, verdicts, recommendation, answer."""
    found = done.assessment
    table = found.results.headline().to_string(
        float_format=lambda value: f"{value:.3f}", na_rep="-"
    )
    told = found.accuracy.sentence if found.accuracy is not None else UNKNOWN_ACCURACY
    parts = [
        table,
        _verdict_counts_text(found),
        *_recommendation_parts(found),
        *_finding_parts(found),
        _cost_text(found),
    ]
    return "\n\n".join([*parts, f"{told}\n{_answer_line(done)}"])


def _verdict_counts_text(found: Assessment) -> str:
    """How many numbers of each explainer pass, warn and fail, and which fail."""
    groups: dict[str, list[Verdict]] = {}
    for verdict in found.verdicts:
        groups.setdefault(verdict.explainer, []).append(verdict)
    width = max(map(len, groups), default=0)
    return "\n".join(
        f"{name:<{width}}  {_outcome_counts_text(own)}" for name, own in groups.items()
    )


def _outcome_counts_text(own: list[Verdict]) -> str:
    """As in '4 pass, 1 warn, 2 fail (edge_pertinence, time)'."""
    number = Counter(verdict.outcome for verdict in own)
    failed = [verdict.metric for verdict in own if verdict.outcome == "fail"]
    told = [
        f"{number[outcome]} {colour_word(outcome)}"
        for outcome in (*OUTCOMES[1:], NOT_APPLICABLE)
        if number[outcome]
    ]
    return ", ".join(told) + (f" ({', '.join(failed)})" if failed else "")


def _recommendation_parts(found: Assessment) -> list[str]:
    """The recommendation, and every verdict on it; nothing where there is none."""
    chosen = found.recommendation
    if chosen is None:
        return []
    lines = [f"  {colour_word(own.outcome, 14)}  {own.reason}" for own in chosen.verdicts]
    return [str(chosen), "\n".join([f"{chosen.chosen}:", *lines])]


def _finding_parts(found: Assessment) -> list[str]:
    """What looks wrong in the run as a whole, or with the recommended explainer; JSON has the rest,
    too.
    """
    chosen = "" if found.recommendation is None else found.recommendation.chosen
    own = [finding for finding in found.findings if finding.explainer in ("", chosen)]
    return ["\n".join(["What to look at:", *(f"  {finding}" for finding in own)])] if own else []


def _cost_text(found: Assessment) -> str:
    """Which explainer costs what, as a short table."""
    table = found.results.costs().rename_axis(None)
    seconds = table.to_string(float_format=lambda value: f"{value:.2f}")
    return f'Seconds of this call (what all explainers have in common is "shared"):\n{seconds}'


def _answer_line(done: _SavedAssessment) -> str:
    """One word, why, and where everything is."""
    found = done.assessment
    who = "" if found.recommendation is None else f"{found.recommendation.chosen}, "
    where = f"The run is in {done.folder}; `graphgauge check {done.folder}` judges every explainer"
    return f"{colour_word(EXIT_LABELS[done.code])}: {who}{found.reason}. {where}."


def evaluate_command(
    config: ConfigArgument = None,
    model: Annotated[
        str | None, typer.Option(help="package.module:function that gives the network.")
    ] = None,
    weights: Annotated[str | None, typer.Option(help="Its weights, a safetensors file.")] = None,
    data: Annotated[
        str | None, typer.Option(help="The graph, a safetensors file (datasets.save_graph).")
    ] = None,
    level: Annotated[str | None, typer.Option(help="node, link or graph.")] = None,
    task: Annotated[str | None, typer.Option(help="classification or regression.")] = None,
    explainers: Annotated[
        str | None, typer.Option(help="Names, such as lrp,gnn_explainer,random.")
    ] = None,
    targets: Annotated[int | None, typer.Option(min=1, help="How many targets.")] = None,
    preset: Annotated[str | None, typer.Option(help="paper or calibrated.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of everything that is drawn.")] = None,
    device: Annotated[
        str | None, typer.Option(help="Such as cpu or cuda (default: cuda where there is one).")
    ] = None,
    output: Annotated[
        str | None, typer.Option(help="Folder for the run (default: runs/NAME).")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Take the place of a run in the folder.")
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Measure explainers on your own model: exit code 0 pass, 1 below threshold, 3 incomplete, for
    the recommended one.
    """
    names = (
        None
        if explainers is None
        else [name.strip() for name in explainers.split(",") if name.strip()]
    )
    options: JsonObject = {
        "model": model,
        "weights": weights,
        "data": data,
        "level": level,
        "task": task,
        "explainers": names,
    }
    options |= {"targets": targets, "preset": preset, "seed": seed, "device": device}
    with notifications(quiet) as tell:
        project = project_from_options(config, options)
        done = _run_evaluate(project, output or _default_run_folder(project, config), tell, replace)
    if done is None:
        raise typer.Exit(ExitCode.INCOMPLETE)
    print_answer(_evaluation_record(done) if json else done, _evaluation_text, json)
    raise typer.Exit(done.code)
