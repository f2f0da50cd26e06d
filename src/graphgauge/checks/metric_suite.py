"""`check_metric`: does a metric keep the promises that everything else relies on?

In a test suite of your own:

    @pytest.mark.parametrize("name", graphgauge.checks.METRIC_CHECKS)
    def test_my_metric(name):
        graphgauge.check_metric(MyMetric(), only=[name])
"""

from collections.abc import Iterable
from typing import Any

from graphgauge.checks.metric_checks import METRIC_CHECKS
from graphgauge.checks.metric_trial import MetricTrial
from graphgauge.checks.model_suite import CheckResult, check_on_fail, raise_failures, run_check
from graphgauge.core import BadSetting, lookup, preserve_rng_state
from graphgauge.metrics import Metric


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
    trial = MetricTrial(metric)
    with preserve_rng_state():
        results = [run_check(name, check, trial) for name, check in checks.items()]
    return raise_failures(results, repr(metric), on_fail)
