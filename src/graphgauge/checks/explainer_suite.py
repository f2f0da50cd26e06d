"""`check_explainer`: does an explainer keep the promises that everything else relies on?

In a test suite of your own:

    @pytest.mark.parametrize("name", graphgauge.checks.EXPLAINER_CHECKS)
    def test_my_explainer(name):
        graphgauge.check_explainer(MyExplainer(), my_model(), only=[name])
"""

from collections.abc import Iterable
from typing import Any

from graphgauge.checks.explainer_checks import EXPLAINER_CHECKS
from graphgauge.checks.explainer_trial import ExplainerTrial
from graphgauge.checks.model_suite import CheckResult, check_on_fail, raise_failures, run_check
from graphgauge.core import BadModel, BadSetting, lookup
from graphgauge.explainers import BaseExplainer
from graphgauge.models import BaseModel, evenly_spaced_rows

_NUM_TARGETS = 4


def check_explainer(
    explainer: BaseExplainer,
    model: BaseModel,
    targets: Any = None,
    only: Iterable[str] | None = None,
    on_fail: str = "raise",
) -> list[CheckResult]:
    """Run the checks (or those named in ``only``) on up to 4 ``targets`` of ``model``, by default
    spread over the population.

    Some checks use the model, others tiny networks of their own. With ``on_fail="raise"`` all
    failures are raised together as one `FailedCheck`; with ``"return"`` they are only listed.
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
    check_on_fail(on_fail)
    chosen = list(EXPLAINER_CHECKS) if only is None else list(only)
    checks = {name: lookup(EXPLAINER_CHECKS, name, "explainer check") for name in chosen}
    target = (
        evenly_spaced_rows(model.population_rows, _NUM_TARGETS)
        if targets is None
        else model.parse_targets(targets)
    )[:_NUM_TARGETS]
    if not len(target):
        raise BadSetting("check_explainer needs a target to explain, but targets is empty.")
    trial = ExplainerTrial.from_model(explainer, model, list(target))
    return raise_failures(
        [run_check(name, check, trial) for name, check in checks.items()], repr(explainer), on_fail
    )
