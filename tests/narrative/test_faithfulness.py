"""Every number of a text is in the facts; neighbours stay unnamed; nothing is said that was not
found.
"""

import json
import math
import re
from dataclasses import replace
from itertools import product

import pytest
import torch
from babel import Locale
from babel.numbers import parse_decimal
from hypothesis import given
from hypothesis import strategies as st
from support.narrative_cases import (
    AUDIENCES,
    EDGE_SCORES,
    FEATURES,
    LANGUAGES,
    QUALITY,
    SIGNED,
    UNSIGNED,
    evaluator,
    explanation,
    measured,
    names,
    told,
)

import graphgauge as gg
from graphgauge.core.errors import BadExplanation, BadSetting, UnknownName
from graphgauge.narrative import explanation_facts, find_language
from graphgauge.narrative.facts import _round_probability, _round_significant
from graphgauge.narrative.selection import ScoreSelection

LEVELS, TASKS = ("node", "link", "graph"), ("classification", "regression")


def facts(x=None, *, level="node", task="classification", **options):
    found = explanation(level, task) if x is None else x
    return explanation_facts(evaluator(level, task), found, **{"names": names(), **options})


def leaves(value):
    """All values of nested dictionaries and lists."""
    if isinstance(value, (dict, list)):
        return [
            leaf
            for part in (value.values() if isinstance(value, dict) else value)
            for leaf in leaves(part)
        ]
    return [value]


def numbers_in(text, language):
    """Numbers of a text as (value, whether it is a percentage), in the language's own writing, also
    with an exponent: 2.7E-28.
    """
    signs = Locale.parse(language).number_symbols["latn"]
    group, point = (re.escape(signs[kind]) for kind in ("group", "decimal"))
    found = re.findall(
        rf"(-?\d+(?:{group}\d{{3}})*(?:{point}\d+)?)(E-?\d+)?([\s\u00a0\u202f]?%)?", text
    )
    return [
        (float(f"{parse_decimal(digits, locale=language)}{power}"), bool(percent))
        for digits, power, percent in found
    ]


def unfounded(text, known, language):
    """Numbers of a text that the facts do not hold; digits inside names are the names' own."""
    plain = [
        leaf
        for leaf in leaves(known)
        if isinstance(leaf, (int, float)) and not isinstance(leaf, bool)
    ]
    for name in sorted(
        {leaf for leaf in leaves(known) if isinstance(leaf, str) and re.search(r"\d", leaf)},
        key=len,
        reverse=True,
    ):
        text = text.replace(name, "")
    shares = [round(value * 100, 6) for value in plain]
    return [
        value
        for value, is_percent in numbers_in(text, language)
        if value not in (shares if is_percent else plain)
    ]


@pytest.mark.parametrize(("language", "audience"), list(product(LANGUAGES, AUDIENCES)))
def test_every_number_in_the_text_is_in_the_facts(language, audience):
    count = 0
    for level, task, explainer, redact in product(LEVELS, TASKS, (SIGNED, UNSIGNED), (None, True)):
        x = explanation(
            level, task, explainer, metrics=measured(feature=(1180, True), edge=(7, False))
        )
        options = {
            "names": names(language),
            "audience": audience,
            "redact": redact,
            "quality": QUALITY,
        }
        known = facts(x, level=level, task=task, **options)
        text = told(x, level=level, task=task, language=language, **options)
        assert unfounded(text, known, language) == []
        count += len(numbers_in(text, language))
    assert count > 100


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_search_for_numbers_would_find_an_invented_one(language):
    text, known = (
        told(language=language, names=names(language)),
        facts(names=names(language), quality=QUALITY),
    )
    assert unfounded(text, known, language) == []
    changed = text.replace("87", "88", 1)
    assert unfounded(changed, known, language) == [88.3]
    written = {"en": "1,181", "it": "1.181", "de": "1.181", "fr": "1\u202f181", "es": "1181"}[
        language
    ]
    assert unfounded(f"{text} {written}", known, language) == [1181.0]


@pytest.mark.parametrize(("language", "template"), list(product(LANGUAGES, (None, "paper-loan"))))
def test_tiny_scores_are_readable_and_still_in_the_facts(language, template):
    x = explanation(feature_score=FEATURES * 3.7e-27, edge_score=EDGE_SCORES * 1e-7)
    options = {"names": names(language), "quality": {"feature_pertinence": (1e-9, 2e-6, False)}}
    text, known = told(x, language=language, template=template, **options), facts(x, **options)
    assert known["features"]["top"][0]["score"] == 2.71e-27
    assert ("2.71E-27" if language == "en" else "2,71E-27") in text
    assert unfounded(text, known, language) == []
    assert unfounded(text.replace("71E-27", "72E-27", 1), known, language) == [2.72e-27]
    assert "0000" not in text


@pytest.mark.parametrize("language", LANGUAGES)
def test_numbers_have_an_exponent_from_known_sizes_on(language):
    write, point = find_language(language).number, "." if language == "en" else ","
    for value, shown in (
        (1e-4, "0.0001"),
        (9.99e-5, "9.99E-5"),
        (-9.99e-5, "-9.99E-5"),
        (0.0, "0"),
        (-0.000123, "-0.000123"),
    ):
        assert write(value) == shown.replace(".", point)
    assert write(1.23e15) == f"1{point}23E15"
    assert re.sub(r"\D", "", write(9.99e14)) == "999" + "0" * 12


def test_thresholds_are_told_without_the_last_digits_of_computing():
    assert 0.2 * 3 != 0.6
    quality = {"feature_ec": (1.0, 0.2 * 3, False), "edge_pertinence": (0.6, 0.6123456, False)}
    assert [own["threshold"] for own in facts(quality=quality)["quality"]["failures"]] == [
        0.6,
        0.6123456,
    ]
    assert (
        "effective compactness of features 1 instead of at most 0.6; edge pertinence 0.6 instead of"
        in told(quality=quality)
    )


def test_facts_are_plain_data_and_survive_json():
    for level, task in product(LEVELS, TASKS):
        known = facts(level=level, task=task, quality=QUALITY)
        assert json.loads(json.dumps(known, allow_nan=False)) == known


def test_facts_hold_what_was_worked_out_by_hand():
    known = facts(quality=QUALITY)
    features, edges = known["features"], known["edges"]
    assert [(item["name"], item["of"], item["score"]) for item in features["top"]] == [
        ("debt", "target", 0.731),
        ("debt", "neighbours", 0.25),
        ("income", "neighbours", 0.11),
    ]
    assert [(item["name"], item["of"], item["score"]) for item in features["opposing"]] == [
        ("income", "target", -0.21)
    ]
    assert (features["total"], features["idle"], features["idle_names"]) == (4, 1, ["age"])
    assert [
        (edge["source"]["id"], edge["destination"]["id"], edge["score"]) for edge in edges["top"]
    ] == [
        (1, 0, 0.42),
        (3, 2, 0.33),
        (0, 1, 0.01),
    ]
    assert (edges["total"], edges["positive"], edges["negative"], edges["neighbours"]) == (
        5,
        4,
        1,
        4,
    )
    group = {
        "one": "account with prior defaults",
        "other": "accounts with prior defaults",
        "count": 3,
        "edges": 5,
        "score": 0.615,
    }
    assert edges["groups"] == [group]
    assert known["change"] == {
        "feature": {"count": 2, "flipped": True, "least": 2, "most": 2, "draws": 1},
        "edge": {"count": 5, "flipped": False, "least": 5, "most": 5, "draws": 1},
    }
    assert known["prediction"] == {
        "status": "ok",
        "class": 1,
        "name": "denied",
        "probability": 0.873,
    }
    assert (known["quality"]["failed"], known["quality"]["total"]) == (2, 3)
    assert facts(task="regression")["prediction"] == {
        "status": "ok",
        "value": 1235.0,
        "unit": "thousand euros",
    }


def literal_split(scores, k, order, signed):
    """Top and opposing, one after the other, as the definition reads."""
    left, top, opposing = list(enumerate(scores)), [], []
    size = (lambda s: abs(s)) if order == "magnitude" else (lambda s: s)
    while len(top) < k:
        left = [(i, s) for i, s in left if s != 0 and (size(s) > 0 or not signed)]
        if not left:
            break
        best = max(size(s) for _, s in left)
        first = next(pair for pair in left if size(pair[1]) == best)
        left.remove(first)
        top.append(first)
    if signed and order == "magnitude":
        return [i for i, s in top if s > 0], [i for i, s in top if s < 0]
    rest = [(i, s) for i, s in enumerate(scores) if s < 0]
    while signed and rest and len(opposing) < k:
        worst = min(s for _, s in rest)
        first = next(pair for pair in rest if pair[1] == worst)
        rest.remove(first)
        opposing.append(first)
    return [i for i, _ in top], [i for i, _ in opposing]


@given(
    st.lists(st.integers(-3, 3)),
    st.integers(1, 4),
    st.sampled_from(["signed", "magnitude"]),
    st.booleans(),
)
def test_what_is_told_follows_the_definition(scores, k, order, signed):
    assert ScoreSelection(k, order, signed).split(
        [float(score) for score in scores]
    ) == literal_split(scores, k, order, signed)


def test_scores_of_feature_groups_add_up_before_neighbours_are_pooled():
    grouped = names(feature_groups={"money": [0, 2, 3]}, features={1: "age"})
    top = facts(names=grouped)["features"]["top"]
    score = FEATURES[:, [0, 2, 3]].sum(1)
    assert [(item["name"], item["of"], item["score"]) for item in top] == [
        ("money", "target", _round_significant(float(score[0]))),
        ("money", "neighbours", _round_significant(float(score[1:].max()))),
    ]


def test_neighbours_are_pooled_as_the_settings_say():
    own = gg.Evaluator(evaluator().model, pooling="sum", order="magnitude")
    known = explanation_facts(own, explanation(), names())
    assert known["order"] == "magnitude"
    pooled = FEATURES[1:].sum(0)
    debt = next(
        item
        for item in known["features"]["opposing"] + known["features"]["top"]
        if item["of"] == "neighbours"
    )
    assert (debt["name"], debt["score"]) == ("income", _round_significant(float(pooled[0])))


def test_an_unsigned_explainer_gets_no_direction():
    words = r"raised|lowered|spoke|against"
    for audience, task in product(AUDIENCES, TASKS):
        assert re.search(words, told(explainer=SIGNED, audience=audience, task=task))
        assert not re.search(words, told(explainer=UNSIGNED, audience=audience, task=task))
        assert not re.search(
            words, told(explanation(task=task, explainer="mine"), audience=audience, task=task)
        )
    assert "raised" in told(explanation(explainer="mine"), signed=True)


@pytest.mark.parametrize(("language", "level"), list(product(LANGUAGES, LEVELS)))
def test_affected_persons_never_read_of_single_neighbours(language, level):
    people = {node: f"person number {node}" for node in range(6)}
    x = explanation(level, explainer=SIGNED)
    own = set() if level != "node" else {0}
    for template in (None, "paper-loan", "paper-template", "expert", "internal"):
        given = names(language, nodes=people, decision="")
        text = told(
            x,
            level=level,
            language=language,
            names=given,
            audience="affected person",
            template=template,
        )
        assert {node for node in range(6) if people[node] in text} <= own
        assert not re.search(
            r"\b(node|nodo|Knoten|nœud) [1-5]\b",
            told(x, level=level, language=language, names=None, audience="affected person"),
        )
    hidden = json.dumps(
        facts(x, level=level, names=names(nodes=people), audience="affected person")
    )
    assert {node for node in range(6) if people[node] in hidden} <= own
    shown = told(
        x,
        level=level,
        language=language,
        names=names(nodes=people),
        audience="affected person",
        redact=False,
        template="internal",
    )
    assert "person number 1" in shown


def test_probabilities_are_certain_only_when_they_are():
    assert [_round_probability(p) for p in (0.0, 1e-9, 0.12345, 0.9999999, 1.0)] == [
        0.0,
        0.001,
        0.123,
        0.999,
        1.0,
    ]


def test_a_value_that_misses_its_threshold_does_not_look_like_it():
    text = told(
        quality={
            "feature_pertinence": (0.59996, 0.6, False),
            "edge_ec": (None, 10, False),
            "time": (math.nan, 5.0, None),
        }
    )
    assert (
        "feature pertinence 0.59996 instead of at least 0.6; effective compactness of edges "
        "without a value instead of at most 10."
    ) in text
    assert "misses 2 of 2 quality thresholds" in text


def test_an_ec_without_a_record_of_flips_is_not_told():
    assert facts(explanation(metrics={"feature_ec": 3.0}))["change"] == {
        "feature": None,
        "edge": None,
    }


def test_a_prediction_that_is_not_stored_is_asked_from_the_model():
    x = explanation(prediction=None)
    probability = evaluator().model.pred_continuous([0])[0]
    assert facts(x)["prediction"]["probability"] == _round_probability(float(probability.max()))
    assert facts(x)["prediction"]["class"] == int(probability.argmax())


def test_groups_without_a_singular_do_without_it():
    text = told(names=names(groups={"accounts with prior defaults": [1]}), audience="internal")
    assert "connections to accounts with prior defaults (1)." in text


def test_wrong_questions_are_refused_with_what_to_do():
    for options, error, message in (
        ({"top_k": 0}, BadSetting, "top_k must be a whole number"),
        ({"order": "random"}, UnknownName, "No order of scores is called 'random'"),
        ({"audience": "children"}, UnknownName, "Known: affected person, expert, internal"),
        ({"language": "xx", "names": None}, UnknownName, "Known: de, en, es, fr, it"),
        ({"quality": "bad"}, BadSetting, "quality must be a dictionary"),
        ({"quality": {"time": (1.0, True)}}, BadSetting, "must be \\(value, threshold, passed\\)"),
        ({"quality": [3]}, BadSetting, "statements on quality must be texts"),
        ({"redact": "yes"}, BadSetting, "redact must be True, False or None"),
    ):
        with pytest.raises(error, match=message):
            told(**{"language": "en", **options})
    with pytest.raises(BadExplanation, match="one explanation"):
        evaluator().get_textual_explanation([explanation()])
    with pytest.raises(BadExplanation, match="node targets, but an explanation is of a link"):
        told(explanation("link"))
    with pytest.raises(BadExplanation, match="a graph with 7 nodes"):
        told(replace(explanation(), num_nodes=7))


def test_an_explanation_of_half_the_graph_tells_the_right_ends():
    edges = torch.tensor([5, 1])
    x = replace(explanation(), edges=edges, edge_score=EDGE_SCORES[edges])
    assert [
        (edge["source"]["name"], edge["destination"]["name"]) for edge in facts(x)["edges"]["top"]
    ] == [
        ("B-3", "A-17"),
        ("D-1", "C-8"),
    ]
