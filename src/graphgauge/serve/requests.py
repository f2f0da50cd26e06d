"""A question to the service: strict JSON, every field checked, nothing that is not expected.

Strict: one object, each key once, no NaN or infinity, no number beyond what a target can be, UTF-8
only.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, ValidationError, create_model
from pydantic import BaseModel as Checked

from graphgauge.core import IDS_PER_LEVEL, BadTarget, JsonObject, Target, canonical_target
from graphgauge.models import BaseModel
from graphgauge.narrative import AUDIENCES, parse_audience
from graphgauge.subgraphs import LabelSet, parse_targets

_MAX_NAME_LENGTH = 200  #: characters of ``asked_by``
_MAX_EXACT_INTEGER = 2**53  #: up to here every whole number is a float
_NO_CONTROL_CHARACTERS = r"^[^\x00-\x1f\x7f]*$"
#: every audience, also as the command line and a program may write it: affected_person,
#: affected-person
_AUDIENCE_SPELLINGS = tuple(
    dict.fromkeys(audience.replace(" ", space) for space in " _-" for audience in AUDIENCES)
)


class RequestRefused(Exception):
    """A request that is not answered: the HTTP status, a short code for programs, a message for
    people.
    """

    def __init__(
        self, status: int, code: str, message: str, retry_after: int | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.retry_after = status, code, message, retry_after


@dataclass(frozen=True)
class Question:
    """What is asked. ``explainer`` None: the selected one."""

    target: Target
    explainer: str | None
    language: str
    audience: str
    top_k: int
    asked_by: str


@dataclass(frozen=True)
class QuestionReader:
    """Reads questions about one model; ``form`` also describes them in the OpenAPI."""

    level: str
    size: int
    question_model: type[Checked]
    labels: LabelSet | None = None  #: of a network with several

    @staticmethod
    def for_model(
        model: BaseModel, explainers: Sequence[str], languages: Sequence[str], max_top: int
    ) -> "QuestionReader":
        """Questions that this model, these explainers and these languages can answer."""
        size, labels = model.num_targets(), model.labels
        form = _build_question_model(
            model.level,
            size,
            explainers,
            languages,
            max_top,
            None if labels is None else labels.count,
        )
        return QuestionReader(model.level, size, form, labels)

    def read(self, body: bytes) -> Question:
        """The question in a body, or `RequestRefused`: 400 for what is no JSON, 422 for what is no
        question.
        """
        try:
            found = self.question_model.model_validate(_parse_strict_json(body)).model_dump()
            target = canonical_target(found["target"])
            parse_targets([target], self.level, self.size, self.labels)
        except ValidationError as error:
            raise RequestRefused(
                422,
                "bad_question",
                "; ".join(
                    map(_validation_message, error.errors(include_input=False, include_url=False))
                ),
            ) from None
        except BadTarget as error:
            raise RequestRefused(422, "bad_target", str(error)) from None
        return Question(**{**found, "target": target})

    def schema(self) -> JsonObject:
        """The question as JSON Schema."""
        return self.question_model.model_json_schema()


def _build_question_model(
    level: str,
    size: int,
    explainers: Sequence[str],
    languages: Sequence[str],
    max_top: int,
    num_labels: int | None = None,
) -> type[Checked]:
    """The fields of a question, and what they may hold."""
    fields: JsonObject = {
        "target": _target_field(level, size, num_labels),
        "explainer": (
            Literal[tuple(explainers)] | None,
            Field(
                default=None,
                description="One of those that the service allows; default: the selected one.",
            ),
        ),
        "language": (Literal[tuple(languages)], Field(default="en", description="Of the text.")),
        "audience": (
            Annotated[Literal[_AUDIENCE_SPELLINGS], AfterValidator(parse_audience)],
            Field(default="internal", description="Whom the text is for."),
        ),
        "top_k": (
            Annotated[int, Field(ge=1, le=max_top)],
            Field(default=3, description="Features and edges to name."),
        ),
        "asked_by": (
            Annotated[str, Field(max_length=_MAX_NAME_LENGTH, pattern=_NO_CONTROL_CHARACTERS)],
            Field(
                default="", description="Who asks, for the audit log: kept as given, not checked."
            ),
        ),
    }
    return create_model("Question", __config__=ConfigDict(extra="forbid", strict=True), **fields)


def _target_field(level: str, size: int, num_labels: int | None) -> tuple[Any, Any]:
    """The form of a target: an id, the two ends of a link, and behind them a label where there are
    several.
    """
    one = Annotated[int, Field(ge=0, lt=size)]
    width = IDS_PER_LEVEL[level] + (num_labels is not None)
    ids = Annotated[list[one], Field(min_length=width, max_length=width)]
    ids_and_label = Annotated[list[int], Field(min_length=width, max_length=width)]
    several = ids if num_labels is None else ids_and_label
    told = (
        f"The {level} to explain."
        if num_labels is None
        else f"The {level} to explain, and one of its {num_labels} labels."
    )
    return several if width > 1 else one, Field(description=told)


def _parse_strict_json(body: bytes) -> Any:
    """The JSON in a body, or `RequestRefused`.

    >>> _parse_strict_json(b'{"target": 5}')
    {'target': 5}
    """
    try:
        return json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_reject_duplicate_keys,
            parse_constant=_reject_constant,
            parse_float=_parse_json_number,
        )
    except (ValueError, RecursionError) as error:
        why = "it is nested too deep" if isinstance(error, RecursionError) else str(error)[:200]
        raise RequestRefused(
            400, "bad_json", f"the body must be one JSON object in UTF-8: {why}."
        ) from None


def _reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> JsonObject:
    """An object; refuses a key that comes twice, of which most readers would keep the last."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key comes twice")
    return found


def _parse_json_number(text: str) -> int | float:
    """A number with a point or an exponent; to JSON Schema 17.0 is an integer.

    >>> _parse_json_number("17.0"), _parse_json_number("17.5")
    (17, 17.5)
    """
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < _MAX_EXACT_INTEGER else value


def _reject_constant(name: str) -> Any:
    """Refuse what JSON does not know."""
    raise ValueError(f"{name} is no JSON number")


def _validation_message(error: Any) -> str:
    """One mistake for people: where, and what was expected; never what was sent."""
    place = ".".join(str(part)[:40] for part in error["loc"]) or "the question"
    return f"{place}: {error['msg']}"
