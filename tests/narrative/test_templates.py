"""Templates, languages and names: what is refused, what is dropped in, and names that try to be
more than text.
"""

import re
import shutil

import pytest
from support.narrative_cases import LANGUAGES, evaluator, explanation, names, told
from torch_geometric.data import Data

import graphgauge as gg
from graphgauge.core.errors import BadFile, BadSetting, UnknownName
from graphgauge.narrative import find_language
from graphgauge.narrative.language import (
    SHIPPED_LANGUAGES,
    _fill_phrase,
    _flatten_keys,
    _parse_phrases,
)
from graphgauge.narrative.names import _MAX_NAME_LENGTH, tidy_text

HOSTILE = [
    "{{ 7 * 7 }}",
    "{% for x in y %}",
    "{# comment #}",
    "{{ self.__class__.__mro__ }}",
    "{{ ''.__class__.__base__.__subclasses__() }}",
    "{n}",
    "{0}",
    "{name.__class__}",
    "{}",
    "%s %d %(n)s",
    "${HOME}",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "&amp;&lt;",
    "a\nb\r\nc",
    "tab\tand\x0bvertical",
    "nul\x00byte\x1b[31mred",
    "\u202egnp.exe",
    "zero\u200bwidth\ufeff",
    "\u05e9\u05dc\u05d5\u05dd",
    "\u0645\u0631\u062d\u0628\u0627",
    "a\u2028b\u2029c",
    "=HYPERLINK(1)",
    "'; DROP TABLE names; --",
    "\\N{BULLET}\\u0041\\1",
    "x" * 5000,
    "e\u0301\U0001f469\u200d\U0001f4bb",
    "\ud800 alone",
    "",
    " \n ",
]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_stay_text(name):
    given = gg.Names(
        features=[name] * 4,
        classes=[name] * 2,
        nodes=[name] * 6,
        unit=name,
        node=(name, name),
        decision=name,
        role=name,
        relation=name,
        groups={(name, name or "g") if tidy_text(name) else "g": [1, 2]},
        remarks={name: name},
        not_used=[name],
    )
    shown = tidy_text(name)
    templates = ["expert", "internal", "affected-person", "paper-loan", "paper-template"]
    for language, template in [
        *(("en", template) for template in templates),
        *((other, "internal") for other in LANGUAGES[1:]),
    ]:
        for audience in ("affected person",) if template == "affected-person" else ("expert",):
            text = told(language=language, names=given, audience=audience, template=template)
            assert shown in text
            assert "49" not in text
            assert not re.search(
                r"[\x00-\x09\x0b-\x1f\u200b\u202a-\u202e\u2028\u2029\ufeff\ud800-\udfff]", text
            )
            assert text.count("\u2068") == text.count("\u2069")
            assert len(shown) <= _MAX_NAME_LENGTH + 2
            text.encode("utf-8")


def test_names_without_anything_to_see_count_as_not_given():
    assert gg.Names(features=["", " \n", "age"]).features == {2: "age"}
    assert "feature 2 (0.731)" in told(names=names(features=["a", "b", "", "d"]))


def test_right_to_left_names_are_isolated():
    assert tidy_text("\u05e9\u05dc") == "\u2068\u05e9\u05dc\u2069"
    assert tidy_text(tidy_text("\u05e9\u05dc")) == "\u2068\u05e9\u05dc\u2069"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"features": "income"}, "names.features must be a list"),
        ({"features": [1, 2]}, r"names.features\[0\] must be a text, but is int"),
        ({"nodes": {-1: "a"}}, "must speak of ids 0, 1, 2"),
        ({"nodes": {"a": "b"}}, "names 'a'"),
        ({"node": ("a", "b", "c")}, "names.node must be a pair"),
        ({"groups": ["a"]}, "names.groups must be a dictionary"),
        ({"groups": {"": [1]}}, "a group without a name"),
        ({"groups": {"a": "12"}}, "must list ids, but is str"),
        ({"groups": {"a": [9]}}, "names.groups speaks of number 9, but there are 6"),
        ({"features": ["a"] * 5}, "names.features speaks of number 4, but there are 4"),
        ({"classes": ["a"] * 3}, "names.classes speaks of number 2, but there are 2"),
        ({"feature_groups": {"a": [1], "b": [1, 2]}}, "feature 1 is in two"),
        ({"unit": 3}, "names.unit must be a text"),
        ({"remarks": []}, "names.remarks must be a dictionary"),
    ],
)
def test_names_are_checked_at_the_door(given, message):
    with pytest.raises(BadSetting, match=message):
        told(names=given)


def test_an_unknown_kind_of_names_is_refused_with_the_known_ones():
    with pytest.raises(
        UnknownName, match=r"No kind of names is called 'feature'\. Did you mean 'features'"
    ):
        told(names={"feature": ["a"]})
    with pytest.raises(BadSetting, match=r"names must be gg\.Names"):
        told(names=["a"])


def test_names_come_from_the_data_where_the_user_gives_none():
    data = Data(
        feature_names=["a", "b"], class_names=["no", "yes"], node_names=["u", "v"], unit="stars"
    )
    found = gg.Names.from_data(data)
    assert (found.features, found.classes, found.nodes, found.unit) == (
        {0: "a", 1: "b"},
        {0: "no", 1: "yes"},
        {0: "u", 1: "v"},
        "stars",
    )
    own = gg.Names(features=["c"]).with_defaults(found)
    assert (own.features, own.unit) == ({0: "c"}, "stars")
    assert gg.Names.from_data(gg.datasets.load("BA-Shapes", "node")).classes[0] == "base"


def test_a_template_of_ones_own():
    assert (
        told(
            template=(
                "{{ target }}: {{ number(features.top[0].score) }}\n"
                "{{ percent(prediction.probability) }}"
            )
        )
        == "A-17: 0.731 87.3%"
    )
    assert (
        told(template="{{ labels(features.top) }}", language="de")
        == "Schulden, Schulden bei Nachbarn und Einkommen bei Nachbarn"
    )
    assert told(template='{% include "expert.txt" %}') == told()


def test_a_template_in_a_file(tmp_path):
    path = tmp_path / "own.txt"
    path.write_text("Für {{ target }}", encoding="utf-8")
    assert told(template=path) == "Für A-17"
    with pytest.raises(BadFile, match="cannot be read"):
        told(template=tmp_path / "missing.txt")


@pytest.mark.parametrize(
    ("template", "error", "message"),
    [
        (
            "{{ nmae }}",
            UnknownName,
            r"'nmae'. Known: .*decision, .*features.top, .*number\(\), .*target",
        ),
        ("{% if False %}{{ nmae }}{% endif %}", UnknownName, "'nmae'"),
        ("one\n{{ features.tpo }}", UnknownName, r"'tpo' \(line 2\). Known: .*features.top"),
        ("{{ range(9) }}", UnknownName, "'range'"),
        ("one\n{% if %}", BadSetting, "line 2"),
        (
            "one\ntwo {{ 'a' * 9 }}",
            BadSetting,
            "line 2: SecurityError: templates cannot use the operator",
        ),
        ("{{ target.__class__ }}", BadSetting, "SecurityError"),
        ("{{ ''.__class__.__mro__ }}", BadSetting, "SecurityError"),
        ("{{ number.__globals__ }}", BadSetting, "SecurityError"),
        ("{{ labels.__code__ }}", BadSetting, "SecurityError"),
        ("{{ not_used.append('x') }}", BadSetting, "SecurityError"),
        ("{{ target|center(99) }}", BadSetting, "No filter named 'center'"),
        ("{% include '../../language.py' %}", BadSetting, "TemplateNotFound"),
        ("{{ plural(2, one='x') }}", BadSetting, "plural needs a form called 'other'"),
        ("{{ number('x') }}", BadSetting, "line 1: ValueError"),
        (
            "expret",
            UnknownName,
            (
                "Did you mean 'expert'. Known: affected-person, expert, internal, paper-loan, "
                "paper-template"
            ),
        ),
        (7, BadSetting, "template must be a name, a text or a Path"),
    ],
)
def test_templates_that_cannot_be_are_refused(template, error, message):
    with pytest.raises(error, match=message):
        told(names=names(), template=template)


def test_a_further_language_is_a_folder(tmp_path):
    """Pirate: English numbers and plurals, its own words."""
    shutil.copytree(SHIPPED_LANGUAGES / "en", tmp_path / "pirate")
    phrases = tmp_path / "pirate" / "phrases.toml"
    phrases.write_text(
        phrases.read_text(encoding="utf-8").replace('"feature {id}"', '"treasure {id}"'),
        encoding="utf-8",
    )
    (tmp_path / "pirate" / "internal.txt").write_text(
        (
            "Arr, {{ target }}!\n"
            '{{ plural(features.top|length, one="A coin", other="{n} coins") }}: {{ '
            "labels(features.top) }}."
        ),
        encoding="utf-8",
    )
    own = evaluator()
    text = own.get_textual_explanation(
        explanation(), language="pirate", audience="internal", languages=tmp_path
    )
    assert text == (
        "Arr, node 0! 3 coins: treasure 2, treasure 2 of neighbours, and treasure 0 of neighbours."
    )
    with pytest.raises(UnknownName, match="Known: de, en, es, fr, it, pirate"):
        find_language("priate", tmp_path)


def test_a_folder_can_add_to_a_shipped_language(tmp_path):
    (tmp_path / "fr").mkdir()
    (tmp_path / "fr" / "court.txt").write_text(
        "{{ target }} : {{ prediction.text }}", encoding="utf-8"
    )
    assert (
        told(language="fr", languages=tmp_path, template="court") == "A-17 : «\u00a0refusé\u00a0»"
    )
    assert told(language="fr", languages=tmp_path) == told(language="fr")


def test_languages_that_are_not_complete_are_refused(tmp_path):
    with pytest.raises(BadFile, match="is not a folder"):
        find_language("en", tmp_path / "missing")
    (tmp_path / "xx").mkdir()
    with pytest.raises(BadFile, match=r"no phrases.toml"):
        find_language("xx", tmp_path)
    (tmp_path / "xx" / "phrases.toml").write_text('locale = "en"', encoding="utf-8")
    with pytest.raises(BadFile, match=r"has no group_from, quotes, nouns.node"):
        find_language("xx", tmp_path)
    text = (SHIPPED_LANGUAGES / "en" / "phrases.toml").read_text(encoding="utf-8")
    (tmp_path / "xx" / "phrases.toml").write_text(
        text.replace('locale = "en"', 'locale = "zz"'), encoding="utf-8"
    )
    with pytest.raises(BadFile, match="none that Babel knows"):
        find_language("xx", tmp_path)
    (tmp_path / "xx" / "phrases.toml").write_text("= 1", encoding="utf-8")
    with pytest.raises(BadFile, match="cannot be read as TOML"):
        find_language("xx", tmp_path)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_every_phrase_and_template_and_no_other(language):
    own, english = SHIPPED_LANGUAGES / language, SHIPPED_LANGUAGES / "en"
    assert sorted(path.name for path in own.iterdir()) == sorted(
        path.name for path in english.iterdir()
    )
    assert sorted(_flatten_keys(_parse_phrases(own / "phrases.toml"))) == sorted(
        _flatten_keys(_parse_phrases(english / "phrases.toml"))
    )
    same = [
        name
        for name in ("expert", "internal", "affected-person")
        if language != "en"
        and told(language="en", template=name)
        == told(language=language, names=names(), template=name)
    ]
    assert same == []


@pytest.mark.parametrize(
    ("language", "number", "percent", "listed"),
    [
        ("en", "1,234.5", "87.3%", "a, b, and c"),
        ("it", "1.234,5", "87,3%", "a, b e c"),
        ("de", "1.234,5", "87,3\u00a0%", "a, b und c"),
        ("fr", "1\u202f234,5", "87,3\u00a0%", "a, b et c"),
        ("es", "1234,5", "87,3\u00a0%", "a, b y c"),
    ],
)
def test_numbers_and_lists_are_written_as_the_language_does(language, number, percent, listed):
    found = find_language(language)
    assert (found.number(1234.5), found.percent(0.873), found.listing("abc")) == (
        number,
        percent,
        listed,
    )
    assert (found.listing([]), found.listing(["a"]), found.number(2.0)) == ("", "a", "2")


def test_spanish_says_e_before_the_sound_i():
    spanish = find_language("es")
    pairs = {
        "ingresos": "e",
        "hijos": "e",
        "hielo": "y",
        "Italia": "e",
        "deudas": "y",
        "iones": "y",
    }
    assert {name: spanish.listing(["edad", name]).split()[1] for name in pairs} == pairs


def test_what_is_filled_in_is_not_read_again():
    assert _fill_phrase("{a} {b}", {"a": "{b}", "b": "{a}"}) == "{b} {a}"
    with pytest.raises(UnknownName, match="Known: a"):
        _fill_phrase("{b}", {"a": "x"})
