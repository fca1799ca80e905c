"""The pages as a person meets them, in headless Chromium."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from debiaspl.predictions import Raw, predictions_from
from debiaspl.report.audit import audit, audit_page
from debiaspl.report.pages import confusion_order
from debiaspl.report.runs import read_run, runs_in, runs_page
from tests.report import slow
from tests.report.chromium import Page, needs_chromium
from tests.report.made import HOSTILE, Made, made
from tests.report.test_health import MEASURED
from tests.report.test_runs import LOG, begun, start_without_labels

pytestmark = [needs_chromium, pytest.mark.slow]

TEN = made(700, 10)
TEN = replace(TEN, classes=[*TEN.classes[:-1], HOSTILE], names=[f"{HOSTILE}{row}" for row in range(700)])
THOUSAND = made(3000, 1000)
DATA = {10: TEN, 1000: THOUSAND}

ACCURACY = "document.querySelector('#accuracy table')"
TABLE = "document.querySelector('#counts table')"
ROWS = f"[...{TABLE}.tBodies[0].rows].map(row => [...row.cells].map(cell => cell.textContent))"


def audited(data: Made) -> Any:
    fields = {"truth": data.truth, "file_name": data.truth.astype(object)}
    fields["file_name"][:] = data.names
    matrices = {"logits": data.logits}
    return audit(predictions_from(Raw("here", fields, matrices, tuple(data.classes))))


@pytest.fixture(scope="module")
def pages(tmp_path_factory, runs) -> dict[str, str]:
    """Addresses of pages on the disk."""
    folder: Path = tmp_path_factory.mktemp("pages")
    made_pages = {
        "audit 10": audit_page(audited(TEN), "debiaspl audit"),
        "audit 1000": audit_page(audited(THOUSAND)),
        "runs": runs_page([read_run(one) for one in runs_in(runs)]),
        "run": runs_page([read_run(runs / "debiaspl-seed0")]),
        "begun": runs_page([read_run(begun(folder / "begun", LOG[:3]))]),
        "empty": runs_page([read_run(begun(folder / "empty"))]),
        "health": runs_page([read_run(begun(folder / "health", MEASURED))]),
        "start": runs_page([read_run(start_without_labels(folder / "start"))]),
        "start and run": runs_page([read_run(folder / "start"), read_run(runs / "debiaspl-seed0")]),
    }
    for name, text in made_pages.items():
        (folder / f"{name}.html").write_text(text)
    return {name: (folder / f"{name}.html").as_uri() for name in made_pages}


@pytest.fixture(scope="module")
def ten(chromium, pages) -> Page:
    return chromium.page(pages["audit 10"])


@pytest.fixture(scope="module")
def thousand(chromium, pages) -> Page:
    return chromium.page(pages["audit 1000"])


CHARTS = {
    # svg elements, canvases, tables: at least so many on each page.
    "audit 10": (5, 1, 4),
    "audit 1000": (5, 1, 4),
    "runs": (9, 7, 12),
    "run": (8, 3, 8),
    "begun": (3, 1, 4),
    "empty": (0, 0, 1),
    "health": (2, 0, 3),
    "start": (1, 0, 2),
    "start and run": (5, 2, 6),
}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", CHARTS)
def test_pages_open_without_an_error_or_a_question_to_the_network(chromium, pages, name, dark):
    page = chromium.page(pages[name], dark=dark)
    assert page.errors() == []
    assert page.requests() == [pages[name]]
    assert_charts_have_content(page, *CHARTS[name])
    page.close()


def assert_charts_have_content(page: Page, charts: int, canvases: int, tables: int) -> None:
    shapes = page.evaluate(
        "[...document.querySelectorAll('.plot svg')].map(one => one.querySelectorAll('rect, path, circle').length)"
    )
    assert len(shapes) >= charts
    assert all(shapes)
    painted = page.evaluate("""[...document.querySelectorAll('.plot canvas')].map(one => {
        const data = one.getContext('2d').getImageData(0, 0, one.width, one.height).data;
        const seen = new Set();
        for (let place = 0; place < data.length; place += 4) seen.add(data.slice(place, place + 4).join());
        return seen.size;
    })""")
    assert len(painted) >= canvases
    assert all(colours > 3 for colours in painted)
    assert page.evaluate("document.querySelectorAll('table').length") >= tables
    # Every chart has a name for those who cannot see it.
    assert page.evaluate("[...document.querySelectorAll('[role=img]')].every(one => one.getAttribute('aria-label'))")
    broken = "/undefined|NaN|\\[object/.test(document.getElementById('main').innerText)"
    assert not page.evaluate(broken)


@pytest.mark.parametrize("name", ["audit 10", "audit 1000", "runs", "run"])
def test_pages_fit_on_a_phone_and_on_paper(chromium, pages, name, tmp_path):
    page = chromium.page(pages[name], width=390, height=800)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    small = "[...document.querySelectorAll('.plot svg')].every(one => one.getBoundingClientRect().width <= 390)"
    assert page.evaluate(small)
    page.print(tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").stat().st_size > 20_000
    assert page.errors() == []
    page.close()


def test_a_class_that_is_html_stays_text(ten):
    assert ten.evaluate("document.title") == "Audit of here"
    assert ten.evaluate("document.querySelectorAll('main img').length") == 0
    names = [row[0] for row in ten.evaluate(ROWS)]
    assert HOSTILE in names
    assert ten.evaluate("document.querySelector('.images').innerText").count("onerror") > 0


def test_findings_lead_to_what_they_speak_of(ten):
    links = ten.evaluate("[...document.querySelectorAll('.findings a')].map(one => one.getAttribute('href'))")
    assert links == ["#uncertain", "#confusion", "#change"]
    assert all(ten.evaluate(f"!!document.querySelector('{link}')") for link in links)


def test_bars_are_as_long_as_the_counts(ten):
    widths = ten.evaluate("[...document.querySelectorAll('#counts rect.bar')].map(one => +one.getAttribute('width'))")
    counts = sorted(slow.counts(TEN.label.tolist(), 10), reverse=True)
    assert widths == pytest.approx([widths[0] * count / counts[0] for count in counts], abs=0.01)


def test_the_line_of_a_thousand_classes_goes_through_their_counts(thousand):
    path = thousand.evaluate("document.querySelector('#counts .plot path').getAttribute('d')")
    drawn = [tuple(map(float, one.split())) for one in path.replace("M", "").split("L")]
    counts = sorted(slow.counts(THOUSAND.label.tolist(), 1000), reverse=True)
    assert len(drawn) == 1000
    assert max(counts) > 8 * 3  # so the scale is logarithmic, with none at the bottom
    heights = [math.log(max(count, 0.5)) for count in counts]
    low, high = drawn[-1][1], drawn[0][1]
    span = heights[0] - math.log(0.5)
    expected = [low + (high - low) * (height - math.log(0.5)) / span for height in heights]
    assert [y for _, y in drawn] == pytest.approx(expected, abs=0.11)


@pytest.mark.parametrize("size", DATA)
def test_the_table_shows_the_numbers(ten, thousand, size):
    page, data = {10: ten, 1000: thousand}[size], DATA[size]
    label, truth = data.label.tolist(), data.truth.tolist()
    predicted, true = slow.counts(label, size), slow.counts(truth, size)
    rows = page.evaluate(ROWS)
    assert len(rows) == min(size, 25)
    for row in rows:
        number = data.classes.index(row[0])
        share = predicted[number] * size / len(label)
        assert row[1:3] == [f"{predicted[number]:,}", f"{share:.2f} \N{MULTIPLICATION SIGN}"]
        assert row[4] == f"{true[number]:,}"
        for cell, value in (
            (row[5], slow.precision(truth, label, number)),
            (row[6], slow.recall(truth, label, number)),
        ):
            if value is None:
                assert cell == "-"
                continue
            assert float(cell.removesuffix(" %")) == pytest.approx(100 * value, abs=0.0501)


def press(page: Page, name: str, inside: str = "#counts") -> None:
    find = f"[...document.querySelectorAll('{inside} button')].find(one => one.textContent === {json.dumps(name)})"
    page.evaluate(f"{find}.click()")


def test_sorting_by_any_column_both_ways(thousand):
    counts = slow.counts(THOUSAND.label.tolist(), 1000)
    head = "document.querySelectorAll('#counts th[scope=col]')[1].getAttribute('aria-sort')"
    assert thousand.evaluate(head) == "descending"
    press(thousand, "predicted")
    assert thousand.evaluate(head) == "ascending"
    assert [row[1] for row in thousand.evaluate(ROWS)] == [str(count) for count in sorted(counts)[:25]]
    press(thousand, "predicted")
    assert [int(row[1]) for row in thousand.evaluate(ROWS)] == sorted(counts, reverse=True)[:25]
    press(thousand, "class")
    assert [row[0] for row in thousand.evaluate(ROWS)] == [f"class {number}" for number in range(25)]
    press(thousand, "precision")
    values = [row[5] for row in thousand.evaluate(ROWS)]
    assert values[0] == "100.0 %"  # what has no precision comes last
    press(thousand, "predicted")


def search(page: Page, word: str, inside: str = "#counts") -> None:
    page.evaluate(f"""(() => {{
        const field = document.querySelector('{inside} input[type=search]');
        field.value = {json.dumps(word)};
        field.dispatchEvent(new Event('input'));
    }})()""")


def test_search_and_more_rows(thousand):
    search(thousand, "CLASS 77")
    found = [row[0] for row in thousand.evaluate(ROWS)]
    assert sorted(found) == sorted(["class 77", *(f"class 77{digit}" for digit in range(10))])
    status = "document.querySelector('#counts [role=status]').textContent"
    assert "11 of 11 rows" in thousand.evaluate(status)
    search(thousand, "no such class")
    assert thousand.evaluate(ROWS) == []
    search(thousand, "")
    assert thousand.evaluate(status) == "25 of 1,000 rows"
    press(thousand, "Show more")
    assert thousand.evaluate(status) == "125 of 1,000 rows"
    label = "document.querySelector('#counts label').textContent"
    assert thousand.evaluate(label) == "Search classes"


def point(page: Page, column: float, row: float, shown: int) -> str:
    """Move over a cell of the confusion matrix, which is 560 pixels wide and high, and read what is told."""
    said: str = page.evaluate(f"""(() => {{
        const canvas = document.querySelector('#confusion canvas');
        const box = canvas.getBoundingClientRect();
        const at = place => box.width - 561 + (place + 0.5) * 560 / {shown};
        const move = {{ clientX: box.left + at({column}), clientY: box.top + at({row}), bubbles: true }};
        canvas.dispatchEvent(new PointerEvent('pointermove', move));
        return document.querySelector('#confusion .readout').textContent;
    }})()""")
    return said


def test_the_matrix_tells_its_cells(ten):
    matrix = slow.confusion(TEN.truth.tolist(), TEN.label.tolist(), 10)
    order = confusion_order(audited(TEN).cells)
    for row, column in ((0, 0), (2, 5), (9, 1)):
        actual, predicted = order[row], order[column]
        count, total = matrix[actual][predicted], sum(matrix[actual])
        said = point(ten, column, row, 10)
        assert said.startswith(f"'{TEN.classes[actual]}' ")
        assert said.endswith(f"{count} of {total} ({100 * count / total:.1f} %)")
        assert ("recognised" in said) == (row == column)


def test_the_matrix_zooms_to_a_class(thousand):
    order = confusion_order(audited(THOUSAND).cells)
    assert point(thousand, 500, 3, 1000).startswith(f"'class {order[3]}' ")
    field = "document.querySelector('#confusion .tools input')"
    thousand.evaluate(f"{field}.value = 'class 123'; {field}.dispatchEvent(new Event('input'))")
    thousand.wait_for_frames(1)
    place = order.index(123)
    first = min(max(place - 6, 0), 1000 - 12)
    said = point(thousand, place - first, place - first, 12)
    assert said.startswith("'class 123' recognised")
    press(thousand, "Whole", "#confusion")
    assert point(thousand, 500, 3, 1000).startswith(f"'class {order[3]}' ")


def test_two_methods_stand_side_by_side_in_one_order(chromium, pages, runs):
    page = chromium.page(pages["runs"])
    captions = page.evaluate("[...document.querySelectorAll('#confusion figcaption')].map(one => one.textContent)")
    assert captions == ["supervised", "fixmatch", "debiaspl"]
    rows = page.evaluate(f"[...{ACCURACY}.rows].map(row => row.cells[2].textContent)")
    for method, shown in zip(("supervised", "fixmatch", "debiaspl"), rows[1:], strict=True):
        values = [json.loads((runs / f"{method}-seed{seed}/results.json").read_text())["accuracy"] for seed in (0, 1)]
        assert shown.startswith(f"{100 * sum(values) / 2:.1f} ± ")
    signs = page.evaluate(f"{ACCURACY}.rows[2].cells[3].textContent").replace("\N{MINUS SIGN}", "-")
    assert re.fullmatch(r"[+-][\d.]+ \([+-][\d.]+, [+-][\d.]+\)", signs), "two seeds: both, and no interval"
    assert page.evaluate("document.querySelectorAll('#accuracy circle').length") == 6
    assert "supervised" not in chromium.page(pages["start and run"]).evaluate(f"{ACCURACY}.textContent")
    choose = "document.querySelector('#pseudo select')"
    page.evaluate(f"{choose}.value = '1'; {choose}.dispatchEvent(new Event('change'))")
    titles = page.evaluate("[...document.querySelectorAll('#pseudo .pair figcaption')].map(one => one.textContent)")
    assert "Pseudo-labels of fixmatch, seed 1: a row is a class" in titles
    assert "Pseudo-labels of debiaspl, seed 0: a row is a class" in titles
    assert page.errors() == []
    page.close()
