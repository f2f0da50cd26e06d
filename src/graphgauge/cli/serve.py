"""From the words of the command line to a running service."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphgauge.cli.conventions import Teller
from graphgauge.explainers import find_explainer
from graphgauge.lifecycle import Decision, Project


@dataclass(frozen=True)
class Wishes:
    """What was asked for, besides the service's own settings."""

    config: str
    decision: str | None
    allowed: tuple[str, ...]
    fallback: str
    audit: str
    token_file: str | None
    expose: bool
    force: bool


def run_serve(wishes: Wishes, settings: Mapping[str, Any], tell: Teller) -> None:
    """Check everything that can be checked, then serve until told to stop."""
    from graphgauge.serve.app import check_extra
    from graphgauge.serve.project import service_of
    from graphgauge.serve.running import check_exposure, run_service, told, with_token
    from graphgauge.serve.settings import Settings

    check_extra()
    project = Project.read(wishes.config)
    wanted, where = with_token(
        Settings(**settings, seed=project.form.seed), wishes.token_file, os.environ
    )
    if warning := check_exposure(wanted, wishes.expose):
        tell(f"graphgauge: {warning}")
    decision = None if wishes.decision is None else Decision.read(wishes.decision)
    if decision is None:
        tell(
            "graphgauge: note: no --decision was given, so every answer says that its explainer was not validated"
        )
    service = service_of(
        project,
        wishes.audit,
        wanted,
        decision=decision,
        allowed=wishes.allowed,
        fallback=find_explainer(wishes.fallback),
        force=wishes.force,
    )
    if where == "random":
        told(
            f"token: {wanted.token}"
        )  # the one place where it is shown: nobody could ask otherwise
    else:
        tell(f"token: {where}")
    run_service(service, tell)
