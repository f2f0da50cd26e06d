"""`graphgauge dashboard`: from the words of the command line to the pages in a browser. Heavy
imports happen inside.
"""

import os
from typing import Annotated

import typer

from graphgauge.cli.console import ExitCode, Notifier


def dashboard_command(
    root: Annotated[
        str, typer.Argument(help="Folder with runs; only what lies under it can be chosen.")
    ] = ".",
    monitor: Annotated[
        str | None, typer.Option(help="A monitoring store, such as monitor.sqlite.")
    ] = None,
    project: Annotated[
        str | None,
        typer.Option(help="A project file: its model explains single targets again, with curves."),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8501,
    expose: Annotated[
        bool, typer.Option("--expose", help="Allow an address that other machines can reach.")
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", "-q", help="No notes on stderr; GRAPHGAUGE_DASHBOARD_TOKEN must be set."
        ),
    ] = False,
) -> None:
    """Show runs, thresholds, single explanations and monitoring in the browser, until Ctrl-C.
    Nothing is changed.
    """
    from graphgauge.dashboard import (
        DashboardConfig,
        ListenAddress,
        check_token_known,
        run_dashboard,
    )

    if quiet:
        check_token_known(os.environ)
    code = run_dashboard(
        DashboardConfig(root, monitor, project), ListenAddress(host, port, expose), Notifier(quiet)
    )
    raise typer.Exit(ExitCode.PASS if code == 0 else ExitCode.INCOMPLETE)
