"""Files that people write: YAML and TOML, and what is said of those that are neither."""

import pytest
from pydantic import BaseModel, ConfigDict

from graphgauge.core.config_files import (
    _line_number,
    _parse_yaml,
    read_config_file,
    validate_config,
)
from graphgauge.core.errors import BadFile, BadSetting


class Form(BaseModel):
    model_config = ConfigDict(extra="forbid")
    number: int
    names: list[str] = []


def read(path):
    tree, node = read_config_file(path, "a form", "`number: 1`")
    return validate_config(Form, tree, node, path.name, {"": Form})


@pytest.mark.parametrize(
    ("name", "text"), [("a.yaml", "number: 3\nnames: [x]"), ("a.toml", 'number = 3\nnames = ["x"]')]
)
def test_both_kinds_of_file_say_the_same(tmp_path, name, text):
    # some editors put a mark before the text
    (tmp_path / name).write_text("\ufeff" + text, encoding="utf-8")
    assert read(tmp_path / name) == Form(number=3, names=["x"])


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "a.yaml",
            "number: x\nname: 1",
            (
                "a.yaml has 2 mistakes:\n"
                "  line 1, number: .*is 'x'\n"
                "  line 2, name: is no key here. Did you mean"
            ),
        ),
        (
            "a.toml",
            'number = "x"\nname = 1',
            "a.toml has 2 mistakes:\n  number: .*\n  name: is no key here. Did you mean 'names'",
        ),
        ("a.yaml", "names: [a, 1]", "  line 1, number: is missing\n  line 1, names.1: "),
        ("a.yaml", "- 1", r"must hold a form \(`number: 1`\), but holds list"),
        ("a.yaml", "a: [", "a.yaml is not YAML"),
        ("a.yaml", "a: 1\na: 2", "the key 'a' comes twice"),
        (
            "a.yaml",
            "a: !!python/object/apply:os.system [ls]",
            "is not YAML: could not determine a constructor",
        ),
        ("a.toml", "a = ", "a.toml is not TOML"),
    ],
)
def test_mistakes_are_told_with_their_place(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(BadSetting, match=f"(?s){message}"):
        read(tmp_path / name)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(BadFile, match=r"a form was asked for, but .*none\.yaml cannot be read"):
        read(tmp_path / "none.yaml")


def test_the_line_is_that_of_the_deepest_part_there_is(tmp_path):
    _, node = _parse_yaml("a: 1\nb:\n  - x\n  - {c: 2,\n     d: 3}\n", tmp_path)
    assert [
        _line_number(node, loc) for loc in (("a",), ("b", 0), ("b", 1, "d"), ("b", 1, "z"), ("q",))
    ] == [1, 3, 5, 4, 1]
    assert _line_number(None, ("a",)) is None
