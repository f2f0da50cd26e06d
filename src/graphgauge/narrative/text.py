"""Sentences that say what an explanation means, in a language and for an audience.

expert            explainer, scores, metrics, thresholds
internal          names and groups, no jargon
affected person   the role of the model, the main factors, how much would have to change, what was
                  not used; neighbours are other people, so the text only counts them and names
                  groups (unless redact=False)
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphgauge.core import BadExplanation, BadSetting, Xplanation, lookup
from graphgauge.narrative.facts import Facts, build_facts, has_signed_scores
from graphgauge.narrative.language import LanguageFolder, find_language
from graphgauge.narrative.names import Names, NamesLike
from graphgauge.narrative.quality import QualityVerdicts
from graphgauge.narrative.selection import ScoreSelection
from graphgauge.narrative.template_context import TemplateContext
from graphgauge.narrative.templates import render_template

if TYPE_CHECKING:
    from graphgauge.evaluation import Evaluator

#: whether neighbours are redacted, for each audience
AUDIENCES = {"expert": False, "internal": False, "affected person": True}


def textual_explanation(
    evaluator: "Evaluator",
    x: Xplanation,
    names: NamesLike = None,
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
    folder: LanguageFolder = options.pop("languages", None)
    facts = explanation_facts(evaluator, x, names, audience, top_k, **options)
    return render_text(facts, language, audience, template, folder)


def render_text(
    facts: Facts,
    language: str = "en",
    audience: str = "expert",
    template: str | Path | None = None,
    folder: LanguageFolder = None,
) -> str:
    """Put facts from `explanation_facts` into words.

    Facts for an affected person should be redacted.

    Args:
        facts: What `explanation_facts` returned.
        language: Language of the text: "en", "de", "es", "fr", "it", or one from ``folder``.
        audience: Who reads the text: "expert", "internal" or "affected person". It selects the
            template, unless one is given.
        template: A shipped template by name, a text with Jinja's braces, or a Path. By default the
            template of the audience.
        folder: A folder of further languages, which is searched before the shipped ones.

    Returns:
        Plain text; an empty line separates paragraphs.
    """
    audience_name, found_language = parse_audience(audience), find_language(language, folder)
    return render_template(
        audience_name.replace(" ", "-") if template is None else template,
        found_language,
        TemplateContext(facts, found_language).context(),
    )


def explanation_facts(
    evaluator: "Evaluator",
    x: Xplanation,
    names: NamesLike = None,
    audience: str = "expert",
    top_k: int = 3,
    *,
    order: str | None = None,
    redact: bool | None = None,
    quality: QualityVerdicts = None,
    at_validation: bool = False,
    signed: bool | None = None,
) -> Facts:
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
    hidden = AUDIENCES[parse_audience(audience)] if redact is None else redact
    settings = evaluator.settings
    ranking = ScoreSelection(
        top_k,
        settings.order if order is None else order,
        has_signed_scores(x) if signed is None else signed,
        settings.pooling,
    )
    return build_facts(
        x,
        evaluator.model,
        complete_names(evaluator, names),
        ranking,
        redact=hidden,
        quality=quality,
        at_validation=at_validation,
    )


def complete_names(evaluator: "Evaluator", names: NamesLike) -> Names:
    """Take names from the user, then from the wrapped model, then from its data."""
    model = evaluator.model
    own = Names.from_value(names).with_defaults(Names(features=model.feature_names))
    return own.with_defaults(
        Names.from_data(model.data)
        if model.level != "graph"
        else replace(Names.from_data(model.data[0]), nodes=None)
    )


def parse_audience(audience: str) -> str:
    """Return the audience; hyphens and underscores count as spaces."""
    name = (
        audience.replace("_", " ").replace("-", " ")
        if isinstance(audience, str)
        else repr(audience)
    )
    lookup(AUDIENCES, name, "audience")
    return name
