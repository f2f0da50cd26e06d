"""One prediction of the user's own model, explained in words, as a picture, or as a file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphgauge.cli.console import (
    ConfigArgument,
    ExitCode,
    JsonOption,
    QuietOption,
    notifications,
    print_answer,
)
from graphgauge.cli.evaluate import project_from_options
from graphgauge.core import BadFile, JsonObject
from graphgauge.lifecycle import SingleExplanation, explain_one, quality_by_metric
from graphgauge.narrative import AUDIENCES, explanation_facts, find_language, parse_audience

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PICTURE_SUFFIXES = (".svg", ".png", ".pdf")


def _check_explain_options(language: str, audience: str, picture: str | None) -> None:
    """Refuse what cannot be told or drawn, before anything is measured."""
    find_language(language)
    parse_audience(audience)
    if picture is not None and Path(picture).suffix.lower() not in _PICTURE_SUFFIXES:
        raise BadFile(
            f"--picture must end in one of {', '.join(_PICTURE_SUFFIXES)}, but is {picture!r}."
        )


def _write_picture(single: SingleExplanation, audience: str, path: str) -> None:
    """Draw the explanation; for audiences to whom neighbours are other people, features only."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure = _draw_for_audience(single, is_redacted=AUDIENCES[parse_audience(audience)]).figure
    try:
        figure.savefig(path, bbox_inches="tight")  # type: ignore[union-attr]
    except OSError as error:
        raise BadFile(f"{path} could not be written: {error}.") from error
    finally:
        pyplot.close(figure)  # type: ignore[arg-type]


def _draw_for_audience(single: SingleExplanation, is_redacted: bool) -> "Axes":
    """The subgraph, or bars of features that name nobody."""
    from graphgauge.plots import draw_explanation, plot_feature_bars

    if is_redacted:
        axes = plot_feature_bars(single.x, single.names, data=single.evaluator.model)
        axes.set_title("")  # of a link it names both ends
        return axes
    return draw_explanation(single.x, single.evaluator.model, single.names)


def _explain_exit_code(single: SingleExplanation) -> ExitCode:
    """1 where the explanation misses a threshold."""
    return ExitCode.BELOW if single.missed else ExitCode.PASS


def _explanation_record(
    single: SingleExplanation, text: str, audience: str, top_k: int
) -> JsonObject:
    """Everything for programs; what is hidden from an audience is hidden here, too."""
    quality = quality_by_metric(single.verdicts)
    return {
        "code": int(_explain_exit_code(single)),
        "text": text,
        "facts": explanation_facts(
            single.evaluator, single.x, single.names, audience, top_k, quality=quality
        ),
        "verdicts": [verdict.record() for verdict in single.verdicts],
    }


def explain_command(
    config: ConfigArgument = None,
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
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Explain one prediction of your own model in words: exit code 1 if the explanation misses a
    threshold.
    """
    with notifications(quiet):
        _check_explain_options(language, audience, picture)
        single = explain_one(project_from_options(config, {}), target, explainer, measure)
        text = single.text(language, audience, top)
        if picture is not None:
            _write_picture(single, audience, picture)
        if output is not None:
            single.x.save(output)
    print_answer(_explanation_record(single, text, audience, top) if json else text, str, json)
    raise typer.Exit(_explain_exit_code(single))
