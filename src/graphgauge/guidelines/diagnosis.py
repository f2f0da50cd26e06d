"""Diagnosis of a run: the paper's troubleshooting table, and checks of our own.

empty_graphs            targets that no edge can reach
no_reference            there is no reference to substitute from
no_mask                 messages that cannot be masked
far_edges               edges that are too far away to be scored, but change predictions
constant_scores         permuting the scores changes nothing
never_flipped           an EC that is only the number of candidates
same_explainers         two explainers with the same numbers on every target
changing_deterministic  a deterministic explainer whose stability is below 1
untrained_mask          stability above its threshold that chance reaches too
few_trials              too few random curves; the stopping rule that errs in 37 % of null cases
no_better_than_random   nothing shows that a side beats the random explainer of the run (without
                        one: 0.5, or the random curves)
worse_than_random       a measure of faithfulness is clearly worse than the random explainer's
contradiction           the same, while another measure of the side is clearly better
no_baseline             there is no random explainer to compare with
unequal_targets         explainers are compared on different targets
poor_model              nothing shows that the network is better than a trivial one
unknown_accuracy        nobody said how good the model is
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from graphgauge.evaluation import ModelAccuracy, Results
from graphgauge.guidelines.findings import DiagnosedRun, DiagnosticCheck, Finding
from graphgauge.guidelines.network_checks import (
    find_far_edges,
    find_poor_model,
    find_unknown_accuracy,
)
from graphgauge.guidelines.random_checks import RANDOM_CHECKS
from graphgauge.guidelines.requirements import Requirements
from graphgauge.guidelines.score_checks import SCORE_CHECKS
from graphgauge.guidelines.target_checks import TARGET_CHECKS, find_unequal_targets
from graphgauge.guidelines.troubleshooting import TROUBLESHOOTING_CHECKS

if TYPE_CHECKING:
    import pandas as pd

_DIAGNOSTIC_CHECKS: tuple[DiagnosticCheck, ...] = (
    *TROUBLESHOOTING_CHECKS,
    *TARGET_CHECKS,
    find_far_edges,
    *SCORE_CHECKS,
    *RANDOM_CHECKS,
    find_unequal_targets,
    find_poor_model,
    find_unknown_accuracy,
)


def diagnose(
    results: Results,
    requirements: Requirements | None = None,
    accuracy: "float | ModelAccuracy | Mapping[str, Any] | None" = None,
    summary: "pd.DataFrame | None" = None,
) -> list[Finding]:
    """List everything about a run that looks wrong, with numbers and advice.

    Args:
        results: Results of a run.
        requirements: Thresholds and use (default: the paper's table).
        accuracy: The score of the model on its task, where the results do not know it: a share
            such as 0.81, or a `ModelAccuracy`.
        summary: A benchmark to compare with (default: the one that comes with graphgauge).
    """
    run = DiagnosedRun(
        results,
        requirements or Requirements(),
        ModelAccuracy.from_value(accuracy) or results.accuracy,
        summary,
    )
    return [finding for check in _DIAGNOSTIC_CHECKS for finding in check(run)]
