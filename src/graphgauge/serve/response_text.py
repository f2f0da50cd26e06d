"""From an explanation to an answer: the facts for the asked audience, the text, and flags that say
how far to trust it.

Languages, templates and names are read once, when the service starts: a question never reaches the
file system. What is left out for an audience (other people's nodes) is left out of the whole
answer, not of the text alone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from graphgauge.core import JsonObject, Xplanation
from graphgauge.evaluation import Evaluator
from graphgauge.models import BaseModel
from graphgauge.narrative import (
    AUDIENCES,
    SHIPPED_LANGUAGES,
    Language,
    Names,
    QualityVerdicts,
    ScoreSelection,
    TemplateContext,
    build_facts,
    complete_names,
    find_language,
    list_languages,
    read_template_source,
    render_template,
)
from graphgauge.serve.digests import text_digest
from graphgauge.serve.requests import Question

#: every flag and what it says
FLAGS = {
    "fallback_time": "the explainer could not answer within the time budget: a faster one did",
    "fallback_error": "the explainer failed on this target: another one answered",
    "not_validated": "no validation of this explainer was given to the service",
    "below_threshold": "this explainer missed a threshold when it was validated",
    "decision_network": "the explainer was validated for another network",
    "decision_data": "the explainer was validated on other data",
    "decision_expired": "the validation of the explainer has expired",
    "decision_unsigned": "nobody has signed the decision for the explainer",
    "no_features": "there are no usable feature scores",
    "no_edges": "there are no usable edge scores",
    "no_prediction": "the model's prediction is no number",
}


@dataclass(frozen=True)
class AnswerText:
    """What is said of one explanation."""

    text: str
    facts: Mapping[str, Any]
    flags: list[str]


class Narrator:
    """Tells what explanations of one model mean; ``quality`` holds what validation found, by
    explainer's label.

    An answer is not measured itself, so it tells what validation found of the method, and says that
    this is all that is known.
    """

    def __init__(
        self,
        model: BaseModel,
        names: Any = None,
        quality: Mapping[str, QualityVerdicts] | None = None,
    ) -> None:
        evaluator = Evaluator(model)
        self.model, self.names, self.quality = (
            model,
            complete_names(evaluator, names),
            dict(quality or {}),
        )
        self.order, self.pooling = evaluator.settings.order, evaluator.settings.pooling
        self.languages: dict[str, Language] = {
            code: find_language(code) for code in list_languages([SHIPPED_LANGUAGES])
        }
        self.templates = {
            (code, audience): read_template_source(audience.replace(" ", "-"), language)[0]
            for code, language in self.languages.items()
            for audience in AUDIENCES
        }

    def narrate(
        self, x: Xplanation, label: str, signed: bool, question: Question, flags: Iterable[str] = ()
    ) -> AnswerText:
        """Facts, text and flags of one answer; ``label`` is the explainer's, ``signed`` whether its
        scores carry a direction.
        """
        ranking = ScoreSelection(question.top_k, self.order, signed, self.pooling)
        redact, quality = AUDIENCES[question.audience], self.quality.get(label)
        facts = build_facts(
            x, self.model, self.names, ranking, redact=redact, quality=quality, at_validation=True
        )
        language = self.languages[question.language]
        text = render_template(
            self.templates[question.language, question.audience],
            language,
            TemplateContext(facts, language).context(),
        )
        return AnswerText(text, facts, [*flags, *_flags_from_facts(facts)])

    def record(self) -> JsonObject:
        """What decides how answers are told, as plain data."""
        return {
            "order": self.order,
            "pooling": self.pooling,
            "languages": sorted(self.languages),
            "names": text_digest(repr(_names_record(self.names))),
            "quality": {name: repr(value) for name, value in sorted(self.quality.items())},
        }


def _flags_from_facts(facts: Mapping[str, Any]) -> list[str]:
    """Flags that follow from the facts alone."""
    quality = facts["quality"]
    found = {
        "not_validated": not quality["judged"],
        "below_threshold": quality["failed"] > 0,
        "no_features": facts["features"]["status"] != "ok",
        "no_edges": facts["edges"]["status"] != "ok",
        "no_prediction": facts["prediction"]["status"] != "ok",
    }
    return [flag for flag, is_raised in found.items() if is_raised]


def _names_record(names: Names) -> JsonObject:
    """Names in an order that is always the same."""
    values = {entry.name: getattr(names, entry.name) for entry in fields(names)}
    return {
        kind: sorted(value.items(), key=repr) if isinstance(value, dict) else value
        for kind, value in values.items()
    } | {
        kind: sorted((noun, sorted(members)) for noun, members in values[kind].items())
        for kind in ("groups", "feature_groups")
    }
