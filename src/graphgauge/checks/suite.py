"""What the three suites of checks have in common: results, failures, and how checks are run.

A check is a function named for what must be true. It returns nothing where that is so, returns a
remark where it is so but people should know something, raises `InapplicableCheck` where it says
nothing about this subject, and raises AssertionError with the reason where it is not so.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from graphgauge.core import BadSetting, FailedCheck, GraphgaugeError, lookup

OnFail = Literal["raise", "return"]


class InapplicableCheck(Exception):
    """Raised by a check that says nothing about its subject; the message says why."""


@dataclass(frozen=True)
class CheckResult:
    """What became of one check."""

    name: str
    status: Literal["passed", "noted", "skipped", "failed"]
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.status:<8}{self.name}" + (f": {self.reason}" if self.reason else "")


def fail_unless(condition: bool, reason: str) -> None:
    """Fail the check with ``reason`` (an assert statement would be silent under ``python -O``)."""
    if not condition:
        raise AssertionError(reason)


def choose_checks(
    checks: Mapping[str, Callable[..., str | None]],
    only: Iterable[str] | None,
    on_fail: OnFail,
    kind: str,
) -> dict[str, Callable[..., str | None]]:
    """Look up the checks to run, all of them by default; raise before the first one is run.

    Args:
        checks: Every check of the suite by its name.
        only: Names of the checks to run; None for all.
        on_fail: How failures are to be reported.
        kind: What an unknown name is called in the error, such as "model check".

    Raises:
        BadSetting: ``on_fail`` is neither "raise" nor "return".
        UnknownName: A name in ``only`` is not a check.
    """
    if on_fail not in ("raise", "return"):
        raise BadSetting(f"on_fail must be 'raise' or 'return', but {on_fail!r} was given.")
    return {name: lookup(checks, name, kind) for name in (checks if only is None else only)}


def run_checks(
    checks: Mapping[str, Callable[..., str | None]],
    *subject: object,
    description: str,
    on_fail: OnFail,
) -> list[CheckResult]:
    """Run checks on a subject, whatever happens in them.

    Args:
        checks: The checks by their names.
        subject: What each check is called with.
        description: What the error about failures calls the subject.
        on_fail: "raise" raises all failures together, "return" only lists them.

    Raises:
        FailedCheck: A check failed, and ``on_fail`` is "raise".
    """
    results = [_run_check(name, check, *subject) for name, check in checks.items()]
    failed = [result for result in results if result.status == "failed"]
    if failed and on_fail == "raise":
        lines = "\n".join(map(str, failed))
        raise FailedCheck(f"{description} fails {len(failed)} of {len(results)} checks:\n{lines}")
    return results


def _run_check(name: str, check: Callable[..., str | None], *subject: object) -> CheckResult:
    try:
        remark = check(*subject)
    except InapplicableCheck as reason:
        return CheckResult(name, "skipped", str(reason))
    except (AssertionError, GraphgaugeError) as error:
        return CheckResult(name, "failed", str(error) or type(error).__name__)
    except (Exception, SystemExit) as error:
        return CheckResult(name, "failed", f"{type(error).__name__}: {error}")
    return CheckResult(name, "noted", remark) if remark else CheckResult(name, "passed")
