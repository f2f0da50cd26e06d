"""`check_metric`: does a metric keep the promises that everything else relies on?

In a test suite of your own:

    @pytest.mark.parametrize("name", graphgauge.metrics.METRIC_CHECKS)
    def test_my_metric(name):
        graphgauge.check_metric(MyMetric(), only=[name])
"""

from collections.abc import Iterable
from typing import Any

from graphgauge.core.errors import BadSetting
from graphgauge.core.randomness import preserved_randomness
from graphgauge.core.registry import lookup
from graphgauge.metrics.base import Metric
from graphgauge.metrics.promises import METRIC_CHECKS
from graphgauge.metrics.trials import Trial
from graphgauge.models import CheckResult
from graphgauge.models.checks import check_on_fail, reported, run_check


def check_metric(
    metric: Metric[Any], only: Iterable[str] | None = None, on_fail: str = "raise"
) -> list[CheckResult]:
    """Run the checks (or those named in ``only``) on bundles made for the purpose.

    With ``on_fail="raise"`` all failures are raised together as one `FailedCheck`; with
    ``"return"`` they are only listed.
    """
    if not isinstance(metric, Metric):
        hint = " That is the class: call it." if isinstance(metric, type) else ""
        raise BadSetting(
            f"check_metric needs a metric such as gg.metrics.Auroc(), but got {metric!r}.{hint}"
        )
    check_on_fail(on_fail)
    chosen = list(METRIC_CHECKS) if only is None else list(only)
    checks = {name: lookup(METRIC_CHECKS, name, "metric check") for name in chosen}
    trial = Trial(metric)
    with preserved_randomness():
        results = [run_check(name, check, trial) for name, check in checks.items()]
    return reported(results, repr(metric), on_fail)
