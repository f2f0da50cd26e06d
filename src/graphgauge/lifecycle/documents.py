"""Documents for people who answer for a system, filled from a run and its decision.

    model_card.md        a section for a model card, with its numbers as front matter
    explainability.md    for the instructions for use: what explanations are, how good they are, when not to trust them
    annex_iv.md          tables for the technical documentation (points 2(b), 2(e), 2(g) and 3 of Annex IV of the EU AI Act)
    monitoring_plan.md   what is watched, what makes a new validation necessary, who is told
    checklist.md         the paper's eight points, with links to the evidence
    audit_trail.md       every file of the run with its sha256, and where the log of answers is

What only the owner knows stays as TODO(owner). Nothing here says which rules apply or whether they
are met; a classification is printed where the owner states one, as the owner's.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

import graphgauge
from graphgauge.core import BadFile, Verdict
from graphgauge.evaluation import RUN_FILE, UNKNOWN_ACCURACY, Results
from graphgauge.guidelines import (
    ITEM_DONE,
    AggregatedScores,
    ChecklistItem,
    Requirements,
    aggregate_scores,
    check,
    checklist,
    diagnose,
    format_metric_value,
    load_guideline,
    metric_title,
    recommend,
)
from graphgauge.lifecycle.decision import DECISION_FILE, Decision
from graphgauge.lifecycle.digests import digest_of_file, digest_of_results
from graphgauge.lifecycle.early_stop_cost import format_saving
from graphgauge.lifecycle.markdown import (
    SafeMarkdown,
    file_link,
    render_markdown,
    safe_markdown_table,
)
from graphgauge.lifecycle.monitoring_summary import (
    MONITORED_ITEMS,
    MonitoringSummary,
    summarise_monitoring,
)
from graphgauge.lifecycle.shortlist import PROJECT_LIST, describe_shortlist

if TYPE_CHECKING:
    from graphgauge.lifecycle.validation import Validation

_DOCUMENT_NAMES = (
    "model_card",
    "explainability",
    "annex_iv",
    "monitoring_plan",
    "checklist",
    "audit_trail",
)
#: what the monitor notices, and what is to be validated again
_TRIGGER_ROWS = (
    ("threshold", "a number crosses its threshold", "the chosen explainer, on fresh targets"),
    (
        "metric drift",
        "the distribution of a metric moved against the validation",
        "the chosen explainer, on fresh targets",
    ),
    (
        "feature ranking",
        "other features lead the explanations than at validation",
        "the explainer, and the network's features",
    ),
    ("network", "the network's hash is another one", "everything: a new decision is needed"),
    ("data", "the distribution of the data moved", "the network first, then the explainer"),
    (
        "broken relation",
        "columns no longer go together, or with the label, as they did",
        "the data first, then the network",
    ),
    (
        "accuracy drop",
        "the network errs more than at the baseline, where labels are known",
        "the network first, then everything",
    ),
    ("age", "the decision has expired", "everything: a new decision is needed"),
    ("manual", "rules or the use of the system changed", "the requirements, then everything"),
)


@dataclass(frozen=True)
class Owner:
    """What only the owner can state; '' is printed as TODO(owner).

    ``evidence``: files for the owner's points of the checklist; ``monitor``: the monitoring store,
    which fills the plan.
    """

    system: str = ""
    contact: str = ""
    classification: str = ""
    audit_log: str = ""
    evidence: Mapping[str, str] = field(default_factory=dict)
    monitor: str = ""


def _owner_todo(what: str, stated: str = "") -> str:
    """What the owner stated, or the reminder to state it.

    >>> str(_owner_todo("who is format_metric_value"))
    'TODO(owner): who is told'
    """
    return stated or SafeMarkdown(f"TODO(owner): {what}")


def write_documents(
    run: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    decision: Decision | None = None,
    owner: Owner | None = None,
    requirements: Requirements | None = None,
) -> list[Path]:
    """Write all documents on a run into a folder. ``decision`` None: the choice is the run's
    recommendation, unsigned.
    """
    source, place = Path(run), Path(folder)
    facts = _DocumentData(
        Results.load(source), source, place, decision, owner or Owner(), requirements
    )
    values = facts.values()
    try:
        place.mkdir(parents=True, exist_ok=True)
        return [
            _write_document(place / f"{name}.md", render_markdown(f"{name}.md.j2", **values))
            for name in _DOCUMENT_NAMES
        ]
    except OSError as error:
        raise BadFile(f"{place} could not be written: {error}.") from error


def _write_document(path: Path, text: str) -> Path:
    """Write a file and name it."""
    path.write_text(text, encoding="utf-8")
    return path


@dataclass(frozen=True)
class _DocumentData:
    """A run, its decision, and where their files are."""

    results: Results
    run: Path
    place: Path
    decision: Decision | None
    owner: Owner
    requirements: Requirements | None

    @property
    def wanted(self) -> Requirements:
        """The thresholds: given, agreed on in the decision, or the paper's."""
        return self.requirements or (
            self.decision.wanted() if self.decision is not None else Requirements()
        )

    @property
    def chosen(self) -> str:
        """The explainer that the documents are about."""
        return (
            self.decision.label
            if self.decision is not None
            else recommend(self.results, self.wanted)[0].chosen
        )

    def values(self) -> dict[str, Any]:
        """Everything the templates print."""
        found, chosen = aggregate_scores(self.results, self.wanted, merge_models=True), self.chosen
        checked = check(self.results, self.wanted, [chosen])
        return {
            "todo": _owner_todo,
            "owner": self.owner,
            "chosen": chosen,
            "version": graphgauge.__version__,
            "targets": len({row.target for row in self.results.rows}),
            "answer": checked.reason,
            "accuracy": self.accuracy,
            "numbers": _numbers_table(checked.verdicts, found, chosen),
            "others": _others_table(found),
            "settings": safe_markdown_table(
                ["setting", "value"], self.results.settings.record().items()
            ),
            "choice": safe_markdown_table(["what", "value"], self.choice()),
            "warnings": self.warnings(),
            "points": self.points(),
            "triggers": safe_markdown_table(
                ["trigger", "when", "what to validate again"], _TRIGGER_ROWS
            ),
            "limits": _limits_table(checked.verdicts),
            "trade_off": self.trade_off(),
            "comparison": self.comparison(),
            "files": self.files(),
            "front_matter": _front_matter(checked.verdicts, chosen),
            "evidence_note": self.evidence_note(),
            "followed": self.followed,
            "audit_log": _owner_todo(
                "where the log of answers is kept, and for how long", self.owner.audit_log
            ),
        }

    @cached_property
    def accuracy(self) -> str:
        """How good the network itself is; the reminder to state it where nobody knows."""
        found = (
            self.decision.accuracy_of_model() if self.decision is not None else None
        ) or self.results.accuracy
        return _owner_todo(
            "how good the network is at its task: `graphgauge validate --accuracy`",
            "" if found is None else found.sentence,
        )

    def choice(self) -> list[tuple[str, Any]]:
        """The decision line by line."""
        own = self.decision
        if own is None:
            wanted = "validate and sign: `graphgauge validate CONFIG --signed-by NAME`"
            return [
                ("explainer", self.chosen),
                ("decision", _owner_todo(wanted)),
                ("seeds", _describe_seeds(self.results)),
            ]
        return [
            ("explainer", own.explainer),
            (
                "parameters",
                ", ".join(f"{name}={value}" for name, value in own.parameters.items())
                or "defaults",
            ),
            ("chosen because", own.reason),
            describe_shortlist(own.consultation),
            (
                "network",
                f"{own.description.get('network')}, {own.description.get('hops')} hops, hash {own.network}",
            ),
            (
                "data",
                f"{own.description.get('nodes')} nodes, {own.description.get('edges')} edges, hash {own.data}",
            ),
            ("seed", own.seed),
            ("versions", ", ".join(f"{name} {value}" for name, value in own.versions.items())),
            ("decided", own.made),
            ("holds until", own.expires),
            (
                "signed by",
                _describe_signatures(own) or _owner_todo("sign: `graphgauge sign FILE --by NAME`"),
            ),
            ("decision digest", own.digest),
        ]

    def warnings(self) -> list[str]:
        """What speaks against trusting the explanations."""
        if self.decision is not None:
            return [_drop_paper_praise(warning) for warning in self.decision.warnings]
        return [
            str(finding)
            for finding in diagnose(self.results, self.wanted)
            if finding.explainer in ("", self.chosen)
        ]

    def points(self) -> list[tuple[SafeMarkdown, ChecklistItem, SafeMarkdown]]:
        """The checklist: a cross or a blank, the point, links to the evidence."""
        given = checklist(self.results, self.chosen, self.wanted, self.owner.evidence)
        found = [
            replace(own, evidence=_drop_paper_praise(own.evidence))
            for own in map(self.with_decision, given)
        ]
        return [
            (SafeMarkdown("x" if point.state == ITEM_DONE else " "), point, self.links(point))
            for point in found
        ]

    @cached_property
    def followed(self) -> MonitoringSummary:
        """What the monitoring store says."""
        return summarise_monitoring(self.owner.monitor)

    def with_decision(self, point: ChecklistItem) -> ChecklistItem:
        """The point on time with what the decision says of early stopping, those on monitoring with
        what the store shows.
        """
        seen = getattr(self.followed, point.name) if point.name in MONITORED_ITEMS else ""
        if seen:
            return replace(point, state=ITEM_DONE, evidence=seen)
        if point.name == "selection" and self.decision is not None and self.is_from_a_benchmark():
            return replace(
                point,
                state=ITEM_DONE,
                evidence=f"{self.chosen}: {': '.join(describe_shortlist(self.decision.consultation))}",
            )
        cost = self.decision.trade_off if self.decision is not None else {}
        if point.name != "latency" or not cost.get("is_accepted"):
            return point
        saved = f"early stopping was measured and accepted: {format_saving(cost['saved'])} of the time saved"
        return replace(point, state=ITEM_DONE, evidence=saved)

    def is_from_a_benchmark(self) -> bool:
        """Whether a decision on the only explainer that was measured took it from a benchmark's
        shortlist.
        """
        listed = self.decision.consultation if self.decision is not None else {}
        measured = {row.explainer for row in self.results.rows} - {self.wanted.baseline}
        return (
            measured == {self.chosen}
            and self.chosen in listed.get("names", ())
            and listed.get("source", PROJECT_LIST) != PROJECT_LIST
        )

    def links(self, point: ChecklistItem) -> SafeMarkdown:
        """Files that show a point."""
        names = {
            "selection": [DECISION_FILE],
            "validation": ["rows.csv", RUN_FILE],
            "thresholds": ["validation.md", "rows.csv", RUN_FILE],
            "latency": ["production/rows.csv"],
        }
        files = [
            self.run / name for name in names.get(point.name, []) if (self.run / name).is_file()
        ]
        own = self.owner.evidence.get(point.name)
        files += [Path(own)] if own and Path(own).is_file() else []
        files += (
            [Path(self.owner.monitor)]
            if point.name in MONITORED_ITEMS and self.followed.store
            else []
        )
        return SafeMarkdown(", ".join(file_link(file, self.place) for file in files) or "-")

    def trade_off(self) -> SafeMarkdown:
        """Early stopping beside every trial."""
        cost = self.decision.trade_off if self.decision is not None else {}
        if not cost:
            return SafeMarkdown(
                _owner_todo("measure the cost of early stopping: `graphgauge validate`")
            )
        heading = ["number", "every trial", "production", "mean difference", "largest", "n"]
        rows = [
            [
                metric_title(line["metric"]),
                *(f"{line[name]:.4g}" for name in _LOSS_COLUMNS),
                line["n"],
            ]
            for line in cost["losses"]
        ]
        seconds = "{:.3g} s against {:.3g} s".format(*cost["seconds"])
        answer = "accepted" if cost["is_accepted"] else "not accepted"
        said = f"Time saved: {format_saving(cost['saved'])} ({seconds}, on the machine of the validation); {answer}."
        return SafeMarkdown(f"{safe_markdown_table(heading, rows)}\n\n{said}")

    def comparison(self) -> SafeMarkdown:
        """Own numbers beside the benchmark's."""
        lines = [
            line
            for line in (self.decision.comparison if self.decision is not None else ())
            if line["explainer"] == self.chosen
        ]
        if not lines:
            return SafeMarkdown(_owner_todo("compare with the benchmark: `graphgauge validate`"))
        rows = [
            [
                metric_title(own["metric"]),
                format_metric_value(own["metric"], own["own"]),
                own["n"],
                format_metric_value(own["metric"], own["benchmark"]),
                own["note"],
            ]
            for own in lines
        ]
        return safe_markdown_table(["number", "here", "n", "benchmark", "remark"], rows)

    def files(self) -> SafeMarkdown:
        """Every file of the run with its size and sha256."""
        files = sorted(
            path
            for path in self.run.rglob("*")
            if path.is_file() and not _is_in_folder(path, self.place)
        )
        rows = [
            [file_link(path, self.place), path.stat().st_size, digest_of_file(path)]
            for path in files
        ]
        return safe_markdown_table(["file", "bytes", "sha256"], rows)

    def evidence_note(self) -> str:
        """Whether the rows are those that the decision was made by."""
        if self.decision is None:
            return "There is no decision beside this run."
        is_same = digest_of_results(self.results) == self.decision.rows
        others = "The rows of this run are others than those that the decision was made by: a later run, or edited."
        return (
            "The rows of this run are those that the decision was made by (their digests agree)."
            if is_same
            else others
        )


_LOSS_COLUMNS = ("exhaustive", "production", "mean_difference", "largest_difference")


def _numbers_table(
    verdicts: tuple[Verdict, ...], found: AggregatedScores, chosen: str
) -> SafeMarkdown:
    """The numbers of the chosen explainer: mean, n, interval, verdict and its sentence."""
    rows = []
    for verdict in verdicts:
        subject = next(own for own in found.subjects(verdict.task) if own[2] == chosen)
        measure = found.get(subject, verdict.metric)
        span = None if measure is None or measure.interval is None else measure.interval
        shown = (
            None
            if span is None
            else f"{format_metric_value(verdict.metric, span[0])} to {format_metric_value(verdict.metric, span[1])}"
        )
        mean = (
            None if verdict.number is None else format_metric_value(verdict.metric, verdict.number)
        )
        rows.append(
            [
                metric_title(verdict.metric),
                mean,
                verdict.n,
                shown,
                verdict.outcome,
                _drop_paper_praise(verdict.reason),
            ]
        )
    return safe_markdown_table(["number", "mean", "n", "95 % interval", "verdict", "why"], rows)


def _drop_paper_praise(text: str) -> str:
    """A sentence without the paper's praise of a band ("fit for reports to a regulator"), which is
    not ours to claim.

    >>> _drop_paper_praise("Edge stability 1 meets the threshold; close to deterministic: fit for reports to a regulator; left out: 4 empty.")
    'Edge stability 1 meets the threshold; left out: 4 empty.'
    """
    for family in ("stability", "pertinence"):
        for band in load_guideline("thresholds")[family]["band"]:
            text = text.replace(f"; {band['meaning']}", "")
    return text


def _limits_table(verdicts: tuple[Verdict, ...]) -> SafeMarkdown:
    """What was measured, and the threshold of each number."""
    rows = [
        [
            metric_title(own.metric),
            _format_number_or_none(own.metric, own.number),
            _format_number_or_none(own.metric, own.threshold),
            own.n,
        ]
        for own in verdicts
    ]
    return safe_markdown_table(["number", "at validation", "threshold", "n"], rows)


def _others_table(found: AggregatedScores) -> SafeMarkdown:
    """The headline means of every explainer."""
    rows = []
    for subject in found.subjects():
        own = [found.get(subject, metric) for metric in found.judged_metrics()]
        rows.append(
            [
                subject[2],
                *(
                    _format_number_or_none(m, None if e is None else e.mean)
                    for m, e in zip(found.judged_metrics(), own, strict=True)
                ),
            ]
        )
    return safe_markdown_table(["explainer", *map(metric_title, found.judged_metrics())], rows)


def _format_number_or_none(metric: str, value: float | None) -> str | None:
    """A number for people, or None."""
    return None if value is None else format_metric_value(metric, value)


def _front_matter(verdicts: tuple[Verdict, ...], chosen: str) -> SafeMarkdown:
    """The numbers as YAML, for programs that read model cards."""
    quality = {
        own.metric: {"mean": own.number, "n": own.n} for own in verdicts if own.number is not None
    }
    content = {
        "tags": ["graph-neural-network", "explainability"],
        "explainer": " ".join(chosen.split()),
        "explanation_quality": quality,
    }
    return SafeMarkdown(yaml.safe_dump(content, sort_keys=False, allow_unicode=False))


def _describe_signatures(own: Decision) -> str:
    """Who signed and when, with the signatures before that; '' where nobody did."""
    before = "; ".join(f"{each['by']}, {each['at']}" for each in own.signed_before)
    last = f"{own.signed_by}, {own.signed}" if own.signed_by else ""
    return f"{last} (before: {before})" if before else last


def _describe_seeds(results: Results) -> str:
    """The seeds of a run."""
    return ", ".join(sorted({str(row.seed) for row in results.rows}))


def _is_in_folder(path: Path, folder: Path) -> bool:
    """Whether a file lies in a folder."""
    return path.resolve().is_relative_to(folder.resolve())


def validation_page(found: "Validation") -> str:
    """The page of a validation, to be read before somebody signs."""
    own, wanted = found.decision, found.decision.wanted()
    return render_markdown(
        "validation.md.j2",
        decision=own,
        listed=describe_shortlist(own.consultation),
        numbers=_numbers_table(
            found.check.verdicts,
            aggregate_scores(found.results, wanted, merge_models=True),
            own.label,
        ),
        others=_others_table(aggregate_scores(found.results, wanted, merge_models=True)),
        recommendation=found.recommendation,
        notes=[line.note for line in found.comparison if line.note],
        trade_off=found.trade_off,
        losses=safe_markdown_table(
            ["number", "every trial", "production", "mean difference", "largest", "n"],
            [
                [
                    metric_title(each.metric),
                    *(f"{getattr(each, name):.4g}" for name in _LOSS_COLUMNS),
                    each.n,
                ]
                for each in found.trade_off.losses
            ],
        ),
        answer=found.check.reason,
        accuracy=UNKNOWN_ACCURACY
        if found.results.accuracy is None
        else found.results.accuracy.sentence,
    )
