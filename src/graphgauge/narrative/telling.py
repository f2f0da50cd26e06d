"""Sentences that say what an explanation means, in a language and for an audience.

expert            explainer, scores, metrics, thresholds
internal          names and groups, no jargon
affected person   the role of the model, the main factors, how much would have to change, what was
                  not used; neighbours are other people, so the text only counts them and names
                  groups (unless redact=False)
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
    """Say in words what an explanation means.

    Args:
        evaluator: The evaluator of the model that was explained.
        x: The explanation.
        names: What things are called: `Names`, or a dictionary of its fields. Missing names come
            from the data.
        language: Language of the text: "en", "de", "es", "fr", "it", or one from ``languages``.
        audience: Who reads the text: "expert", "internal" or "affected person".
        top_k: How many features and edges the text names.
        template: A shipped template by name ("paper-loan", "paper-template"), a text with Jinja's
            braces, or a Path. By default the template of the audience.
        options: Those of `explanation_facts` (``order``, ``redact``, ``quality``,
            ``at_validation``, ``signed``), and ``languages``, a folder with further languages.

    Returns:
        Plain text; an empty line separates paragraphs.
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
    """Put facts from `explanation_facts` into words.

    Facts for an affected person should be redacted.
    """
    audience_name, found_language = read_audience(audience), find_language(language, folder)
    return rendered(
        audience_name.replace(" ", "-") if template is None else template,
        found_language,
        Wording(facts, found_language).context(),
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
    """Return the facts that a text is made of, as plain data.

    Args:
        evaluator: The evaluator of the model that was explained.
        x: The explanation.
        names: What things are called: `Names`, or a dictionary of its fields. Missing names come
            from the data.
        audience: Who reads the text: "expert", "internal" or "affected person".
        top_k: How many features and edges the text names.
        order: "signed" or "magnitude"; by default the evaluator's setting.
        redact: Whether neighbours stay unnamed; by default only for affected persons.
        quality: {metric: (value, threshold, passed)}, or a list of statements about what failed.
        at_validation: Whether ``quality`` is that of the method at validation. The text then says
            so, and that ``x`` itself was not measured.
        signed: Whether scores carry a direction; by default what the explainer says, and False for
            an unknown explainer.

    Raises:
        BadExplanation: ``x`` is no explanation of the evaluator's model.
        BadSetting: An option or a name does not fit.
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
    """Take names from the user, then from the wrapped model, then from its data."""
    model = evaluator.model
    own = Names.read(names).filled(Names(features=model.feature_names))
    return own.filled(
        Names.of(model.data)
        if model.level != "graph"
        else replace(Names.of(model.data[0]), nodes=None)
    )


def read_audience(audience: str) -> str:
    """Return the audience; hyphens and underscores count as spaces."""
    name = (
        audience.replace("_", " ").replace("-", " ")
        if isinstance(audience, str)
        else repr(audience)
    )
    lookup(AUDIENCES, name, "audience")
    return name
