"""The answer of a check in the forms that pipelines read: JUnit XML, and the annotations of
GitHub's log.

    verdict                              JUnit                          annotation
    pass                                 test case                      -
    warn                                 test case with system-out      ::warning
    fail                                 failure                        ::error
    not applicable, by design            skipped                        -
    not applicable, it should be there   error                          ::error
    undecided                            error                          ::error

A check that is incomplete without a single gap to point at (an explainer without any quality
number), or refused because the run is not of the decision's network, has one case of its own.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

from graphgauge.core.errors import BadFile
from graphgauge.core.verdicts import FAIL, NOT_APPLICABLE, PASS, UNDECIDED, WARN, Verdict
from graphgauge.guidelines import Check
from graphgauge.guidelines.judging import BY_DESIGN, INCOMPLETE

NOT_XML = re.compile(
    "[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)  #: what XML 1.0 cannot hold
SKIPPED, ERROR = "skipped", "error"
UNANSWERED = (
    2,
    INCOMPLETE,
)  #: exit codes of a check that could not be made: refused, or something is missing


def kind_of(verdict: Verdict) -> str:
    """A verdict as a pipeline sees it: "pass", "warn", "fail", "skipped" or "error"."""
    if verdict.outcome == UNDECIDED:
        return ERROR
    if verdict.outcome != NOT_APPLICABLE:
        return verdict.outcome
    return SKIPPED if verdict.status in BY_DESIGN else ERROR


def subject(verdict: Verdict) -> str:
    """Task, network and explainer as one name.

    >>> subject(Verdict("pass", "time", "", task="cora-node", model="gcn", explainer="lrp"))
    'cora-node.gcn.lrp'
    """
    return ".".join(filter(None, (verdict.task, verdict.model, verdict.explainer)))


# --- JUnit ----------------------------------------------------------------------------------------


def junit(found: Check, name: str = "graphgauge") -> str:
    """The check as a JUnit file: one suite for each task, network and explainer."""
    groups: dict[str, list[Verdict]] = {}
    for verdict in found.verdicts:
        groups.setdefault(subject(verdict), []).append(verdict)
    root = ElementTree.Element("testsuites", name=clean(name))
    for suite, own in groups.items():
        add_suite(root, suite, own)
    if found.code in UNANSWERED and not any(
        kind_of(verdict) == ERROR for verdict in found.verdicts
    ):
        add_incomplete(root, found)
    for count in ("tests", "failures", "errors", "skipped"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def add_suite(root: ElementTree.Element, name: str, verdicts: list[Verdict]) -> None:
    """One suite with a case for each number."""
    kinds = [kind_of(verdict) for verdict in verdicts]
    counts = {
        "tests": len(kinds),
        "failures": kinds.count(FAIL),
        "errors": kinds.count(ERROR),
        "skipped": kinds.count(SKIPPED),
    }
    suite = ElementTree.SubElement(
        root, "testsuite", {"name": clean(name), **{key: str(n) for key, n in counts.items()}}
    )
    for verdict, kind in zip(verdicts, kinds, strict=True):
        case = ElementTree.SubElement(
            suite, "testcase", classname=clean(name), name=clean(verdict.metric)
        )
        add_outcome(case, kind, clean(verdict.reason))


def add_outcome(case: ElementTree.Element, kind: str, reason: str) -> None:
    """What happened to a case; nothing for one that passed."""
    if kind == WARN:
        ElementTree.SubElement(case, "system-out").text = reason
    elif kind != PASS:
        tag = "failure" if kind == FAIL else kind
        ElementTree.SubElement(case, tag, message=reason).text = reason


def add_incomplete(root: ElementTree.Element, found: Check) -> None:
    """A suite for a check without anything to point at."""
    suite = ElementTree.SubElement(
        root, "testsuite", name="check", tests="1", failures="0", errors="1", skipped="0"
    )
    case = ElementTree.SubElement(suite, "testcase", classname="check", name="complete")
    add_outcome(case, ERROR, clean(found.reason))


def clean(text: str) -> str:
    r"""Text that XML can hold.

    >>> clean("a\x00b")
    'a�b'
    """
    return NOT_XML.sub("\ufffd", text)


def write_junit(found: Check, path: str | os.PathLike[str], name: str = "graphgauge") -> None:
    """Write the JUnit file."""
    try:
        Path(path).write_text(junit(found, name), encoding="utf-8")
    except OSError as error:
        raise BadFile(f"{os.fspath(path)} could not be written: {error}.") from error


# --- annotations ----------------------------------------------------------------------------------


def annotations(found: Check) -> list[str]:
    """Lines that GitHub Actions shows beside a build: an error for what fails or lacks, a warning
    for what is doubtful.
    """
    lines = [line for verdict in found.verdicts for line in annotation(verdict)]
    return (
        lines
        if lines or found.code not in UNANSWERED
        else [command("error", "graphgauge", found.reason)]
    )


def annotation(verdict: Verdict) -> Iterable[str]:
    """The line of one verdict, if there is one."""
    level = {WARN: "warning", FAIL: "error", ERROR: "error"}.get(kind_of(verdict))
    return (
        []
        if level is None
        else [command(level, f"{subject(verdict)} {verdict.metric}", verdict.reason)]
    )


def command(level: str, title: str, message: str) -> str:
    r"""A workflow command; what would end it or begin another one is escaped.

    >>> command("error", "a,b", "50 %\n::stop")
    '::error title=a%2Cb::50 %25%0A::stop'
    """
    return f"::{level} title={escaped(title).replace(':', '%3A').replace(',', '%2C')}::{escaped(message)}"


def escaped(text: str) -> str:
    """Data of a workflow command: one line, percent signs doubled up."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
