"""`check_explainer`: does an explainer keep the promises that everything else relies on?

In a test suite of your own:

    @pytest.mark.parametrize("name", graphgauge.explainers.EXPLAINER_CHECKS)
    def test_my_explainer(name):
        graphgauge.check_explainer(MyExplainer(), my_model(), only=[name])
"""

from collections.abc import Iterable
from typing import Any

from graphgauge.core.errors import BadModel, BadSetting
from graphgauge.core.registry import lookup
from graphgauge.explainers.base import BaseExplainer
from graphgauge.explainers.promises import EXPLAINER_CHECKS
from graphgauge.explainers.trials import Trial
from graphgauge.models import BaseModel, CheckResult
from graphgauge.models.checks import check_on_fail, reported, run_check
from graphgauge.models.probing import spaced

NUM_TARGETS = 4


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
    target = (spaced(model.everything, NUM_TARGETS) if targets is None else model.read(targets))[
        :NUM_TARGETS
    ]
    if not len(target):
        raise BadSetting("check_explainer needs a target to explain, but targets is empty.")
    trial = Trial.of(explainer, model, list(target))
    return reported(
        [run_check(name, check, trial) for name, check in checks.items()], repr(explainer), on_fail
    )
