"""The monitoring page of a really watched model in a browser: quiet, whole at two widths and on
paper, opened by mouse and key.
"""

import pytest
from support.hostile_names import HOSTILE_TEXTS
from support.monitoring_histories import FACTS, drop, made_monitor, weeks
from support.user_networks import write_project

from graphgauge.lifecycle import Project, load_monitored_project
from graphgauge.monitor import Monitor, Plan
from graphgauge.report.monitoring_page import write_monitoring_page

QUICK = {
    "settings": {"trials": [4, 4], "timed": 0, "calls": 3},
    "explainers": ["saliency"],
    "device": "cpu",
}
ATTACK = (
    '<svg xmlns="http://www.w3.org/2000/svg" onload="window.hacked = 1"><script>window.hacked = '
    '1</script><image href="http://127.0.0.1:9/x.png"/></svg>'
)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Of a model that was watched for two weeks, with pictures."""
    folder = tmp_path_factory.mktemp("watched")
    own = load_monitored_project(Project.read(write_project(folder, **QUICK)))
    monitor = Monitor(folder / "m.sqlite", Plan(number=6, thresholds=own.thresholds))
    monitor.take_baseline(own.evaluator, own.explainer, number=8, at=weeks(0))
    monitor.run(own.evaluator, own.explainer, at=weeks(1))
    monitor.run(own.evaluator, own.explainer, at=weeks(2), show=own.show())
    return write_monitoring_page(monitor.history(), folder / "page.html", weeks(2))


@pytest.fixture(scope="module")
def drifted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drifted")
    return write_monitoring_page(
        made_monitor(folder / "m.sqlite", 6, change=drop("edge_ec", 40, 5)).history(),
        folder / "p.html",
        weeks(6),
    )


@pytest.mark.parametrize("name", ["page", "drifted"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_is_quiet_and_fits_its_window(visit, request, name, width):
    own = visit(request.getfixturevalue(name), width)
    for summary in own.page.locator("summary").all()[1:]:
        summary.click()
    own.check_harmless()
    assert own.page.evaluate("document.documentElement.scrollWidth") == width
    too_wide = "e => e.getBoundingClientRect().right > innerWidth + 1"
    assert (
        own.page.evaluate(
            "[...document.querySelectorAll('section, h1, h2, p, figure, "
            f"img')].filter({too_wide}).length"
        )
        == 0
    )


def test_explanations_are_opened_by_mouse_and_key_and_their_pictures_are_drawn(visit, page):
    own = visit(page)
    examples = own.page.locator("details.example")
    assert examples.count() == 4
    first, second = examples.nth(0), examples.nth(1)
    assert first.locator("img").first.is_visible()
    assert "Target: node" in first.inner_text()
    assert not second.locator("img").first.is_visible()
    second.locator("summary").click()
    assert second.locator("img").first.is_visible()
    second.locator("summary").focus()
    own.page.keyboard.press("Enter")
    assert not second.locator("img").first.is_visible()
    sizes = own.page.eval_on_selector_all(
        "details.example img", "images => images.map(i => i.complete && i.naturalWidth)"
    )
    assert len(sizes) == 16
    assert min(sizes) > 100
    own.check_harmless()


def test_what_drifted_comes_first_and_dots_tell_their_run(visit, drifted):
    own = visit(drifted)
    assert own.page.locator("h2").first.inner_text() == "What to do"
    assert own.page.locator(".card.due h3").all_inner_texts() == [
        "Metric drift: Edge effective compactness"
    ]
    figure = own.page.locator("figure:has(h3:text-is('Edge effective compactness'))")
    dots = figure.locator("svg g:has(> title):has(use)").filter(has_text=": mean ")
    assert dots.count() == 6
    assert dots.nth(4).locator("title").text_content().endswith("; metric drift")
    assert dots.nth(3).locator("title").text_content().startswith("run 4, 2026-02-02: mean ")


def test_a_store_that_was_tampered_with_cannot_do_anything_to_the_page(visit, tmp_path):
    example = {
        "end": "worst",
        "target": HOSTILE_TEXTS[0],
        "pertinence": 0.1,
        "missed": [],
        "text": HOSTILE_TEXTS[1],
        "pictures": {"x": ATTACK},
    }
    monitor = made_monitor(tmp_path / "m.sqlite", 1, facts=FACTS, examples=[example])
    own = visit(write_monitoring_page(monitor.history(), tmp_path / "p.html", weeks(1)))
    assert own.page.locator("details.example img").first.is_visible()
    own.check_harmless()
    assert own.page.evaluate("window.hacked") is None
