"""`check_model`: does a wrapped network have the properties that everything else relies on?

In a test suite of your own:

    @pytest.mark.parametrize("name", graphgauge.checks.MODEL_CHECKS)
    def test_my_model(name):
        graphgauge.check_model(my_model(), only=[name])
"""

from collections.abc import Iterable
from typing import Any

from graphgauge.checks.model_checks import MODEL_CHECKS
from graphgauge.checks.suite import CheckResult, OnFail, choose_checks, run_checks
from graphgauge.core import BadModel
from graphgauge.models import BaseModel, evenly_spaced_rows

_MAX_TARGETS = 12


def check_model(
    model: BaseModel,
    targets: Any = None,
    only: Iterable[str] | None = None,
    on_fail: OnFail = "raise",
) -> list[CheckResult]:
    """Check whether a wrapped network has the properties that everything else relies on.

    Args:
        model: The wrapped network.
        targets: Up to 12 targets to check; by default spread over the population.
        only: Names of the checks to run; by default all of `MODEL_CHECKS`.
        on_fail: "raise" raises all failures together, "return" only lists them.

    Returns:
        What became of each check.

    Raises:
        FailedCheck: A check failed, and ``on_fail`` is "raise".
        BadModel: The network is not wrapped.
        BadSetting: ``on_fail`` is unknown.
        UnknownName: A name in ``only`` is not a check.

    >>> names = ["predictions_are_finite", "messages_can_be_masked"]
    >>> for result in gg.check_model(model, [302, 510], only=names):
    ...     print(result)
    passed  predictions_are_finite
    passed  messages_can_be_masked
    """
    if not isinstance(model, BaseModel):
        raise BadModel(
            "check_model needs a wrapped network such as gg.NodeClassificationModel, but got "
            f"{type(model).__name__}."
        )
    checks = choose_checks(MODEL_CHECKS, only, on_fail, "model check")
    rows = (
        evenly_spaced_rows(model.population_rows, _MAX_TARGETS)
        if targets is None
        else model.parse_targets(targets)
    )
    chosen = rows[:_MAX_TARGETS].to_user()
    return run_checks(checks, model, chosen, description=repr(model), on_fail=on_fail)
