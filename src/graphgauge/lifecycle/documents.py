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
from graphgauge.core.errors import BadFile
from graphgauge.core.verdicts import Verdict
from graphgauge.evaluation import Results
from graphgauge.evaluation.accuracy import UNKNOWN
from graphgauge.evaluation.results import RUN
from graphgauge.guidelines import Point, Requirements, check, checklist, diagnose, guide, recommend
from graphgauge.guidelines.deployment import DONE
from graphgauge.guidelines.limits import title, told
from graphgauge.guidelines.measures import Measured, measured
from graphgauge.lifecycle.consultation import NAMED, told_list
from graphgauge.lifecycle.decision import FILE, Decision
from graphgauge.lifecycle.evidence import digest_of_file, digest_of_results
from graphgauge.lifecycle.followed import POINTS, Followed, followed
from graphgauge.lifecycle.markdown import Ready, link, rendered, table
from graphgauge.lifecycle.trade_off import told_share

if TYPE_CHECKING:
    from graphgauge.lifecycle.validation import Validation

DOCUMENTS = (
    "model_card",
    "explainability",
    "annex_iv",
    "monitoring_plan",
    "checklist",
    "audit_trail",
)
#: what the monitor notices, and what is to be validated again
TRIGGERS = (
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


def todo(what: str, stated: str = "") -> str:
    """What the owner stated, or the reminder to state it.

    >>> str(todo("who is told"))
    'TODO(owner): who is told'
    """
    return stated or Ready(f"TODO(owner): {what}")


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
    facts = Facts(Results.load(source), source, place, decision, owner or Owner(), requirements)
    values = facts.values()
    try:
        place.mkdir(parents=True, exist_ok=True)
        return [
            written(place / f"{name}.md", rendered(f"{name}.md.j2", **values)) for name in DOCUMENTS
        ]
    except OSError as error:
        raise BadFile(f"{place} could not be written: {error}.") from error


def written(path: Path, text: str) -> Path:
    """Write a file and name it."""
    path.write_text(text, encoding="utf-8")
    return path


@dataclass(frozen=True)
class Facts:
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
        found, chosen = measured(self.results, self.wanted, merge_models=True), self.chosen
        checked = check(self.results, self.wanted, [chosen])
        return {
            "todo": todo,
            "owner": self.owner,
            "chosen": chosen,
            "version": graphgauge.__version__,
            "targets": len({row.target for row in self.results.rows}),
            "answer": checked.reason,
            "accuracy": self.accuracy,
            "numbers": numbers_table(checked.verdicts, found, chosen),
            "others": others_table(found),
            "settings": table(["setting", "value"], self.results.settings.record().items()),
            "choice": table(["what", "value"], self.choice()),
            "warnings": self.warnings(),
            "points": self.points(),
            "triggers": table(["trigger", "when", "what to validate again"], TRIGGERS),
            "limits": limits_table(checked.verdicts),
            "trade_off": self.trade_off(),
            "comparison": self.comparison(),
            "files": self.files(),
            "front_matter": front_matter(checked.verdicts, chosen),
            "evidence_note": self.evidence_note(),
            "followed": self.followed,
            "audit_log": todo(
                "where the log of answers is kept, and for how long", self.owner.audit_log
            ),
        }

    @cached_property
    def accuracy(self) -> str:
        """How good the network itself is; the reminder to state it where nobody knows."""
        found = (
            self.decision.accuracy_of_model() if self.decision is not None else None
        ) or self.results.accuracy
        return todo(
            "how good the network is at its task: `graphgauge validate --accuracy`",
            "" if found is None else found.told,
        )

    def choice(self) -> list[tuple[str, Any]]:
        """The decision line by line."""
        own = self.decision
        if own is None:
            wanted = "validate and sign: `graphgauge validate CONFIG --signed-by NAME`"
            return [
                ("explainer", self.chosen),
                ("decision", todo(wanted)),
                ("seeds", seeds(self.results)),
            ]
        return [
            ("explainer", own.explainer),
            (
                "parameters",
                ", ".join(f"{name}={value}" for name, value in own.parameters.items())
                or "defaults",
            ),
            ("chosen because", own.reason),
            told_list(own.consultation),
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
            ("signed by", told_signatures(own) or todo("sign: `graphgauge sign FILE --by NAME`")),
            ("decision digest", own.digest),
        ]

    def warnings(self) -> list[str]:
        """What speaks against trusting the explanations."""
        if self.decision is not None:
            return [sober(warning) for warning in self.decision.warnings]
        return [
            str(finding)
            for finding in diagnose(self.results, self.wanted)
            if finding.explainer in ("", self.chosen)
        ]

    def points(self) -> list[tuple[Ready, Point, Ready]]:
        """The checklist: a cross or a blank, the point, links to the evidence."""
        given = checklist(self.results, self.chosen, self.wanted, self.owner.evidence)
        found = [
            replace(own, evidence=sober(own.evidence)) for own in map(self.with_decision, given)
        ]
        return [
            (Ready("x" if point.state == DONE else " "), point, self.links(point))
            for point in found
        ]

    @cached_property
    def followed(self) -> Followed:
        """What the monitoring store says."""
        return followed(self.owner.monitor)

    def with_decision(self, point: Point) -> Point:
        """The point on time with what the decision says of early stopping, those on monitoring with
        what the store shows.
        """
        seen = getattr(self.followed, point.name) if point.name in POINTS else ""
        if seen:
            return replace(point, state=DONE, evidence=seen)
        if point.name == "selection" and self.decision is not None and self.is_from_a_benchmark():
            return replace(
                point,
                state=DONE,
                evidence=f"{self.chosen}: {': '.join(told_list(self.decision.consultation))}",
            )
        cost = self.decision.trade_off if self.decision is not None else {}
        if point.name != "latency" or not cost.get("is_accepted"):
            return point
        saved = f"early stopping was measured and accepted: {told_share(cost['saved'])} of the time saved"
        return replace(point, state=DONE, evidence=saved)

    def is_from_a_benchmark(self) -> bool:
        """Whether a decision on the only explainer that was measured took it from a benchmark's
        shortlist.
        """
        listed = self.decision.consultation if self.decision is not None else {}
        measured = {row.explainer for row in self.results.rows} - {self.wanted.baseline}
        return (
            measured == {self.chosen}
            and self.chosen in listed.get("names", ())
            and listed.get("source", NAMED) != NAMED
        )

    def links(self, point: Point) -> Ready:
        """Files that show a point."""
        names = {
            "selection": [FILE],
            "validation": ["rows.csv", RUN],
            "thresholds": ["validation.md", "rows.csv", RUN],
            "latency": ["production/rows.csv"],
        }
        files = [
            self.run / name for name in names.get(point.name, []) if (self.run / name).is_file()
        ]
        own = self.owner.evidence.get(point.name)
        files += [Path(own)] if own and Path(own).is_file() else []
        files += [Path(self.owner.monitor)] if point.name in POINTS and self.followed.store else []
        return Ready(", ".join(link(file, self.place) for file in files) or "-")

    def trade_off(self) -> Ready:
        """Early stopping beside every trial."""
        cost = self.decision.trade_off if self.decision is not None else {}
        if not cost:
            return Ready(todo("measure the cost of early stopping: `graphgauge validate`"))
        heading = ["number", "every trial", "production", "mean difference", "largest", "n"]
        rows = [
            [title(line["metric"]), *(f"{line[name]:.4g}" for name in LOSS), line["n"]]
            for line in cost["losses"]
        ]
        seconds = "{:.3g} s against {:.3g} s".format(*cost["seconds"])
        answer = "accepted" if cost["is_accepted"] else "not accepted"
        said = f"Time saved: {told_share(cost['saved'])} ({seconds}, on the machine of the validation); {answer}."
        return Ready(f"{table(heading, rows)}\n\n{said}")

    def comparison(self) -> Ready:
        """Own numbers beside the benchmark's."""
        lines = [
            line
            for line in (self.decision.comparison if self.decision is not None else ())
            if line["explainer"] == self.chosen
        ]
        if not lines:
            return Ready(todo("compare with the benchmark: `graphgauge validate`"))
        rows = [
            [
                title(own["metric"]),
                told(own["metric"], own["own"]),
                own["n"],
                told(own["metric"], own["benchmark"]),
                own["note"],
            ]
            for own in lines
        ]
        return table(["number", "here", "n", "benchmark", "remark"], rows)

    def files(self) -> Ready:
        """Every file of the run with its size and sha256."""
        files = sorted(
            path
            for path in self.run.rglob("*")
            if path.is_file() and not is_inside(path, self.place)
        )
        rows = [
            [link(path, self.place), path.stat().st_size, digest_of_file(path)] for path in files
        ]
        return table(["file", "bytes", "sha256"], rows)

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


LOSS = ("exhaustive", "production", "mean_difference", "largest_difference")


def numbers_table(verdicts: tuple[Verdict, ...], found: Measured, chosen: str) -> Ready:
    """The numbers of the chosen explainer: mean, n, interval, verdict and its sentence."""
    rows = []
    for verdict in verdicts:
        subject = next(own for own in found.subjects(verdict.task) if own[2] == chosen)
        measure = found.get(subject, verdict.metric)
        span = None if measure is None or measure.interval is None else measure.interval
        shown = (
            None
            if span is None
            else f"{told(verdict.metric, span[0])} to {told(verdict.metric, span[1])}"
        )
        mean = None if verdict.number is None else told(verdict.metric, verdict.number)
        rows.append(
            [title(verdict.metric), mean, verdict.n, shown, verdict.outcome, sober(verdict.reason)]
        )
    return table(["number", "mean", "n", "95 % interval", "verdict", "why"], rows)


def sober(text: str) -> str:
    """A sentence without the paper's praise of a band ("fit for reports to a regulator"), which is
    not ours to claim.

    >>> sober("Edge stability 1 meets the threshold; close to deterministic: fit for reports to a regulator; left out: 4 empty.")
    'Edge stability 1 meets the threshold; left out: 4 empty.'
    """
    for family in ("stability", "pertinence"):
        for band in guide("thresholds")[family]["band"]:
            text = text.replace(f"; {band['meaning']}", "")
    return text


def limits_table(verdicts: tuple[Verdict, ...]) -> Ready:
    """What was measured, and the threshold of each number."""
    rows = [
        [title(own.metric), shown(own.metric, own.number), shown(own.metric, own.threshold), own.n]
        for own in verdicts
    ]
    return table(["number", "at validation", "threshold", "n"], rows)


def others_table(found: Measured) -> Ready:
    """The headline means of every explainer."""
    rows = []
    for subject in found.subjects():
        own = [found.get(subject, metric) for metric in found.judged()]
        rows.append(
            [
                subject[2],
                *(
                    shown(m, None if e is None else e.mean)
                    for m, e in zip(found.judged(), own, strict=True)
                ),
            ]
        )
    return table(["explainer", *map(title, found.judged())], rows)


def shown(metric: str, value: float | None) -> str | None:
    """A number for people, or None."""
    return None if value is None else told(metric, value)


def front_matter(verdicts: tuple[Verdict, ...], chosen: str) -> Ready:
    """The numbers as YAML, for programs that read model cards."""
    quality = {
        own.metric: {"mean": own.number, "n": own.n} for own in verdicts if own.number is not None
    }
    content = {
        "tags": ["graph-neural-network", "explainability"],
        "explainer": " ".join(chosen.split()),
        "explanation_quality": quality,
    }
    return Ready(yaml.safe_dump(content, sort_keys=False, allow_unicode=False))


def told_signatures(own: Decision) -> str:
    """Who signed and when, with the signatures before that; '' where nobody did."""
    before = "; ".join(f"{each['by']}, {each['at']}" for each in own.signed_before)
    last = f"{own.signed_by}, {own.signed}" if own.signed_by else ""
    return f"{last} (before: {before})" if before else last


def seeds(results: Results) -> str:
    """The seeds of a run."""
    return ", ".join(sorted({str(row.seed) for row in results.rows}))


def is_inside(path: Path, folder: Path) -> bool:
    """Whether a file lies in a folder."""
    return path.resolve().is_relative_to(folder.resolve())


def validation_page(found: "Validation") -> str:
    """The page of a validation, to be read before somebody signs."""
    own, wanted = found.decision, found.decision.wanted()
    return rendered(
        "validation.md.j2",
        decision=own,
        listed=told_list(own.consultation),
        numbers=numbers_table(
            found.check.verdicts, measured(found.results, wanted, merge_models=True), own.label
        ),
        others=others_table(measured(found.results, wanted, merge_models=True)),
        recommendation=found.recommendation,
        notes=[line.note for line in found.comparison if line.note],
        trade_off=found.trade_off,
        losses=table(
            ["number", "every trial", "production", "mean difference", "largest", "n"],
            [
                [title(each.metric), *(f"{getattr(each, name):.4g}" for name in LOSS), each.n]
                for each in found.trade_off.losses
            ],
        ),
        answer=found.check.reason,
        accuracy=UNKNOWN if found.results.accuracy is None else found.results.accuracy.told,
    )
