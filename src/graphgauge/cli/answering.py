"""Commands for answers in use: `serve`, and `audit` for the log of them. Heavy imports happen
inside.
"""

from typing import Annotated

import typer

from graphgauge.cli.conventions import ExitCode, Teller, show

Log = Annotated[str, typer.Argument(help="The audit log, such as audit.sqlite.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def serve(
    config: Annotated[str, typer.Argument(help="A project file, my.yaml.")],
    decision: Annotated[
        str | None, typer.Option(help="decision.json of `graphgauge validate`, or its folder.")
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(help="A further explainer that may be asked for (may be repeated)."),
    ] = None,
    fallback: Annotated[
        str, typer.Option(help="The explainer that answers when time is short.")
    ] = "input_x_gradient",
    audit: Annotated[
        str, typer.Option(help="The audit log; it is made if it is not there.")
    ] = "audit.sqlite",
    budget_ms: Annotated[float, typer.Option(min=1, help="Time for one explanation.")] = 300,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8321,
    expose: Annotated[
        bool, typer.Option("--expose", help="Allow an address that other machines can reach.")
    ] = False,
    allowed_host: Annotated[
        list[str] | None, typer.Option(help="A further name to be called by (may be repeated).")
    ] = None,
    token_file: Annotated[
        str | None, typer.Option(help="File with the token; it is made if it is not there.")
    ] = None,
    rate: Annotated[float, typer.Option(min=0.001, help="Questions a second, over time.")] = 1000,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Serve though the decision does not hold; every answer says so."
        ),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No notes on stderr, but for a random token.")
    ] = False,
) -> None:
    """Explain predictions of your own model over HTTP. The token is in GRAPHGAUGE_TOKEN, in
    --token-file, or made and shown.
    """
    from graphgauge.cli.serve import Wishes, run_serve

    settings = {
        "host": host,
        "port": port,
        "hosts": tuple(allowed_host or ()),
        "budget_ms": budget_ms,
        "rate": rate,
    }
    wishes = Wishes(
        config, decision, tuple(allow or ()), fallback, audit, token_file, expose, force
    )
    run_serve(wishes, settings, Teller(quiet))


audit = typer.Typer(help="Check and export the log of answers.", no_args_is_help=True)


@audit.command()
def verify(
    log: Log,
    head: Annotated[
        str | None, typer.Option(help="A digest noted earlier, which the log must hold.")
    ] = None,
    json: Json = False,
) -> None:
    """Make every digest of the log again: exit code 0 if it is whole, 1 if something was changed or
    removed.
    """
    from graphgauge.cli.audit import as_record, as_text, run_verify

    found = run_verify(log, head)
    show(as_record(found) if json else found, as_text, json)
    raise typer.Exit(ExitCode.BELOW if found.fault else ExitCode.PASS)


@audit.command()
def export(
    log: Log,
    form: Annotated[
        str, typer.Option("--format", help="jsonl, with everything, or csv, for spreadsheets.")
    ] = "jsonl",
    output: Annotated[str | None, typer.Option(help="A file (default: stdout).")] = None,
) -> None:
    """Write the log out, an entry a line."""
    from graphgauge.cli.audit import run_export

    for line in run_export(log, form, output):
        typer.echo(line)
