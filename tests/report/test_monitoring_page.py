"""The monitoring page: everything on it, nothing from outside, nothing that runs."""

import base64
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from support.hostile_names import HOSTILE_TEXTS
from support.monitoring_histories import FACTS, drop, made_monitor, weeks

from graphgauge.core.errors import BadFile
from graphgauge.monitor import History, ValidationRecord
from graphgauge.plots import build_charts
from graphgauge.report.monitoring_page import _monitoring_html, write_monitoring_page


class Seen(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.words = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.words.append(data)


PICTURES = {
    "The edges that matter": (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><path d="M0 0H9"/></svg>'
    )
}
EXAMPLE = {
    "end": "worst",
    "target": "node 3",
    "pertinence": 0.25,
    "missed": ["edge pertinence"],
    "text": "One.\n\nTwo.",
    "pictures": PICTURES,
}


@pytest.fixture(scope="module")
def monitor(tmp_path_factory):
    return made_monitor(
        tmp_path_factory.mktemp("m") / "m.sqlite",
        6,
        change=drop("edge_ec", 40, 5),
        examples=[EXAMPLE],
    )


def test_the_page_says_what_is_due_and_what_to_do(monitor):
    text = _monitoring_html(monitor.history(), weeks(6))
    assert "Metric drift: <bdi>Edge effective compactness</bdi>" in text
    assert "if the new level is accepted, take a new baseline." in text
    assert "since 2026-02-09, 2 times, last on 2026-02-16" in text
    raised = re.findall(r"<title>run (\d), [^<]*; metric drift</title>", text)
    assert raised == ["5", "6", "5", "6"]  # the two runs that raised it, quartiles and dot each
    assert _monitoring_html(monitor.history(), weeks(6)) == text


def test_the_page_fetches_nothing_and_runs_nothing(monitor):
    page = Seen(_monitoring_html(monitor.history(), weeks(6)))
    assert not {"script", "link", "iframe", "object", "form", "base"} & set(page.tags)
    named = [
        value
        for name, value in page.attributes
        if name in ("src", "href", "action") or name.startswith("on")
    ]
    assert [value for value in named if not value.startswith("data:image/svg+xml;base64,")] == []
    assert len(named) == len(PICTURES)
    assert any("default-src 'none'" in str(value) for _, value in page.attributes)
    assert not re.search(r"url\(|@import|https?:", _monitoring_html(monitor.history(), weeks(6)))


def test_the_latest_explanations_are_told_and_drawn(monitor):
    text = _monitoring_html(monitor.history(), weeks(6))
    assert "<bdi>node 3</bdi>: lowest pertinence, 0.25" in text
    assert "1 threshold missed" in text
    assert "<p><bdi>One.</bdi></p><p><bdi>Two.</bdi></p>" in text
    (picture,) = re.findall(
        r'src="data:image/svg\+xml;base64,([^"]+)" alt="The edges that matter, node 3"', text
    )
    assert base64.b64decode(picture).decode() == PICTURES["The edges that matter"]


def test_hostile_names_stay_text(tmp_path):
    facts = replace(
        FACTS, explainer=HOSTILE_TEXTS[0], features=(*HOSTILE_TEXTS, *FACTS.features[6:])
    )
    example = {
        **EXAMPLE,
        "target": HOSTILE_TEXTS[0],
        "text": HOSTILE_TEXTS[0],
        "pictures": {HOSTILE_TEXTS[1]: HOSTILE_TEXTS[0]},
    }
    signed = ValidationRecord(
        weeks(0), "lrp", decision=HOSTILE_TEXTS[0], signed_by=HOSTILE_TEXTS[0]
    )
    monitor = made_monitor(
        tmp_path / "m.sqlite", 2, facts=facts, examples=[example], validated=signed
    )
    for text in HOSTILE_TEXTS:
        monitor.trigger(text, text, weeks(2))
    first = Seen(_monitoring_html(monitor.history(), weeks(2)))
    monitor.settle("m1", HOSTILE_TEXTS[1])
    page = Seen(_monitoring_html(monitor.history(), weeks(2)))
    for found in (first, page):
        assert not {"script", "b"} & set(found.tags)
        assert found.tags.count("img") == 1  # of the example
        assert not [name for name, _ in found.attributes if name.startswith("on")]
        assert "49" not in found.words
    whole = "".join(first.words)
    assert all(text in whole for text in HOSTILE_TEXTS[:5])
    assert "\u202e" not in whole


def test_every_run_that_raised_a_trigger_is_marked_in_every_chart(tmp_path):
    def shifted(number, sample):
        return replace(sample, data=sample.data + 9.0) if number == 2 else sample

    made = made_monitor(tmp_path / "m.sqlite", 3, change=shifted)
    for own in build_charts(made.history()):
        marked = [point.number for point in own.points if point.all_triggers]
        assert marked == [2]
        assert own.points[1].all_triggers == ("data shift",)
        assert own.description.endswith("; 1 of the runs raised a trigger")
    text = _monitoring_html(made.history(), weeks(3))
    words = "<title>run 2, 2026-01-19 raised: data shift</title>"
    assert text.count(words) == 2 * len(build_charts(made.history()))  # a line and a triangle each


def test_a_mean_outside_the_band_without_drift_is_said(tmp_path):
    """The band is that of a mean; rank tests may see nothing where one value is huge."""

    def outlier(number, sample):
        values = sample.values["edge_ec"].copy()
        values[:2] = 4000.0
        return (
            replace(sample, values={**sample.values, "edge_ec": values}) if number == 2 else sample
        )

    made = made_monitor(tmp_path / "m.sqlite", 2, change=outlier)
    (point,) = [own.points[-1] for own in build_charts(made.history()) if own.metric == "edge_ec"]
    assert (point.is_outside, point.triggers) == (True, ())
    assert point.description.endswith("; the mean is outside the band, but no test calls it drift")
    text = _monitoring_html(made.history(), weeks(2))
    assert (
        '<span class="good">none</span> <span class="near">(the mean is outside the band, but '
        "no test calls it drift)"
    ) in text
    assert '"num">-0.00' not in text


def test_a_store_without_runs_or_baseline_has_a_page_too(tmp_path):
    assert "there is no baseline" in _monitoring_html(History((), (), ()), weeks(0))
    made = made_monitor(tmp_path / "m.sqlite")
    assert "no run was held against the baseline yet" in _monitoring_html(made.history(), weeks(0))


def test_the_checklist_shows_what_monitoring_knows(monitor):
    text = _monitoring_html(monitor.history(), weeks(6))
    page = "".join(Seen(text).words)
    assert (
        "(open: a validation needs 100 targets, and no decision is kept with the baseline; "
        "the 150 of the baseline are"
    ) in page
    assert "(done: 2 of 2 means meet their threshold in the run of 2026-02-16)" in page
    assert "(open: for the owner to show)" in page


def test_a_page_is_written_whole_or_not_at_all(tmp_path, monitor):
    assert (
        write_monitoring_page(monitor.history(), tmp_path / "p.html", weeks(6))
        .read_text()
        .startswith("<!DOCTYPE html>")
    )
    with pytest.raises(BadFile, match="could not be written"):
        write_monitoring_page(monitor.history(), tmp_path / "none" / "p.html", weeks(6))
    assert [path.name for path in tmp_path.iterdir()] == ["p.html"]
