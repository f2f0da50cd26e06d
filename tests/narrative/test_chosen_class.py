"""Sentences on an explanation of a class that was chosen: they name that class, and say nothing of
the predicted one instead.
"""

import json

import pytest
from support.narrative_cases import (
    AUDIENCES,
    LANGUAGES,
    SIGNED,
    UNSIGNED,
    WORDS,
    evaluator,
    explanation,
    told,
)

import graphgauge as gg

TEMPLATES = [None, "paper-loan", "paper-template"]
UNMEASURED = {"metrics": {}}


def of_class(label, explainer=SIGNED, **changes):
    """Explain class ``label``, where class 1 is predicted with a probability of 0.8733."""
    return explanation(explainer=explainer, label=label, **{**UNMEASURED, **changes})


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("audience", AUDIENCES)
def test_a_chosen_class_is_named_with_its_probability(language, audience):
    name = WORDS[language]["classes"][0]
    for explainer in (SIGNED, UNSIGNED):
        for template in TEMPLATES:
            text = told(
                of_class(0, explainer), language=language, audience=audience, template=template
            )
            assert name in text
            assert "12" in text  # 12.7 %
            assert text.count(name) >= 2  # the question, and what speaks for it


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("template", TEMPLATES)
def test_the_predicted_class_by_number_is_told_as_ever(language, template):
    for audience in AUDIENCES:
        options = {"language": language, "audience": audience, "template": template}
        assert told(of_class(1), **options) == told(explanation(**UNMEASURED), **options)


def test_in_english_the_sentences_are_about_the_chosen_class_alone():
    text = told(of_class(0), quality=None)
    assert "The model predicts “denied” with a probability of 87.3%." in text
    assert (
        "This explanation is about another class, which the model does not predict: "
        "“approved” (probability: 12.7%)."
    ) in text
    assert "What speaks most for “approved”: debt (0.731)" in text
    assert "What speaks most against “approved”:" in text
    assert "Connections that speak most for “approved”:" in text
    assert "raised the prediction" not in text
    affected = told(of_class(0), audience="affected person", quality=None)
    assert "What speaks most for “approved”: debt" in affected
    assert "for this result" not in affected
    assert "no influence on the result" not in affected
    assert "B-3" not in affected  # neighbours stay unnamed
    unsigned = told(of_class(0, UNSIGNED), quality=None)
    assert "What matters most for “approved”" in unsigned
    assert "against “approved”" not in unsigned
    loan = told(of_class(0), template="paper-loan", quality=None)
    assert "was denied primarily due to" not in loan
    without_names = told(of_class(0), names=None, quality=None)
    assert "“class 0”" in without_names


def test_facts_hold_the_chosen_class_and_an_older_record_without_it_can_be_told():
    x = of_class(0)
    from graphgauge.narrative.text import explanation_facts, render_text

    facts = explanation_facts(evaluator(), x)
    assert facts["chosen"] == {"class": 0, "probability": 0.127, "name": ""}
    assert json.loads(json.dumps(facts)) == facts
    assert explanation_facts(evaluator(), of_class(1))["chosen"] is None
    older = {
        name: value
        for name, value in explanation_facts(evaluator(), explanation()).items()
        if name != "chosen"
    }
    assert render_text(older) == render_text({**older, "chosen": None})


def test_an_explained_class_is_told_from_explain_to_sentence():
    one = evaluator()
    predicted = int(one.model.pred_discrete([0])[0])
    (x,) = gg.InputXGradient().explain(one.model, [0], label=1 - predicted)
    one.evaluate(x)
    text = one.get_textual_explanation(x, names={"classes": ["no", "yes"]})
    assert f"“{['no', 'yes'][1 - predicted]}” (probability:" in text
    assert "Effective compactness" not in text  # nothing can flip
    template = "{{ question }} {{ evidence('features', true) }}"
    assert one.get_textual_explanation(x, template=template).startswith(
        "This explanation is about another class"
    )
