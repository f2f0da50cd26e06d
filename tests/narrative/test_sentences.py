"""The sentences themselves, kept as text: every language, audience, level and task; counts; gaps;
the paper's two templates.
"""

import math
from dataclasses import replace
from itertools import product

import pytest
import torch
from support.narrative_cases import (
    AUDIENCES,
    FEATURES,
    LANGUAGES,
    QUALITY,
    SIGNED,
    UNSIGNED,
    check_snapshot,
    evaluator,
    explanation,
    measured,
    names,
    told,
)

import graphgauge as gg
from graphgauge.narrative.text import explanation_facts, render_text

#: names of the three features and of the decision, and the remarks on the first two
LOAN = {
    "en": (
        "Credit History|the Debt level|a high Debt-to-Income Ratio|The application|was "
        "positive|exceeded thresholds"
    ),
    "it": "la storia creditizia|il livello di debito|un elevato rapporto debito/reddito|La "
    "richiesta|era positiva|superava le soglie",
    "de": "die Kredithistorie|die Schuldenhöhe|ein hohes Verhältnis von Schulden zu Einkommen|Der "
    "Antrag|war positiv|überschritt jedoch die Grenzwerte",
    "fr": "l’historique de crédit|le niveau d’endettement|un ratio dettes/revenus élevé|La "
    "demande|était positif|dépassait les seuils",
    "es": "el historial crediticio|el nivel de deuda|una ratio deuda-ingresos elevada|La "
    "solicitud|era positivo|superaba los umbrales",
}


@pytest.mark.parametrize(("language", "audience"), list(product(LANGUAGES, AUDIENCES)))
def test_sentences_for_every_level_and_task(language, audience):
    kinds = product(("node", "link", "graph"), ("classification", "regression"), (SIGNED, UNSIGNED))
    sections = {
        f"{level} {task}, {'signed' if explainer == SIGNED else 'unsigned'}": told(
            level=level, task=task, explainer=explainer, language=language, audience=audience
        )
        for level, task, explainer in kinds
    }
    check_snapshot(f"{language}-{audience.replace(' ', '-')}", sections)


@pytest.mark.parametrize("language", LANGUAGES)
def test_plurals_of_every_count(language):
    """0, 1, 2, 5, 11 and many: edits, thresholds, things that are listed, neighbours."""
    sections = {}
    for count, audience in product((1, 2, 5, 8, 11, 1180), AUDIENCES):
        for flipped in (True, False):
            x = explanation(metrics=measured(feature=(count, flipped), edge=(count, flipped)))
            quality = {f"m{k}": (0.1, 0.5, k > 0) for k in range(count)} if count < 12 else None
            title = f"{count}, {audience}, {'changed' if flipped else 'not changed'}"
            sections[title] = told(
                x, language=language, audience=audience, quality=quality, top_k=min(count, 2)
            )
    for audience in AUDIENCES:
        x = replace(
            explanation(),
            feature_score=FEATURES * (torch.arange(4) == 2),
            edge_score=torch.eye(10)[1],
            metrics={},
        )
        title = f"one of each, {audience}"
        sections[title] = told(
            x, language=language, audience=audience, quality={"feature_stability": (0.9, 0.8, True)}
        )
        sections[f"{title}, redacted"] = told(
            x, language=language, audience=audience, redact=True, quality=[]
        )
    check_snapshot(f"{language}-counts", sections)


GAPS = {
    "no scores at all": {"feature_score": None, "edge_score": None, "metrics": {}},
    "not numbers": {
        "feature_score": FEATURES * math.nan,
        "edge_score": torch.full((10,), math.inf),
    },
    "all zero": {"feature_score": FEATURES * 0, "edge_score": torch.zeros(10)},
    "no edges": {"edges": torch.arange(0), "edge_score": torch.zeros(0)},
    "no prediction": {"prediction": torch.tensor([math.nan, 0.5])},
    "no explainer": {"explainer": "", "metrics": {}},
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_cannot_be_said_is_said(language):
    sections = {
        f"{gap}, {audience}": told(
            explanation(**changes), language=language, audience=audience, quality=None
        )
        for (gap, changes), audience in product(GAPS.items(), AUDIENCES)
    }
    for audience in AUDIENCES:
        sections[f"statements, {audience}"] = told(
            language=language, audience=audience, quality=["31 %", "x < y."], order="magnitude"
        )
    check_snapshot(f"{language}-gaps", sections)


def loan(language, **changes):
    """A denied application: the debt ratio and the debt level spoke for it, the credit history
    against it.
    """
    history, level, ratio, decision, *remarks = LOAN[language].split("|")
    score = torch.zeros(6, 4)
    score[0] = torch.tensor([-0.2, 0.31, 0.73, 0.0])
    words = {
        "features": [history, level, ratio],
        "remarks": dict(zip((history, level), remarks, strict=True)),
        "decision": decision,
    }
    options = {"template": "paper-loan", "quality": None, **changes}
    return told(
        explanation(feature_score=score),
        language=language,
        names=names(language, **words),
        **options,
    )


def test_the_loan_sentence_of_the_paper_comes_out_word_for_word():
    assert loan("en") == (
        "The application was denied primarily due to a high Debt-to-Income Ratio (importance: "
        "0.73). While Credit History was positive, the Debt level exceeded thresholds. The model "
        "also considered connections to 3 accounts with prior defaults."
    )


def test_the_appendix_template_of_the_paper_comes_out_word_for_word():
    score = torch.zeros(6, 4)
    score[0] = torch.tensor([0.5, 0.3, 0.7, 0.0])
    assert told(explanation(feature_score=score), template="paper-template", quality=None) == (
        "The model's prediction for A-17 was primarily influenced by debt, income, and age of "
        "A-17. The structural context, particularly connections to B-3, D-1, and C-8, also "
        "contributed to the decision. Specifically, debt had the highest impact, followed by "
        "income and age."
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_validation_found_of_a_method_is_never_told_of_the_explanation(language):
    met, missed = (
        {f"m{k}": (0.9, 0.5, True) for k in range(2)},
        {f"m{k}": (0.1, 0.5, k > 0) for k in range(3)},
    )
    qualities = {
        "one met": {"m": (0.9, 0.5, True)},
        "all met": met,
        "one missed": missed,
        "statements": ["31 %"],
        "nothing wrong": [],
    }
    sections = {}
    for (title, quality), audience in product(qualities.items(), AUDIENCES):
        options = {"language": language, "audience": audience, "quality": quality}
        own, methods = (told(at_validation=at, **options).splitlines() for at in (False, True))
        assert own[-1] != methods[-1]
        sections[f"{title}, {audience}"] = methods[-1]
    for template in ("paper-loan", "paper-template"):
        sections[template] = told(
            language=language, template=template, quality=missed, at_validation=True
        ).rpartition("\n")[2]
    check_snapshot(f"{language}-validation", sections)


@pytest.mark.parametrize("audience", AUDIENCES)
def test_facts_that_an_earlier_version_kept_can_be_told(audience):
    facts = explanation_facts(evaluator(), explanation(), names(), audience, quality=QUALITY)
    kept = {name: value for name, value in facts["quality"].items() if name != "at_validation"}
    assert render_text({**facts, "quality": kept}, "en", audience) == render_text(
        facts, "en", audience
    )


@pytest.mark.parametrize("audience", AUDIENCES)
def test_without_a_validation_nothing_is_said_of_one(audience):
    assert told(audience=audience, quality=None, at_validation=True) == told(
        audience=audience, quality=None
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_templates_of_the_paper(language):
    sections = {"paper-loan": loan(language), "paper-loan, failed": loan(language, quality=["no"])}
    for template, level, explainer in product(
        ("paper-loan", "paper-template"), ("node", "link", "graph"), (SIGNED, UNSIGNED)
    ):
        sections[f"{template}, {level}, {explainer}"] = told(
            level=level, explainer=explainer, language=language, template=template
        )
    for gap, changes in GAPS.items():
        for template in ("paper-loan", "paper-template"):
            sections[f"{template}, {gap}"] = told(
                explanation(**changes), language=language, template=template, redact=True
            )
    check_snapshot(f"{language}-paper", sections)


@pytest.mark.parametrize("language", LANGUAGES)
def test_without_names_things_are_told_by_their_numbers(language):
    sections = {
        f"{level}, {audience}": told(
            level=level, language=language, audience=audience, names=None, quality=None
        )
        for level, audience in product(("node", "link", "graph"), AUDIENCES)
    }
    check_snapshot(f"{language}-numbers", sections)


def test_the_evaluator_fills_what_the_sentences_say():
    """From a real explanation to a text: the EC that was measured is the EC that is told."""
    own = gg.Evaluator(evaluator().model, trials=(2, 4), twin_trials=2, timed=0, permutations=2)
    x = gg.InputXGradient().explain(own.model, [2])[0]
    own.evaluate(x)
    text = own.get_textual_explanation(x, names("en"))
    cells = x.metrics["evaluation"]["cells"]
    ways = {True: "the prediction changes after", False: "does not change"}
    assert ways[cells["edge_ec"]["flipped"]] in text
    assert f" {int(x.metrics['edge_ec'])} removal" in text
    assert "Explainer: input_x_gradient (scores with a sign" in text


def test_the_loan_sentence_claims_nothing_where_only_one_side_spoke():
    against, alone = torch.zeros(6, 4), torch.zeros(6, 4)
    against[0], alone[0, 2] = torch.tensor([-0.2, 0.0, 0.73, 0.0]), 0.73
    options = {"template": "paper-loan", "quality": None, "names": names(groups={})}
    assert told(explanation(feature_score=against), **options) == (
        "Your loan application was denied primarily due to debt (importance: 0.73). Income spoke "
        "against this."
    )
    assert told(explanation(feature_score=alone), **options) == (
        "Your loan application was denied primarily due to debt (importance: 0.73)."
    )
