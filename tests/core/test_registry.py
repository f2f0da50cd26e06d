import pytest

from graphgauge.core.errors import UnknownName
from graphgauge.core.registry import import_object, lookup

TABLE = {"saliency": 1, "deconvolution": 2}


def test_known_names_are_found():
    assert lookup(TABLE, "saliency", "explainer") == 1


def test_a_near_miss_gets_a_suggestion():
    with pytest.raises(UnknownName, match="Did you mean 'saliency'"):
        lookup(TABLE, "salency", "explainer")


def test_a_far_miss_gets_the_list():
    with pytest.raises(
        UnknownName, match=r"No explainer is called 'zzz'\. Known: deconvolution, saliency\."
    ):
        lookup(TABLE, "zzz", "explainer")


def test_an_empty_table_says_so():
    with pytest.raises(UnknownName, match="Known: none"):
        lookup({}, "x", "metric")


def test_an_object_is_imported_from_its_address():
    assert import_object("collections:OrderedDict")([("a", 1)]) == {"a": 1}
    with pytest.raises(ModuleNotFoundError):
        import_object("graphgauge.no_such_room:draw")
