"""An answer as it goes out, as it stands in the audit log, and as the OpenAPI describes it."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel as Described
from pydantic import Field

from graphgauge.core import JsonObject, Xplanation, package_versions
from graphgauge.evaluation import digest_of_scores
from graphgauge.explainers import BaseExplainer
from graphgauge.serve.digests import DIGEST_BYTES
from graphgauge.serve.requests import Question
from graphgauge.serve.response_text import FLAGS, AnswerText
from graphgauge.store import ANSWER_RECORD, ChainEntry, utc_now


@dataclass(frozen=True)
class DraftAnswer:
    """One answer before it is in the log."""

    question: Question
    x: Xplanation
    explainer: BaseExplainer
    answer_text: AnswerText
    digests: Mapping[str, str]  #: of model, data and settings
    seconds: float

    def record(self, selected: str) -> JsonObject:
        """The entry of the audit log; see `graphgauge.store.audit`."""
        asked = self.question
        return {
            "what": ANSWER_RECORD,
            "time": utc_now(),
            "answer": secrets.token_hex(16),
            "asked_by": asked.asked_by,
            "target": asked.target,
            "explainer": self.explainer.name,
            "params": {name: json_value(value) for name, value in self.explainer.params.items()},
            "asked_explainer": asked.explainer or selected,
            "seed": self.x.seed,
            "language": asked.language,
            "audience": asked.audience,
            "top_k": asked.top_k,
            "prediction": self.answer_text.facts["prediction"],
            "text": self.answer_text.text,
            "flags": self.answer_text.flags,
            "scores": digest_of_scores(self.x, DIGEST_BYTES),
            **self.digests,
            "versions": package_versions(),
            "seconds": round(self.seconds, 6),
        }


def json_value(value: Any) -> Any:
    """A parameter as JSON holds it; what it cannot hold is told as text."""
    is_plain = (
        value is None
        or isinstance(value, (bool, int, str))
        or (isinstance(value, float) and value == value)
    )
    return (
        value
        if is_plain and abs(value if isinstance(value, float) else 0) != float("inf")
        else repr(value)
    )


def response_body(draft: DraftAnswer, link: ChainEntry) -> JsonObject:
    """What the caller gets."""
    record, facts = link.record, draft.answer_text.facts
    kept = (
        "target explainer asked_explainer seed language audience prediction text model data "
        "settings versions seconds"
    ).split()
    return {
        "id": record["answer"],
        **{name: record[name] for name in kept},
        "features": [_feature_body(item) for item in facts["features"]["top"]],
        "opposing_features": [_feature_body(item) for item in facts["features"]["opposing"]],
        "edges": [_edge_body(item) for item in facts["edges"]["top"]],
        "opposing_edges": [_edge_body(item) for item in facts["edges"]["opposing"]],
        "num_edges": facts["edges"]["total"],
        "num_neighbours": facts["edges"]["neighbours"],
        "redacted": facts["redacted"],
        "flags": [{"flag": flag, "meaning": FLAGS[flag]} for flag in record["flags"]],
        "audit": {"number": link.number, "digest": link.digest},
    }


def _feature_body(item: Mapping[str, Any]) -> JsonObject:
    """One feature; index None: a group of features."""
    return {name: item[name] for name in ("index", "name", "of", "score")}


def _edge_body(item: Mapping[str, Any]) -> JsonObject:
    """One edge."""
    return {name: item[name] for name in ("source", "destination", "relation", "score")}


# --- for the OpenAPI ------------------------------------------------------------------------------


class Feature(Described):
    """A feature that is told."""

    index: int | None = Field(description="Its column; null: a group of features.")
    name: str
    of: str = Field(description="Whose it is: target, first, second, neighbours, nodes.")
    score: float


class Node(Described):
    """An end of an edge."""

    id: int
    name: str


class Edge(Described):
    """An edge that is told."""

    source: Node
    destination: Node
    relation: str
    score: float


class Flag(Described):
    """Something to know before trusting the answer."""

    flag: str
    meaning: str


class Receipt(Described):
    """Where the answer stands in the audit log: keep it, and the log can later be checked against
    it.
    """

    number: int
    digest: str


class Answer(Described):
    """An explanation."""

    id: str
    target: int | list[int]
    explainer: str = Field(description="The explainer that answered.")
    asked_explainer: str = Field(description="The explainer that was asked for.")
    seed: int
    language: str
    audience: str
    prediction: JsonObject
    text: str
    features: list[Feature]
    opposing_features: list[Feature]
    edges: list[Edge]
    opposing_edges: list[Edge]
    num_edges: int
    num_neighbours: int
    redacted: bool
    flags: list[Flag]
    model: str = Field(description="Digest of the network.")
    data: str = Field(description="Digest of the data.")
    settings: str = Field(description="Digest of the service's settings.")
    versions: dict[str, str]
    seconds: float
    audit: Receipt


class Problem(Described):
    """Why there is no answer."""

    error: str = Field(description="A short code for programs.")
    message: str


class State(Described):
    """How the service is."""

    status: str
