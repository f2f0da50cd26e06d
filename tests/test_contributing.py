"""What CONTRIBUTING.md says of the rooms is what the architecture test checks."""

import re

from test_architecture import FLOORS, ROOT, SRC

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def rooms_of_page():
    """Rooms of the table by their floor, the lowest first."""
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \|", PAGE, re.MULTILINE)
    floors = [set() for _ in range(max(int(floor) for floor, _ in rows))]
    for floor, rooms in rows:
        floors[int(floor) - 1] |= set(re.findall(r"`(\w+)`", rooms))
    return floors


def named_files():
    return set(re.findall(r"\b(?:[a-z_]+/)+[a-z_]+\.py\b", PAGE))


def test_the_table_of_rooms_is_what_imports_are_checked_against():
    assert rooms_of_page() == [set(rooms.split()) for rooms in FLOORS]


def test_every_room_has_a_row():
    rooms = {path.parent.name for path in SRC.glob("*/__init__.py")}
    assert set().union(*rooms_of_page()) == rooms


def test_every_file_that_the_page_names_exists():
    missing = [
        name for name in named_files() if not any((base / name).is_file() for base in (SRC, ROOT))
    ]
    assert len(named_files()) > 25
    assert missing == []
