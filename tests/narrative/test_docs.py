"""The examples of docs/narrative.md are what its code prints."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "narrative.md"


def test_the_page_shows_what_its_code_prints(capsys):
    text = PAGE.read_text(encoding="utf-8")
    code, short = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    room = {"__name__": "page"}
    exec(code, room)
    printed = [
        part.strip("\n") for part in capsys.readouterr().out.split("\n\n\n") if part.strip("\n")
    ]
    assert printed == [
        part.strip("\n") for part in re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    ]
    assert len(printed) == 3
    assert eval(short, room) == "node 0: 3 connections"
