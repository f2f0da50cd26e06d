"""Documents for people who are responsible for a system, filled from a run and its decision.

    model_card.md        a section for a model card, with its numbers as front matter
    explainability.md    for the instructions for use: what explanations are, how good they are,
                         when not to trust them
    annex_iv.md          tables for the technical documentation (points 2(b), 2(e), 2(g) and 3 of
                         Annex IV of the EU AI Act)
    monitoring_plan.md   what is monitored, what makes a new validation necessary, who is told
    checklist.md         the paper's eight points, with links to the evidence
    audit_trail.md       every file of the run with its sha256, and where the log of answers is

What only the owner knows stays as TODO(owner). Nothing here says which rules apply or whether they
are met. A classification is printed only if the owner states one, and as the owner's statement.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from graphgauge.core import BadFile
from graphgauge.evaluation import UNKNOWN_ACCURACY, Results
from graphgauge.guidelines import Requirements
from graphgauge.lifecycle.decision import Decision
from graphgauge.lifecycle.document_data import DocumentData, Owner
from graphgauge.lifecycle.document_tables import explainers_table, losses_table, numbers_table
from graphgauge.lifecycle.markdown import render_markdown
from graphgauge.lifecycle.shortlist import describe_shortlist

if TYPE_CHECKING:
    from graphgauge.lifecycle.validation import Validation

_DOCUMENT_NAMES = (
    "model_card",
    "explainability",
    "annex_iv",
    "monitoring_plan",
    "checklist",
    "audit_trail",
)


def write_documents(
    run: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    decision: Decision | None = None,
    owner: Owner | None = None,
    requirements: Requirements | None = None,
) -> list[Path]:
    """Write all documents about a run into a folder.

    Args:
        run: Folder of the run.
        folder: Where to write.
        decision: The decision; None: the choice is the run's recommendation, unsigned.
        owner: What only the owner can state.
        requirements: Thresholds (default: the decision's, or the paper's).

    Returns:
        The written files.

    Raises:
        BadFile: The run cannot be read, or the folder cannot be written to.
    """
    run, folder = Path(run), Path(folder)
    agreed = Requirements() if decision is None else decision.wanted()
    data = DocumentData(
        Results.load(run), run, folder, decision, owner or Owner(), requirements or agreed
    )
    values = data.values()
    paths = [folder / f"{name}.md" for name in _DOCUMENT_NAMES]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in paths:
            path.write_text(render_markdown(f"{path.name}.j2", values), encoding="utf-8")
    except OSError as error:
        raise BadFile(f"{folder} could not be written: {error}.") from error
    return paths


def validation_page(validation: "Validation") -> str:
    """Return the page of a validation, to be read before somebody signs."""
    decision, results = validation.decision, validation.results
    requirements, accuracy = decision.wanted(), results.accuracy
    values = {
        "decision": decision,
        "listed": describe_shortlist(decision.consultation),
        "numbers": numbers_table(results, requirements, validation.check.verdicts),
        "others": explainers_table(results, requirements),
        "recommendation": validation.recommendation,
        "notes": [each.note for each in validation.comparison if each.note],
        "trade_off": validation.trade_off,
        "losses": losses_table(vars(loss) for loss in validation.trade_off.losses),
        "answer": validation.check.reason,
        "accuracy": UNKNOWN_ACCURACY if accuracy is None else accuracy.sentence,
    }
    return render_markdown("validation.md.j2", values)
