"""Commands on the user's own model: `init`, `doctor`, `evaluate`, `explain`. Heavy imports happen
inside.
"""

from typing import Annotated, Any

import typer

from graphgauge.cli.conventions import ExitCode, show, telling

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes on stderr.")]
Config = Annotated[
    str | None,
    typer.Argument(help="Project file, YAML or TOML (default: graphgauge.yaml, if it is here)."),
]


def init(
    folder: Annotated[str, typer.Argument(help="Where to write graphgauge.yaml.")] = ".",
    json: Json = False,
) -> None:
    """Write a commented project file for a model of your own; never over another."""
    from graphgauge.cli.init import as_text, run_init

    path = run_init(folder)
    show({"file": str(path)}, lambda _: as_text(path), json)


def doctor(
    config: Config = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check packages, machine and extras, and a project from its file to its network: exit code 1
    if something is broken.
    """
    from graphgauge.cli.doctor import as_record, as_text, code_of, run_doctor

    with telling(quiet):
        lines = run_doctor(config)
    show(as_record(lines) if json else lines, as_text, json)
    raise typer.Exit(code_of(lines))


def evaluate(
    config: Config = None,
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
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure explainers on your own model: exit code 0 pass, 1 below threshold, 3 incomplete, for
    the recommended one.
    """
    from graphgauge.cli.evaluate import as_record, as_text, project_of, run_evaluate, usual_folder

    names = (
        None
        if explainers is None
        else [name.strip() for name in explainers.split(",") if name.strip()]
    )
    options: dict[str, Any] = {
        "model": model,
        "weights": weights,
        "data": data,
        "level": level,
        "task": task,
        "explainers": names,
    }
    options |= {"targets": targets, "preset": preset, "seed": seed, "device": device}
    with telling(quiet) as tell:
        project = project_of(config, options)
        done = run_evaluate(project, output or usual_folder(project, config), tell, replace)
    if done is None:
        raise typer.Exit(ExitCode.INCOMPLETE)
    show(as_record(done) if json else done, as_text, json)
    raise typer.Exit(done.code)


def explain(
    config: Config = None,
    target: Annotated[
        str,
        typer.Option(help="A node or graph, such as 17, or a link, such as 3,5; or their names."),
    ] = ...,  # type: ignore[assignment]
    explainer: Annotated[
        str | None, typer.Option(help="By name (default: the project's first).")
    ] = None,
    language: Annotated[str, typer.Option(help="en, it, de, fr or es.")] = "en",
    audience: Annotated[str, typer.Option(help="expert, internal or affected_person.")] = "expert",
    top: Annotated[
        int, typer.Option(min=1, help="How many features and connections are told.")
    ] = 3,
    picture: Annotated[
        str | None, typer.Option(help="Also draw it: a file .svg, .png or .pdf.")
    ] = None,
    output: Annotated[
        str | None, typer.Option(help="Also save the explanation: a safetensors file.")
    ] = None,
    measure: Annotated[
        bool, typer.Option(help="Measure and judge it; without, only the scores are told.")
    ] = True,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Explain one prediction of your own model in words: exit code 1 if the explanation misses a
    threshold.
    """
    from graphgauge.cli import explain as own
    from graphgauge.cli.evaluate import project_of
    from graphgauge.lifecycle.single import explain_one

    with telling(quiet):
        own.check_wishes(language, audience, picture)
        single = explain_one(project_of(config, {}), target, explainer, measure)
        text = single.text(language, audience, top)
        if picture is not None:
            own.write_picture(single, audience, picture)
        if output is not None:
            single.x.save(output)
    show(own.as_record(single, text, audience, top) if json else text, str, json)
    raise typer.Exit(own.code_of(single))


COMMANDS = (init, doctor, evaluate, explain)
