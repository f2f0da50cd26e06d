"""The decision file: which explainer was chosen for which network, why, until when, and who signed.

The file is JSON, so that people and programs can read it. Its last field is a digest of all others,

    digest = blake2b(content as JSON, keys sorted, no blanks)

so that an edit by hand is noticed. The digest is not a cryptographic signature: whoever can write
the file can compute a new digest. Keep the file under version control, or sign it with the tools of
your organisation.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import get_type_hints

from graphgauge.core import (
    BadFile,
    BadSetting,
    JsonObject,
    Verdict,
    blake2b_hex,
    canonical_json,
)
from graphgauge.evaluation import ModelAccuracy, Results, Settings
from graphgauge.explainers import BaseExplainer, find_explainer
from graphgauge.guidelines import Requirements
from graphgauge.lifecycle.digests import digest_of_results
from graphgauge.models import BaseModel, digest_of_data, digest_of_network

_FORMAT_VERSION = 1
DECISION_FILE = "decision.json"  #: in the folder of a validation
#: days until a decision expires by default; the number is ours, the paper has none
DEFAULT_DAYS = 180
_OPTIONAL_FIELDS = {"signed_before", "accuracy"}  #: fields that a file may lack


@dataclass(frozen=True)
class DecisionProblem:
    """Why a decision does not hold, or no longer holds.

    ``kind`` is "network", "data", "expired", "unsigned", "task" or "unknown".
    """

    kind: str
    message: str


@dataclass(frozen=True)
class Decision:
    """One explainer for one network, with the evidence.

    All fields are plain data. Times are UTC in ISO 8601.
    """

    explainer: str  #: registry name
    parameters: JsonObject
    label: str  #: its name in the run
    seed: int
    settings: JsonObject  #: of the Evaluator that measured
    production: JsonObject  #: settings for monitoring, by the trade-off
    requirements: JsonObject
    network: str  #: digest of parameters and buffers
    data: str  #: digest of the graph
    description: JsonObject  #: kind of model, sizes
    reason: str
    verdicts: tuple[JsonObject, ...]  #: numbers, thresholds and n of the chosen explainer
    targets: int
    rows: str  #: digest of the results behind the numbers
    consultation: JsonObject  #: the shortlist, and where it comes from
    trade_off: JsonObject
    comparison: tuple[JsonObject, ...]  #: beside the benchmark
    warnings: tuple[str, ...]
    versions: JsonObject
    made: str
    expires: str
    signed_by: str = ""
    signed: str = ""  #: when
    #: {"by", "at"} of signatures that this one takes the place of, the first one first
    signed_before: tuple[JsonObject, ...] = ()
    #: of the network on its task (`ModelAccuracy`), where it was known
    accuracy: JsonObject = field(default_factory=dict)
    format: int = field(default=_FORMAT_VERSION)

    # --- the file ---------------------------------------------------------------------------------

    def record(self) -> JsonObject:
        """Return everything with the digest; earlier signatures only if there are any."""
        known = {
            name: value
            for name, value in asdict(self).items()
            if value or name not in _OPTIONAL_FIELDS
        }
        content = json.loads(json.dumps(known, allow_nan=False))
        return {**content, "digest": _record_digest(content)}

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the file; a reader sees the old one or the new one, never a part."""
        part = Path(f"{os.fspath(path)}.part")
        try:
            part.write_text(
                json.dumps(self.record(), indent=2, allow_nan=False) + "\n", encoding="utf-8"
            )
            part.replace(path)
        except OSError as error:
            raise BadFile(f"{os.fspath(path)} could not be written: {error}.") from error

    @staticmethod
    def read(path: str | os.PathLike[str]) -> "Decision":
        """Read a decision file, or the one in the folder of a validation.

        Raises:
            BadFile: There is no decision, or it was edited.
        """
        place = Path(path) / DECISION_FILE if Path(path).is_dir() else Path(path)
        try:
            content = json.loads(place.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise BadFile(
                f"{place} holds no decision: {error}. `graphgauge validate` writes one."
            ) from error
        return _parse_decision(content, str(place))

    @property
    def digest(self) -> str:
        """The digest, which names exactly this decision."""
        return str(self.record()["digest"])

    # --- what later steps ask ---------------------------------------------------------------------

    def check(
        self, model: BaseModel | None = None, now: datetime | None = None
    ) -> list[DecisionProblem]:
        """Return what speaks against using this decision now; an empty list if nothing does.

        Args:
            model: Also check that network and data are those that were validated.
            now: The time (default: now).
        """
        found = [] if model is None else self.changes(model)
        if not self.signed_by:
            found.append(
                DecisionProblem(
                    "unsigned", "nobody has signed the decision: `graphgauge sign FILE --by NAME`."
                )
            )
        if (now or datetime.now(timezone.utc)) >= parse_utc_time(self.expires):
            found.append(
                DecisionProblem(
                    "expired", f"the decision held until {self.expires}: validate again."
                )
            )
        return found

    def changes(self, model: BaseModel) -> list[DecisionProblem]:
        """Return problems if network or data differ from those that were validated."""
        found = []
        if digest_of_network(model) != self.network:
            found.append(
                DecisionProblem(
                    "network",
                    f"the network is not the one of {self.made} ({self.network}): validate again.",
                )
            )
        if digest_of_data(model) != self.data:
            found.append(
                DecisionProblem(
                    "data",
                    f"the data are not those of {self.made} ({self.data}): "
                    "see what the monitor says.",
                )
            )
        return found

    def changes_in(self, results: Results) -> list[DecisionProblem]:
        """Return problems if a run measured another task, network or data than the validation."""
        if digest_of_results(results) == self.rows:
            return []
        found = results.made.get("identity")
        if not isinstance(found, Mapping):
            text = (
                "the run does not say which network and data it measured, "
                "as runs of earlier versions do not: evaluate again."
            )
            return [DecisionProblem("unknown", text)]
        validated = {
            "task": self.requirements.get("task_kind"),
            "network": self.network,
            "data": self.data,
        }
        return [
            DecisionProblem(
                kind,
                f"the run is of another {kind} than the decision: {found.get(kind)}, not {own}.",
            )
            for kind, own in validated.items()
            if own is not None and own != found.get(kind)
        ]

    def chosen(self) -> BaseExplainer:
        """Build the chosen explainer."""
        return find_explainer(self.explainer, **self.parameters)

    def wanted(self) -> Requirements:
        """Return the agreed thresholds."""
        return Requirements(**self.requirements)

    def measured_with(self) -> Settings:
        """Return the settings of the validation."""
        return Settings.from_record(self.settings)

    def monitor_with(self) -> Settings:
        """Return the settings that monitoring may use."""
        return Settings.from_record(self.production)

    def accuracy_of_model(self) -> ModelAccuracy | None:
        """Return how good the network was when it was validated; None if nobody knew."""
        return ModelAccuracy.from_value(self.accuracy or None)

    def numbers(self) -> list[Verdict]:
        """Return the verdicts on the chosen explainer."""
        return [Verdict(**record) for record in self.verdicts]

    def sign(self, by: str, now: datetime | None = None, again: bool = False) -> "Decision":
        """Return the decision with a signature.

        Args:
            by: Name of the person who signs.
            now: Time of the signature (default: now).
            again: Whether to replace an earlier signature, which is then kept in the file.

        Raises:
            BadSetting: The name is empty, or the decision is signed and ``again`` is False.
        """
        if not by.strip():
            raise BadSetting("a decision is signed with a name, but '' was given.")
        if self.signed_by and not again:
            raise BadSetting(
                f"the decision was signed by {self.signed_by} on {self.signed}. "
                "With --again it is signed anew, and the earlier signature is kept in the file."
            )
        earlier = [{"by": self.signed_by, "at": self.signed}] if self.signed_by else []
        when = format_time(now or datetime.now(timezone.utc))
        return replace(
            self, signed_by=by.strip(), signed=when, signed_before=(*self.signed_before, *earlier)
        )


def _parse_decision(content: object, where: str) -> Decision:
    """Build a decision from the content of a file, or raise `BadFile` if it was edited."""
    known = {item.name for item in fields(Decision)}
    if (
        not isinstance(content, dict)
        or content.get("format") != _FORMAT_VERSION
        or set(content) | _OPTIONAL_FIELDS != {*known, "digest"}
    ):
        raise BadFile(
            f"{where} is no decision of format {_FORMAT_VERSION}: `graphgauge validate` writes one."
        )
    rest = {name: value for name, value in content.items() if name != "digest"}
    if _record_digest(rest) != content["digest"]:
        raise BadFile(
            f"{where} was edited after it was written (its digest is another): "
            "validate again, or take the original."
        )
    wrong = [
        name
        for name, annotation in get_type_hints(Decision).items()
        if name in rest and not isinstance(rest[name], _json_type(annotation))
    ]
    if wrong:
        raise BadFile(
            f"{where} is no decision: {', '.join(wrong)} hold something else than expected."
        )
    lists = {name: tuple(value) for name, value in rest.items() if isinstance(value, list)}
    return Decision(**{**rest, **lists})


def _json_type(annotation: object) -> type:
    """Return the type that a field with this annotation has in JSON."""
    types: Mapping[object, type] = {str: str, int: int, JsonObject: dict}
    return types.get(annotation, list)


def _record_digest(content: JsonObject) -> str:
    """Compute the digest of a decision's content.

    >>> _record_digest({"a": 1, "b": 2}) == _record_digest({"b": 2, "a": 1})
    True
    """
    return blake2b_hex(canonical_json(content), size=16)


def format_time(time: datetime) -> str:
    """Format a time in UTC, to the second.

    >>> format_time(datetime(2026, 11, 15, 20, 0, tzinfo=timezone.utc))
    '2026-11-15T20:00:00+00:00'
    """
    return time.astimezone(timezone.utc).isoformat(timespec="seconds")


def parse_utc_time(text: str) -> datetime:
    """Parse a time; one without a time zone is UTC."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)


def expiry_time(made: datetime, days: int) -> str:
    """Return when a decision ends, or raise `BadSetting` unless it holds for a day or more."""
    if days < 1:
        raise BadSetting(f"a decision holds for 1 day or more, but {days} were asked for.")
    return format_time(made + timedelta(days=days))
