"""From the words of the command line to a running service."""

import os
from dataclasses import dataclass
from typing import Annotated

import typer

from graphgauge.cli.console import Notifier
from graphgauge.explainers import find_explainer
from graphgauge.lifecycle import Decision, Project


@dataclass(frozen=True)
class _ServeOptions:
    """What was asked for, besides the service's own settings."""

    config: str
    decision: str | None
    allowed: tuple[str, ...]
    fallback: str
    audit: str
    token_file: str | None
    expose: bool
    force: bool
    host: str
    port: int
    hosts: tuple[str, ...]
    budget_ms: float
    rate: float


def _run_serve(options: _ServeOptions, tell: Notifier) -> None:
    """Check everything that can be checked, then serve until told to stop."""
    from graphgauge.serve import (
        Settings,
        check_exposure,
        check_serve_extra,
        print_to_stderr,
        resolve_token,
        run_service,
        service_from_project,
    )

    check_serve_extra()
    project = Project.read(options.config)
    settings = Settings(
        host=options.host,
        port=options.port,
        hosts=options.hosts,
        budget_ms=options.budget_ms,
        rate=options.rate,
        seed=project.config.seed,
    )
    wanted, where = resolve_token(settings, options.token_file, os.environ)
    if warning := check_exposure(wanted, options.expose):
        tell(f"graphgauge: {warning}")
    decision = None if options.decision is None else Decision.read(options.decision)
    if decision is None:
        tell(
            "graphgauge: note: no --decision was given, so every answer says that its explainer "
            "was not validated"
        )
    service = service_from_project(
        project,
        options.audit,
        wanted,
        decision=decision,
        allowed=options.allowed,
        fallback=find_explainer(options.fallback),
        force=options.force,
    )
    if where == "random":
        # the one place where it is shown: nobody could ask otherwise
        print_to_stderr(f"token: {wanted.token}")
    else:
        tell(f"token: {where}")
    run_service(service, tell)


def serve_command(
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
    options = _ServeOptions(
        config=config,
        decision=decision,
        allowed=tuple(allow or ()),
        fallback=fallback,
        audit=audit,
        token_file=token_file,
        expose=expose,
        force=force,
        host=host,
        port=port,
        hosts=tuple(allowed_host or ()),
        budget_ms=budget_ms,
        rate=rate,
    )
    _run_serve(options, Notifier(quiet))
