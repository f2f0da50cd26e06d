"""The page in a browser: quiet, sortable by mouse and keyboard, with a working picker, at two
widths; hostile names stay names.
"""

import json

import pytest
import torch
from support.chosen_results import good
from support.chosen_results import run as made
from support.hostile_names import HOSTILE
from support.report_results import SMALL, by_hand, several, shown
from support.small_networks import build
from torch_geometric.data import Data
from torch_geometric.nn import GCN

import graphgauge as gg
from graphgauge.report.report_builder import build_report
from graphgauge.report.sanitize import tidy_names

BOARD = "#numbers table.board"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return build_report(by_hand()).save(tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture(scope="module")
def pictured(tmp_path_factory):
    return shown().save(tmp_path_factory.mktemp("page") / "pictured.html")


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    return build_report(several(["one", "two"], n=6)).save(
        tmp_path_factory.mktemp("page") / "tasks.html"
    )


@pytest.mark.parametrize("name", ["page", "pictured", "tasks"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_quiet_and_fits_its_window(visit, request, name, width, scheme):
    own = visit(request.getfixturevalue(name), width, color_scheme=scheme)
    own.check_quiet()
    assert own.page.evaluate("document.documentElement.scrollWidth") == width
    too_wide = "e => e.getBoundingClientRect().right > innerWidth + 1"
    assert (
        own.page.evaluate(
            "[...document.querySelectorAll('section, h1, h2, p, "
            f"figure')].filter({too_wide}).length"
        )
        == 0
    )


def column(own, number, table=BOARD):
    return own.page.eval_on_selector_all(
        f"{table} tbody tr", f"rows => rows.map(row => row.cells[{number}].dataset.value)"
    )


def names(own, table=BOARD):
    return own.page.eval_on_selector_all(
        f"{table} tbody tr bdi", "cells => cells.map(cell => cell.textContent)"
    )


def test_tables_sort_by_a_click_and_by_the_keyboard(visit, page):
    own = visit(page)
    button = own.page.locator(f"{BOARD} thead button").nth(2)
    button.click()
    found = [float(value) for value in column(own, 2)]
    assert found == sorted(found, reverse=True)
    assert own.page.locator(f"{BOARD} thead th").nth(2).get_attribute("aria-sort") == "descending"
    button.focus()
    own.page.keyboard.press("Enter")
    assert [float(value) for value in column(own, 2)] == sorted(found)
    own.page.locator(f"{BOARD} thead button").nth(0).focus()
    own.page.keyboard.press("Space")
    assert names(own) == ["lrp", "random", "saliency"]
    assert own.page.locator(f"{BOARD} thead th").nth(2).get_attribute("aria-sort") is None
    own.check_quiet()


def test_numbers_sort_as_numbers_and_missing_ones_stay_last(visit, tmp_path):
    numbers = {
        "a": good(edge_ec=9),
        "b": good(edge_ec=10),
        "c": good(edge_ec="empty"),
        "d": good(edge_ec=100),
    }
    own = visit(build_report(made(numbers, n=3)).save(tmp_path / "gaps.html"))
    button = own.page.locator(f"{BOARD} thead button", has_text="Edge EC")
    button.click()
    assert names(own) == ["a", "b", "d", "c"]
    button.click()
    assert names(own) == ["d", "b", "a", "c"]


def picked(own):
    return own.page.eval_on_selector_all(
        "#picked tr", "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )


def test_the_picker_shows_the_numbers_of_the_chosen_target(visit, page):
    results, own = by_hand(), visit(page)
    assert own.page.locator("#pick-target option").count() == 60
    own.page.select_option("#pick-target", label="node 7")
    value = {(row.explainer, row.metric): row.cell.value for row in results.rows if row.target == 7}
    rows = {row[0]: row[1:] for row in picked(own)}
    for name in ("lrp", "saliency", "random"):
        assert rows[name][1] == f"{value[name, 'edge_pertinence']:.2f}"
        assert rows[name][6] == "–"  # times were measured on five targets
    own.page.locator("#pick-after").click()
    assert own.page.locator("#pick-target").input_value() == "8"
    own.page.locator("#pick-before").click()
    own.page.locator("#pick-before").click()
    assert own.page.locator("#pick-target").input_value() == "6"
    own.page.locator("#picker thead button").nth(2).click()
    found = [float(value) for value in column(own, 2, "#picker table")]
    assert found == sorted(found, reverse=True)
    own.check_quiet()


def test_the_picker_changes_between_tasks(visit, tasks):
    own = visit(tasks)
    assert own.page.locator("#pick-group option").all_text_contents() == ["one", "two"]
    own.page.select_option("#pick-group", label="two")
    assert len(picked(own)) == 3
    own.check_quiet()


def test_without_scripts_everything_but_the_picker_can_be_read(visit, page):
    own = visit(page, java_script_enabled=False)
    assert own.page.locator("#no-picker").is_visible()
    assert not own.page.locator("#picker").is_visible()
    assert own.page.locator(f"{BOARD} tbody tr").count() == 3


def test_everything_is_open_on_paper(visit, page):
    own = visit(page)
    own.page.emulate_media(media="print")
    assert not own.page.locator("nav").is_visible()
    own.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert own.page.locator("details:not([open])").count() == 0
    own.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert own.page.locator("details[open]").count() == 0


# --- hostile names --------------------------------------------------------------------------------


def hostile_results():
    """A network with 60 nodes, 60 features and 60 classes, two explainers and a data set, all with
    hostile names.
    """
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(60, (2, 150), generator=generator)
    data = Data(
        x=4 * torch.randn(60, 60, generator=generator), edge_index=edges[:, edges[0] != edges[1]]
    )
    model = gg.NodeClassificationModel(build(GCN, 60, 16, 2, 60), data, output="logits")
    evaluator = gg.Evaluator(model, task=HOSTILE[1], name=HOSTILE[5], **SMALL)
    # the longest name, too
    return evaluator.compare(
        {HOSTILE[0]: gg.InputXGradient(), HOSTILE[2]: gg.Saliency()}, [*range(0, 60, 6), 58]
    )


def check_harmless(own):
    """Nothing ran, nothing came in, nothing was added to the page."""
    own.check_quiet()
    assert own.page.evaluate("window.hacked") is None
    assert own.page.locator("script").count() == 2
    assert (
        own.page.locator(
            "img, iframe, object, embed, base, link, form, input, textarea, a:not([href^='#'])"
        ).count()
        == 0
    )
    handlers = (
        "all => all.flatMap(e => [...e.attributes]).filter(a => a.name.startsWith('on')).length"
    )
    assert own.page.eval_on_selector_all("*", handlers) == 0
    assert (
        own.page.evaluate("document.documentElement.scrollWidth") == own.page.viewport_size["width"]
    )


@pytest.fixture(scope="module")
def hostile_page(tmp_path_factory):
    results = made(
        {name: good(edge_ec=3 + k) for k, name in enumerate(HOSTILE)},
        n=1,
        task=HOSTILE[1],
        model=HOSTILE[4],
    )
    folder = tmp_path_factory.mktemp("hostile")
    return build_report(results, title=HOSTILE[7], run=folder / HOSTILE[0].replace("/", "")).save(
        folder / "x.html"
    )


@pytest.mark.parametrize("width", [1280, 390])
def test_hostile_explainers_stay_names(visit, hostile_page, width):
    own = visit(hostile_page, width)
    assert sorted(names(own)) == sorted(tidy_names(HOSTILE).values())
    assert sorted(row[0] for row in picked(own)) == sorted(tidy_names(HOSTILE).values())
    own.page.locator(f"{BOARD} thead button").nth(0).click()
    check_harmless(own)


@pytest.fixture(scope="module")
def hostile_picture(tmp_path_factory):
    called = gg.Names(
        features=HOSTILE,
        classes=HOSTILE,
        nodes=HOSTILE,
        unit=HOSTILE[3],
        groups={HOSTILE[4]: [1, 2, 3]},
    )
    file = (
        tmp_path_factory.mktemp("hostile") / "<img src=x onerror=window.hacked=1>'\" {{ 7*7 }}.html"
    )
    return build_report(hostile_results(), names=called, title=HOSTILE[8]).save(file)


@pytest.mark.parametrize("width", [1280, 390])
def test_hostile_features_classes_and_nodes_stay_names(visit, hostile_picture, width):
    own = visit(hostile_picture, width)
    assert own.page.locator(".paper svg").count() > 0
    assert "49" not in own.page.locator("h1").text_content()
    targets = own.page.locator("#pick-target option").all_text_contents()
    assert targets[0] == f"node 0 ({HOSTILE[0]})"
    check_harmless(own)
    json.loads(own.page.locator("#data").text_content())
