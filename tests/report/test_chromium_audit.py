"""Charts of an audit at the edges: few classes, few images, no change, another width."""

from pathlib import Path

import numpy as np
import pytest

from debiaspl.predictions import Raw, predictions_from
from debiaspl.report.audit import audit, audit_page
from debiaspl.report.audit.measures import THRESHOLDS
from tests.report.chromium import Chromium, Page, needs_chromium
from tests.report.made import made
from tests.report.test_audit import audited

pytestmark = [needs_chromium, pytest.mark.slow]

TEN, THOUSAND = made(700, 10), made(3000, 1000)


def opened(chromium: Chromium, folder: Path, text: str) -> Page:
    (folder / "page.html").write_text(text)
    return chromium.page((folder / "page.html").as_uri())


def test_a_page_that_changes_its_width_draws_again_without_an_error(chromium, tmp_path):
    page = opened(chromium, tmp_path, audit_page(audited(TEN)))
    for width in (700, 390, 1000):
        page.resize(width)
        drawn = page.evaluate(
            "[...document.querySelectorAll('.plot svg')].map(one => [one.parentNode.clientWidth, one.clientWidth])"
        )
        assert all(abs(room - taken) <= 1 for room, taken in drawn)
    assert page.errors() == []
    page.close()


@pytest.mark.parametrize("shares", [(50, 50, 50), (48, 50, 52), (30, 50, 70), (1, 50, 99), (1, 10, 4000)])
def test_points_of_few_classes_lie_inside_a_scale_with_two_numbers(chromium, tmp_path, shares):
    label = np.repeat(np.arange(3), shares)
    truth = label.copy()
    truth[:1] = 2  # precision and recall of 0 and of 1 lie at the ends too
    text = audit_page(audit(predictions_from(Raw("here", {"label": label, "truth": truth}))))
    page = opened(chromium, tmp_path, text)
    charts = page.evaluate("""[...document.querySelectorAll('#truth .plot svg')].map(drawing => {
        const box = one => (({ left, right, top, bottom }) => [left, right, top, bottom])(one.getBoundingClientRect());
        const grid = [...drawing.querySelectorAll('line.grid')].map(box);
        const words = [...drawing.querySelectorAll('text[text-anchor=middle]')].map(one => one.textContent);
        const marks = [...drawing.querySelectorAll('circle, path')].map(box);
        return { grid, ticks: words.slice(0, -1), all: box(drawing), marks };
    })""")
    assert len(charts) == 2
    for chart in charts:
        assert len(chart["ticks"]) >= 2
        assert all(tick.strip("0.,")[:1] in ("1", "2", "5") for tick in chart["ticks"])
        left, right = chart["grid"][0][:2]
        top, bottom = chart["all"][2] + 22, chart["all"][3] - 36
        assert chart["marks"]
        for mark in chart["marks"]:
            assert left < mark[0] < mark[1] < right
            assert top < mark[2] < mark[3] < bottom
    page.close()


def test_thresholds_are_drawn_by_what_stays_meaningful(chromium, tmp_path):
    """Of a thousand classes nothing is drawn where fewer than a thousand images are kept."""
    thousand = opened(chromium, tmp_path, audit_page(audited(THOUSAND)))
    kept = [int((THOUSAND.confidence >= threshold).sum()) for threshold in THRESHOLDS]
    path = thousand.evaluate("document.querySelector('#thresholds .plot path').getAttribute('d')")
    assert len(path.split("L")) == sum(count >= 1000 for count in kept) < len(kept)
