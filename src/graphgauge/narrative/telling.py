"""Sentences that say what an explanation means: facts, in a language, for an audience.

expert            explainer, scores, metrics, thresholds
internal          names and groups, no jargon
affected person   the role of the model, the main factors, how much would have to change, what was not used; neighbours are
                  other people, so of them there are counts and groups only (unless redact=False)
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphgauge.core.errors import BadExplanation, BadSetting
from graphgauge.core.registry import lookup
from graphgauge.core.xplanation import Xplanation
from graphgauge.narrative.facts import facts_of, is_signed
from graphgauge.narrative.language import Folder, find_language
from graphgauge.narrative.names import Names
from graphgauge.narrative.quality import Quality
from graphgauge.narrative.ranking import Ranking
from graphgauge.narrative.templates import rendered
from graphgauge.narrative.wording import Wording

if TYPE_CHECKING:
    from graphgauge.evaluation import Evaluator

#: whether neighbours are redacted, for each audience
AUDIENCES = {"expert": False, "internal": False, "affected person": True}


def textual_explanation(
    evaluator: "Evaluator",
    x: Xplanation,
    names: Names | Mapping[str, Any] | None = None,
    language: str = "en",
    audience: str = "expert",
    top_k: int = 3,
    template: str | Path | None = None,
    **options: Any,
) -> str:
    """What ``x`` says about its prediction, as text.

    ``names``     what things are called: `Names`, or a dictionary of its fields; what is missing is taken from the data
    ``template``  a shipped one by name ("paper-loan", "paper-template"), a text with Jinja's braces, or a Path

    Options: those of `explanation_facts` (``order``, ``redact``, ``quality``, ``at_validation``,
    ``signed``), and ``languages``, a folder with further languages.
    """
    folder: Folder = options.pop("languages", None)
    facts = explanation_facts(evaluator, x, names, audience, top_k, **options)
    return text_of(facts, language, audience, template, folder)


def text_of(
    facts: Mapping[str, Any],
    language: str = "en",
    audience: str = "expert",
    template: str | Path | None = None,
    folder: Folder = None,
) -> str:
    """Facts, as `explanation_facts` gives them, in words. For an affected person they should be
    redacted.
    """
    called, chosen = read_audience(audience), find_language(language, folder)
    return rendered(
        called.replace(" ", "-") if template is None else template,
        chosen,
        Wording(facts, chosen).context(),
    )


def explanation_facts(
    evaluator: "Evaluator",
    x: Xplanation,
    names: Names | Mapping[str, Any] | None = None,
    audience: str = "expert",
    top_k: int = 3,
    *,
    order: str | None = None,
    redact: bool | None = None,
    quality: Quality = None,
    at_validation: bool = False,
    signed: bool | None = None,
) -> dict[str, Any]:
    """The facts that a text is made of, as plain data.

    ``order``          "signed" or "magnitude"; default: the evaluator's setting
    ``redact``         whether neighbours stay unnamed; default: for affected persons
    ``quality``        {metric: (value, threshold, passed)} or a list of statements on what failed
    ``at_validation``  whether ``quality`` is what validation found of the method: the text says so, and that ``x`` was not measured
    ``signed``         whether scores carry a direction; default: what the explainer says, no for one that is not known
    """
    if not isinstance(x, Xplanation):
        raise BadExplanation(
            f"a text needs one explanation (gg.Xplanation), but got {type(x).__name__}."
        )
    evaluator.check_explanations([x])
    for option, value in (("redact", redact), ("at_validation", at_validation), ("signed", signed)):
        if value is not None and not isinstance(value, bool):
            raise BadSetting(f"{option} must be True, False or None, but is {value!r}.")
    hidden = AUDIENCES[read_audience(audience)] if redact is None else redact
    settings = evaluator.settings
    ranking = Ranking(
        top_k,
        settings.order if order is None else order,
        is_signed(x) if signed is None else signed,
        settings.pooling,
    )
    return facts_of(
        x,
        evaluator.model,
        all_names(evaluator, names),
        ranking,
        redact=hidden,
        quality=quality,
        at_validation=at_validation,
    )


def all_names(evaluator: "Evaluator", names: Any) -> Names:
    """The user's names, then those of the wrapped model, then those of its data."""
    model = evaluator.model
    own = Names.read(names).filled(Names(features=model.feature_names))
    return own.filled(
        Names.of(model.data)
        if model.level != "graph"
        else replace(Names.of(model.data[0]), nodes=None)
    )


def read_audience(audience: str) -> str:
    """The audience, also written with a hyphen or an underscore."""
    told = (
        audience.replace("_", " ").replace("-", " ")
        if isinstance(audience, str)
        else repr(audience)
    )
    lookup(AUDIENCES, told, "audience")
    return told
