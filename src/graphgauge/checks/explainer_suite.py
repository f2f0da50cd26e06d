"""`check_explainer`: does an explainer have the properties that everything else relies on?

In a test suite of your own:

    @pytest.mark.parametrize("name", graphgauge.checks.EXPLAINER_CHECKS)
    def test_my_explainer(name):
        graphgauge.check_explainer(MyExplainer(), my_model(), only=[name])
"""

from collections.abc import Iterable
from typing import Any

from graphgauge.checks.explainer_checks import EXPLAINER_CHECKS
from graphgauge.checks.explainer_trial import ExplainerTrial
from graphgauge.checks.suite import CheckResult, OnFail, choose_checks, run_checks
from graphgauge.core import BadModel, BadSetting
from graphgauge.explainers import BaseExplainer
from graphgauge.models import BaseModel, evenly_spaced_rows

_MAX_TARGETS = 4


def check_explainer(
    explainer: BaseExplainer,
    model: BaseModel,
    targets: Any = None,
    only: Iterable[str] | None = None,
    on_fail: OnFail = "raise",
) -> list[CheckResult]:
    """Check whether an explainer has the properties that everything else relies on.

    Some checks use the model, others tiny networks of their own.

    Args:
        explainer: The explainer.
        model: A wrapped network to explain.
        targets: Up to 4 targets to explain; by default spread over the population.
        only: Names of the checks to run; by default all of `EXPLAINER_CHECKS`.
        on_fail: "raise" raises all failures together, "return" only lists them.

    Returns:
        What became of each check.

    Raises:
        FailedCheck: A check failed, and ``on_fail`` is "raise".
        BadSetting: ``explainer`` is not an explainer, there is no target, or ``on_fail`` is
            unknown.
        BadModel: The network is not wrapped.
        UnknownName: A name in ``only`` is not a check.

    >>> names = ["scores_are_finite", "seed_matters_as_declared"]
    >>> for result in gg.check_explainer(gg.InputXGradient(), model, [302], only=names):
    ...     print(result)
    passed  scores_are_finite
    passed  seed_matters_as_declared
    """
    if not isinstance(explainer, BaseExplainer):
        raise BadSetting(
            f"check_explainer needs an explainer such as gg.Saliency(), but got {explainer!r}. "
            "A function becomes one by gg.CallableExplainer(function)."
        )
    if not isinstance(model, BaseModel):
        raise BadModel(
            "check_explainer needs a wrapped network such as gg.NodeClassificationModel, but got "
            f"{type(model).__name__}."
        )
    checks = choose_checks(EXPLAINER_CHECKS, only, on_fail, "explainer check")
    rows = (
        evenly_spaced_rows(model.population_rows, _MAX_TARGETS)
        if targets is None
        else model.parse_targets(targets)
    )
    chosen = list(rows[:_MAX_TARGETS])
    if not chosen:
        raise BadSetting("check_explainer needs a target to explain, but targets is empty.")
    trial = ExplainerTrial.from_model(explainer, model, chosen)
    return run_checks(checks, trial, description=repr(explainer), on_fail=on_fail)
