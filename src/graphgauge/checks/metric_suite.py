"""`check_metric`: does a metric have the properties that everything else relies on?

In a test suite of your own:

    @pytest.mark.parametrize("name", graphgauge.checks.METRIC_CHECKS)
    def test_my_metric(name):
        graphgauge.check_metric(MyMetric(), only=[name])
"""

from collections.abc import Iterable

from graphgauge.checks.metric_checks import METRIC_CHECKS
from graphgauge.checks.metric_trial import MetricTrial
from graphgauge.checks.suite import CheckResult, OnFail, choose_checks, run_checks
from graphgauge.core import BadSetting, preserve_rng_state
from graphgauge.metrics import AnyMetric, Metric


def check_metric(
    metric: AnyMetric, only: Iterable[str] | None = None, on_fail: OnFail = "raise"
) -> list[CheckResult]:
    """Check a metric on bundles made for the purpose.

    Args:
        metric: The metric, such as ``gg.metrics.Auroc()``.
        only: Names of the checks to run; by default all of `METRIC_CHECKS`.
        on_fail: "raise" raises all failures together, "return" only lists them.

    Returns:
        What became of each check.

    Raises:
        FailedCheck: A check failed, and ``on_fail`` is "raise".

    >>> from graphgauge.metrics import Auroc
    >>> print(*check_metric(Auroc(), only=["bounds_are_an_interval"]))
    passed  bounds_are_an_interval
    """
    if not isinstance(metric, Metric):
        hint = " That is the class: call it." if isinstance(metric, type) else ""
        raise BadSetting(
            f"check_metric needs a metric such as gg.metrics.Auroc(), but got {metric!r}.{hint}"
        )
    checks = choose_checks(METRIC_CHECKS, only, on_fail, "metric check")
    with preserve_rng_state():
        return run_checks(checks, MetricTrial(metric), description=repr(metric), on_fail=on_fail)
