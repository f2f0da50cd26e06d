"""`check_model`: does a wrapped network keep the promises that everything else relies on?

In a test suite of your own:

    @pytest.mark.parametrize("name", graphgauge.checks.MODEL_CHECKS)
    def test_my_model(name):
        graphgauge.check_model(my_model(), only=[name])
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from graphgauge.checks.model_checks import MODEL_CHECKS, InapplicableCheck
from graphgauge.core import BadModel, BadSetting, FailedCheck, GraphgaugeError, lookup
from graphgauge.models import BaseModel, evenly_spaced_rows

_MAX_CHECKED_TARGETS = 12


@dataclass(frozen=True)
class CheckResult:
    """What became of one check. ``status``: "passed", "noted", "skipped" or "failed"."""

    name: str
    status: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.status:<8}{self.name}" + (f": {self.reason}" if self.reason else "")


def check_model(
    model: BaseModel, targets: Any = None, only: Iterable[str] | None = None, on_fail: str = "raise"
) -> list[CheckResult]:
    """Check whether a wrapped network has the properties that everything else relies on.

    Args:
        model: The wrapped network.
        targets: Up to 12 targets to check; by default spread over the population.
        only: Names of checks in ``MODEL_CHECKS``; by default all.
        on_fail: "raise" raises all failures together as one `FailedCheck`; "return" only lists
            them.
    """
    if not isinstance(model, BaseModel):
        raise BadModel(
            f"check_model needs a wrapped network such as gg.NodeClassificationModel, but got {type(model).__name__}."
        )
    check_on_fail(on_fail)
    chosen = list(MODEL_CHECKS) if only is None else list(only)
    checks = {name: lookup(MODEL_CHECKS, name, "model check") for name in chosen}
    target = (
        evenly_spaced_rows(model.population_rows, _MAX_CHECKED_TARGETS)
        if targets is None
        else model.parse_targets(targets)
    )[:_MAX_CHECKED_TARGETS]
    asked = target.to_user()
    results = [run_check(name, check, model, asked) for name, check in checks.items()]
    return raise_failures(results, repr(model), on_fail)


def run_check(name: str, check: Callable[..., str | None], *subject: Any) -> CheckResult:
    """One check of a subject, whatever happens in it."""
    try:
        remark = check(*subject)
    except InapplicableCheck as reason:
        return CheckResult(name, "skipped", str(reason))
    except (AssertionError, GraphgaugeError) as error:
        return CheckResult(name, "failed", str(error) or type(error).__name__)
    except (Exception, SystemExit) as error:
        return CheckResult(name, "failed", f"{type(error).__name__}: {error}")
    return CheckResult(name, "noted", remark) if remark else CheckResult(name, "passed")


def raise_failures(results: list[CheckResult], subject: str, on_fail: str) -> list[CheckResult]:
    """The results; or with ``on_fail="raise"`` all failures as one error."""
    failed = [result for result in results if result.status == "failed"]
    if failed and on_fail == "raise":
        raise FailedCheck(
            f"{subject} fails {len(failed)} of {len(results)} checks:\n"
            + "\n".join(map(str, failed))
        )
    return results


def check_on_fail(on_fail: str) -> None:
    """Refuse an unknown way to report."""
    if on_fail not in ("raise", "return"):
        raise BadSetting(f"on_fail must be 'raise' or 'return', but {on_fail!r} was given.")
