import pytest

from graphgauge.core import errors

OTHERS = (errors.GraphgaugeError, errors.GraphgaugeWarning)
TREE = [error for error in vars(errors).values() if isinstance(error, type) and error not in OTHERS]


@pytest.mark.parametrize("error", TREE, ids=lambda error: error.__name__)
def test_every_error_is_ours_and_a_builtin(error):
    assert issubclass(error, errors.GraphgaugeError)
    assert error.__mro__[2].__module__ == "builtins" or error.__mro__[3].__module__ == "builtins"


@pytest.mark.parametrize("error", TREE, ids=lambda error: error.__name__)
def test_the_drawing_of_the_tree_shows_every_error(error):
    assert f" {error.__name__} " in errors.__doc__
    assert f"({error.__bases__[1].__name__})" in errors.__doc__


def test_messages_are_shown_as_written():
    assert str(errors.UnknownName("No metric is called 'x'.")) == "No metric is called 'x'."
