"""What the document templates print: a run, its decision, and what the owner states."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import graphgauge
from graphgauge.evaluation import RUN_FILE, Results
from graphgauge.guidelines import (
    ITEM_DONE,
    ChecklistItem,
    Requirements,
    check,
    checklist,
    diagnose,
    recommend,
)
from graphgauge.lifecycle.decision import DECISION_FILE, Decision
from graphgauge.lifecycle.digests import digest_of_file, digest_of_results
from graphgauge.lifecycle.document_tables import (
    benchmark_table,
    drop_paper_praise,
    explainers_table,
    front_matter,
    limits_table,
    losses_table,
    numbers_table,
)
from graphgauge.lifecycle.early_stop_cost import format_saving
from graphgauge.lifecycle.markdown import SafeMarkdown, file_link, safe_markdown_table
from graphgauge.lifecycle.monitoring_summary import (
    MONITORED_ITEMS,
    MonitoringSummary,
    summarise_monitoring,
)
from graphgauge.lifecycle.shortlist import PROJECT_LIST, describe_shortlist

#: files of a run that show a point of the checklist
_EVIDENCE_FILES = {
    "selection": (DECISION_FILE,),
    "validation": ("rows.csv", RUN_FILE),
    "thresholds": ("validation.md", "rows.csv", RUN_FILE),
    "latency": ("production/rows.csv",),
}


@dataclass(frozen=True)
class Owner:
    """What only the owner can state; '' is printed as TODO(owner).

    Args:
        system: Name and version of the system.
        contact: Who answers questions.
        classification: The owner's classification of the system.
        audit_log: Where the log of answers is kept.
        evidence: Files for the owner's points of the checklist.
        monitor: The monitoring store, which fills the monitoring plan.
    """

    system: str = ""
    contact: str = ""
    classification: str = ""
    audit_log: str = ""
    evidence: Mapping[str, str] = field(default_factory=dict)
    monitor: str = ""


def owner_todo(what: str, stated: str = "") -> str:
    """Return what the owner stated, or a reminder to state it.

    Args:
        what: What is to be stated, in a few words.
        stated: What the owner stated; '' if nothing.

    >>> str(owner_todo("who answers questions"))
    'TODO(owner): who answers questions'
    """
    return stated or SafeMarkdown(f"TODO(owner): {what}")


@dataclass(frozen=True)
class DocumentData:
    """A run, its decision, and where their files are."""

    results: Results
    run: Path
    folder: Path  #: of the documents
    decision: Decision | None
    owner: Owner
    requirements: Requirements

    @cached_property
    def chosen(self) -> str:
        """The explainer that the documents are about."""
        if self.decision is not None:
            return self.decision.label
        return recommend(self.results, self.requirements)[0].chosen

    @cached_property
    def monitoring(self) -> MonitoringSummary:
        """What the monitoring store says."""
        return summarise_monitoring(self.owner.monitor)

    def values(self) -> dict[str, object]:
        """Return everything that the templates print."""
        answer = check(self.results, self.requirements, [self.chosen])
        return {
            "todo": owner_todo,
            "owner": self.owner,
            "chosen": self.chosen,
            "version": graphgauge.__version__,
            "targets": len({row.target for row in self.results.rows}),
            "answer": answer.reason,
            "accuracy": self._accuracy(),
            "numbers": numbers_table(self.results, self.requirements, answer.verdicts),
            "others": explainers_table(self.results, self.requirements),
            "settings": safe_markdown_table(
                ["setting", "value"], self.results.settings.to_dict().items()
            ),
            "choice": safe_markdown_table(["what", "value"], self._choice()),
            "warnings": self._warnings(),
            "points": self._points(),
            "limits": limits_table(answer.verdicts),
            "trade_off": self._trade_off(),
            "comparison": self._comparison(),
            "files": self._files(),
            "front_matter": front_matter(self.chosen, answer.verdicts),
            "evidence_note": self._evidence_note(),
            "monitoring": self.monitoring,
            "audit_log": owner_todo(
                "where the log of answers is kept, and for how long", self.owner.audit_log
            ),
        }

    # --- the run and its decision -----------------------------------------------------------------

    def _accuracy(self) -> str:
        """Say how good the network is, or return a reminder to state it."""
        decided = None if self.decision is None else self.decision.accuracy_of_model()
        accuracy = decided or self.results.accuracy
        return owner_todo(
            "how good the network is at its task: `graphgauge validate --accuracy`",
            "" if accuracy is None else accuracy.sentence,
        )

    def _choice(self) -> list[tuple[str, object]]:
        """Return the lines of the decision."""
        decision = self.decision
        if decision is None:
            advice = "validate and sign: `graphgauge validate CONFIG --signed-by NAME`"
            seeds = sorted({str(row.seed) for row in self.results.rows})
            return [
                ("explainer", self.chosen),
                ("decision", owner_todo(advice)),
                ("seeds", ", ".join(seeds)),
            ]
        sizes = decision.description
        network = f"{sizes.get('network')}, {sizes.get('hops')} hops, hash {decision.network}"
        data = f"{sizes.get('nodes')} nodes, {sizes.get('edges')} edges, hash {decision.data}"
        parameters = [f"{name}={value}" for name, value in decision.parameters.items()]
        versions = [f"{name} {value}" for name, value in decision.versions.items()]
        signatures = owner_todo(
            "sign: `graphgauge sign FILE --by NAME`", _describe_signatures(decision)
        )
        return [
            ("explainer", decision.explainer),
            ("parameters", ", ".join(parameters) or "defaults"),
            ("chosen because", decision.reason),
            describe_shortlist(decision.consultation),
            ("network", network),
            ("data", data),
            ("seed", decision.seed),
            ("versions", ", ".join(versions)),
            ("decided", decision.made),
            ("holds until", decision.expires),
            ("signed by", signatures),
            ("decision digest", decision.digest),
        ]

    def _warnings(self) -> list[str]:
        """Return what speaks against trusting the explanations."""
        if self.decision is not None:
            return list(map(drop_paper_praise, self.decision.warnings))
        return [
            str(finding)
            for finding in diagnose(self.results, self.requirements)
            if finding.explainer in ("", self.chosen)
        ]

    def _trade_off(self) -> SafeMarkdown:
        """Compare early stopping with running every trial."""
        cost = {} if self.decision is None else self.decision.trade_off
        if not cost:
            advice = "measure the cost of early stopping: `graphgauge validate`"
            return SafeMarkdown(owner_todo(advice))
        seconds = "{:.3g} s against {:.3g} s".format(*cost["seconds"])
        sentence = (
            f"Time saved: {format_saving(cost['saved'])} ({seconds}, on the machine of the "
            f"validation); {'accepted' if cost['is_accepted'] else 'not accepted'}."
        )
        return SafeMarkdown(f"{losses_table(cost['losses'])}\n\n{sentence}")

    def _comparison(self) -> SafeMarkdown:
        """Compare one's own numbers with the benchmark's."""
        comparisons = () if self.decision is None else self.decision.comparison
        own = [each for each in comparisons if each["explainer"] == self.chosen]
        if not own:
            return SafeMarkdown(owner_todo("compare with the benchmark: `graphgauge validate`"))
        return benchmark_table(own)

    # --- evidence ---------------------------------------------------------------------------------

    def _points(self) -> list[tuple[SafeMarkdown, ChecklistItem, SafeMarkdown]]:
        """Return the checklist: a mark, the point, and links to the evidence."""
        points = checklist(self.results, self.chosen, self.requirements, self.owner.evidence)
        completed = [
            replace(point, evidence=drop_paper_praise(point.evidence))
            for point in map(self._complete_point, points)
        ]
        return [
            (SafeMarkdown("x" if point.state == ITEM_DONE else " "), point, self._links(point))
            for point in completed
        ]

    def _complete_point(self, point: ChecklistItem) -> ChecklistItem:
        """Complete a point of the checklist by the decision and the monitoring store.

        The decision knows about early stopping, the store about the points on monitoring.
        """
        evidence = ""
        if point.name in MONITORED_ITEMS:
            evidence = getattr(self.monitoring, point.name)
        elif self.decision is not None and point.name == "selection" and self._is_from_benchmark():
            evidence = f"{self.chosen}: {': '.join(describe_shortlist(self.decision.consultation))}"
        elif self.decision is not None and point.name == "latency":
            cost = self.decision.trade_off
            if cost.get("is_accepted"):
                saving = format_saving(cost["saved"])
                evidence = f"early stopping was measured and accepted: {saving} of the time saved"
        return replace(point, state=ITEM_DONE, evidence=evidence) if evidence else point

    def _is_from_benchmark(self) -> bool:
        """Whether the only measured explainer was chosen from a benchmark's shortlist."""
        shortlist = {} if self.decision is None else self.decision.consultation
        measured = {row.explainer for row in self.results.rows} - {self.requirements.baseline}
        return (
            measured == {self.chosen}
            and self.chosen in shortlist.get("names", ())
            and shortlist.get("source", PROJECT_LIST) != PROJECT_LIST
        )

    def _links(self, point: ChecklistItem) -> SafeMarkdown:
        """Link to the files that show a point."""
        files = [self.run / name for name in _EVIDENCE_FILES.get(point.name, ())]
        if point.name in self.owner.evidence:
            files.append(Path(self.owner.evidence[point.name]))
        if point.name in MONITORED_ITEMS and self.monitoring.store:
            files.append(Path(self.owner.monitor))
        links = [file_link(file, self.folder) for file in files if file.is_file()]
        return SafeMarkdown(", ".join(links) or "-")

    def _files(self) -> SafeMarkdown:
        """List every file of the run with its size and sha256."""
        own = self.folder.resolve()
        files = sorted(
            path
            for path in self.run.rglob("*")
            if path.is_file() and not path.resolve().is_relative_to(own)
        )
        rows = [
            [file_link(path, self.folder), path.stat().st_size, digest_of_file(path)]
            for path in files
        ]
        return safe_markdown_table(["file", "bytes", "sha256"], rows)

    def _evidence_note(self) -> str:
        """Say whether the decision was made by the rows of this run."""
        if self.decision is None:
            return "There is no decision beside this run."
        if digest_of_results(self.results) == self.decision.rows:
            return (
                "The rows of this run are those that the decision was made by "
                "(their digests agree)."
            )
        return (
            "The rows of this run are others than those that the decision was made by: "
            "a later run, or edited."
        )


def _describe_signatures(decision: Decision) -> str:
    """Say who signed and when, with earlier signatures; '' if nobody signed."""
    before = "; ".join(f"{each['by']}, {each['at']}" for each in decision.signed_before)
    last = f"{decision.signed_by}, {decision.signed}" if decision.signed_by else ""
    return f"{last} (before: {before})" if before else last
