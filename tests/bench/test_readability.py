"""The measures of readability count what they say, on a small package whose numbers are known."""

import pytest
from readability import Measure, count_references, read_modules, repeated_names, report

FILES = {
    "src/graphgauge/__init__.py": "",
    "src/graphgauge/room/__init__.py": (
        "from graphgauge.room.first import Sheet, mean_ranks, told\n"
    ),
    "src/graphgauge/room/first.py": '''
from typing import Any

LIMIT = 3

class Sheet:
    def fill(self, rows: int, columns: "Any", depth: int) -> None:
        """Fill it.

        Args:
            rows: How many.
            columns: Of what.
            depth: How deep.
        """

def told(value: Any) -> int:
    return _hidden(value) + _hidden(value)

def _hidden(value: int) -> int:
    return value

def mean_ranks(first: int, second: int, third: int) -> int:
    """The ranks."""
    return first
''',
    "src/graphgauge/room/second.py": """
from graphgauge.room import told as said
from graphgauge.room.first import mean_ranks

def lines() -> int:
    return said(1) + mean_ranks(1, 2)
""",
    "docs/page.md": "short\n" + 101 * "x" + "\n",
}


@pytest.fixture
def checkout(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_every_measure_of_a_small_package(checkout):
    text = report(checkout, with_names=True)
    assert "| private module-level names | 1 of 5 | 20.0 % |" in text
    assert "| module functions of one word | 3 of 4 | 75.0 % |" in text
    assert "| functions with Any in the signature | 2 of 5 | 40.0 % |" in text
    assert (
        "| exported functions of three or more parameters without Args | 1 of 2 | 50.0 % |" in text
    )
    assert "- src/graphgauge/room/first.py:mean_ranks" in text.splitlines()
    assert "| lines over 100 columns in docs | 1 | |" in text
    assert "- docs/page.md:2" in text.splitlines()


def test_references_follow_aliases_and_rooms_and_do_not_count_imports(checkout):
    count = count_references(read_modules(checkout))
    assert count["graphgauge.room.first", "told"] == 1
    assert count["graphgauge.room.first", "mean_ranks"] == 1
    assert count["graphgauge.room.first", "_hidden"] == 2
    assert count["graphgauge.room.second", "lines"] == 0


def test_a_name_that_four_files_define_is_listed_whether_private_or_not(checkout):
    for number, name in enumerate(["told", "_told", "told"]):
        path = checkout / f"src/graphgauge/room/more_{number}.py"
        path.write_text(f"def {name}():\n    return 1\n")
    assert len(repeated_names(read_modules(checkout))["told"]) == 4


def test_nothing_to_measure_has_no_share():
    assert Measure("private", 0, 0).as_row() == "| private | 0 of 0 |  |"
