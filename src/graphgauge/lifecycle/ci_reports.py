"""Reports of a check for CI pipelines: JUnit XML, and annotations in GitHub's log.

    verdict                              JUnit                          annotation
    pass                                 test case                      -
    warn                                 test case with system-out      ::warning
    fail                                 failure                        ::error
    not applicable, by design            skipped                        -
    not applicable, but it should apply  error                          ::error
    undecided                            error                          ::error

A check can be incomplete without a missing number (an explainer without any quality number), or
refused because the run is not about the decision's network. It then gets a test case of its own.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

from graphgauge.core import FAIL, NOT_APPLICABLE, PASS, UNDECIDED, WARN, BadFile, Verdict
from graphgauge.guidelines import ACCEPTED_GAPS, EXIT_INCOMPLETE, CheckAnswer

#: characters that XML 1.0 cannot hold
_INVALID_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SKIPPED, _ERROR = "skipped", "error"
#: exit codes of a check that could not be made: it was refused, or something is missing
_UNANSWERED_CODES = (2, EXIT_INCOMPLETE)


def _report_status(verdict: Verdict) -> str:
    """Return how a pipeline sees a verdict: "pass", "warn", "fail", "skipped" or "error"."""
    if verdict.outcome == UNDECIDED:
        return _ERROR
    if verdict.outcome != NOT_APPLICABLE:
        return verdict.outcome
    return _SKIPPED if verdict.status in ACCEPTED_GAPS else _ERROR


def _subject_name(verdict: Verdict) -> str:
    """Join task, network and explainer to one name.

    >>> _subject_name(Verdict("pass", "time", "", task="cora-node", model="gcn", explainer="lrp"))
    'cora-node.gcn.lrp'
    """
    return ".".join(filter(None, (verdict.task, verdict.model, verdict.explainer)))


# --- JUnit ----------------------------------------------------------------------------------------


def format_junit(found: CheckAnswer, name: str = "graphgauge") -> str:
    """Format a check as JUnit XML, with one suite for each task, network and explainer.

    Args:
        found: The answer of `guidelines.check`.
        name: Name of the whole report, which CI systems show.
    """
    groups: dict[str, list[Verdict]] = {}
    for verdict in found.verdicts:
        groups.setdefault(_subject_name(verdict), []).append(verdict)
    root = ElementTree.Element("testsuites", name=_clean_xml_text(name))
    for suite, own in groups.items():
        _add_suite(root, suite, own)
    if found.code in _UNANSWERED_CODES and not any(
        _report_status(verdict) == _ERROR for verdict in found.verdicts
    ):
        _add_incomplete(root, found)
    for count in ("tests", "failures", "errors", "skipped"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _add_suite(root: ElementTree.Element, name: str, verdicts: list[Verdict]) -> None:
    """Add a suite with one test case for each number."""
    kinds = [_report_status(verdict) for verdict in verdicts]
    counts = {
        "tests": len(kinds),
        "failures": kinds.count(FAIL),
        "errors": kinds.count(_ERROR),
        "skipped": kinds.count(_SKIPPED),
    }
    suite = ElementTree.SubElement(
        root,
        "testsuite",
        {"name": _clean_xml_text(name), **{key: str(n) for key, n in counts.items()}},
    )
    for verdict, kind in zip(verdicts, kinds, strict=True):
        case = ElementTree.SubElement(
            suite, "testcase", classname=_clean_xml_text(name), name=_clean_xml_text(verdict.metric)
        )
        _add_outcome(case, kind, _clean_xml_text(verdict.reason))


def _add_outcome(case: ElementTree.Element, kind: str, reason: str) -> None:
    """Add the outcome to a test case; a case that passed has none."""
    if kind == WARN:
        ElementTree.SubElement(case, "system-out").text = reason
    elif kind != PASS:
        tag = "failure" if kind == FAIL else kind
        ElementTree.SubElement(case, tag, message=reason).text = reason


def _add_incomplete(root: ElementTree.Element, found: CheckAnswer) -> None:
    """Add a suite for a check without any number to point at."""
    suite = ElementTree.SubElement(
        root, "testsuite", name="check", tests="1", failures="0", errors="1", skipped="0"
    )
    case = ElementTree.SubElement(suite, "testcase", classname="check", name="complete")
    _add_outcome(case, _ERROR, _clean_xml_text(found.reason))


def _clean_xml_text(text: str) -> str:
    r"""Replace the characters that XML cannot hold.

    >>> _clean_xml_text("a\x00b")
    'a�b'
    """
    return _INVALID_XML.sub("\ufffd", text)


def write_junit(found: CheckAnswer, path: str | os.PathLike[str], name: str = "graphgauge") -> None:
    """Write the JUnit file.

    Args:
        found: The answer of `guidelines.check`.
        path: The file; an existing one is overwritten.
        name: Name of the whole report, which CI systems show.

    Raises:
        BadFile: The file cannot be written.
    """
    try:
        Path(path).write_text(format_junit(found, name), encoding="utf-8")
    except OSError as error:
        raise BadFile(f"{os.fspath(path)} could not be written: {error}.") from error


# --- annotations ----------------------------------------------------------------------------------


def format_annotations(found: CheckAnswer) -> list[str]:
    """Return lines that GitHub Actions shows beside a build.

    A number that fails or is missing gives an error, a doubtful one a warning.
    """
    lines = [line for verdict in found.verdicts for line in _verdict_annotation(verdict)]
    return (
        lines
        if lines or found.code not in _UNANSWERED_CODES
        else [_workflow_command("error", "graphgauge", found.reason)]
    )


def _verdict_annotation(verdict: Verdict) -> Iterable[str]:
    """Return the line of one verdict, if it has one."""
    level = {WARN: "warning", FAIL: "error", _ERROR: "error"}.get(_report_status(verdict))
    return (
        []
        if level is None
        else [
            _workflow_command(level, f"{_subject_name(verdict)} {verdict.metric}", verdict.reason)
        ]
    )


def _workflow_command(level: str, title: str, message: str) -> str:
    r"""Format a workflow command, and escape what would end it or begin another one.

    >>> _workflow_command("error", "a,b", "50 %\n::stop")
    '::error title=a%2Cb::50 %25%0A::stop'
    """
    escaped_title = _escape_command(title).replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={escaped_title}::{_escape_command(message)}"


def _escape_command(text: str) -> str:
    """Escape the data of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
