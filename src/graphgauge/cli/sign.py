"""`graphgauge sign`: put a name under a decision."""

from pathlib import Path
from typing import Annotated

import typer

from graphgauge.lifecycle import DECISION_FILE, Decision


def _sign_decision(path: str, by: str, again: bool = False) -> Decision:
    """Put a name under a decision, in its file; ``again``: although somebody has signed it."""
    place = Path(path) / DECISION_FILE if Path(path).is_dir() else Path(path)
    signed = Decision.read(place).sign(by, again=again)
    signed.write(place)
    return signed


def sign_command(
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
    signed = _sign_decision(decision, by, again)
    typer.echo(
        f"{signed.label}: signed by {signed.signed_by}, holds until {signed.expires}, digest "
        f"{signed.digest}"
    )
