"""The code of docs/pictures.md draws what the page says."""

import re
from html import unescape
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot  # so that mpl.pyplot is there
import torch
from support.drawings import arrows, texts

from graphgauge.plots import svg_of

mpl.use("Agg")
DOCS = Path(__file__).parents[2] / "docs"


def test_the_code_of_the_page_draws_its_picture():
    room = {"__name__": "page"}
    with torch.random.fork_rng():
        for code in re.findall(
            r"```python\n(.*?)```", (DOCS / "pictures.md").read_text(encoding="utf-8"), re.DOTALL
        ):
            exec(code, room)
    picture = room["picture"]
    stored = unescape((DOCS / "pictures" / "explanation.svg").read_text(encoding="utf-8"))
    assert len(stored) < 100_000
    assert len(arrows(picture)) == 20
    assert all(
        text in stored
        for text in (*texts(picture), picture.get_title(), *picture.get_xlabel().split("\n"))
    )
    assert svg_of(picture.figure).count("<text") == stored.count("<text")
    mpl.pyplot.close("all")
