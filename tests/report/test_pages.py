"""The parts of a page, before any browser."""

import base64
import hashlib
import html
import re
from pathlib import Path

import numpy as np
import pytest

from debiaspl.predictions import Raw, predictions_from
from debiaspl.report.audit import audit, audit_page
from debiaspl.report.pages import build_page, embedded, rounded, short_name

FOLDER = Path(build_page.__code__.co_filename).parent


def test_values_that_are_no_json_are_refused():
    with pytest.raises(ValueError, match="not JSON compliant"):
        embedded({"x": float("nan")})


def test_the_policy_allows_this_script_and_this_style_and_nothing_else():
    page = build_page("<b>&", {"kind": "audit"})
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1])
    assert "default-src 'none'" in policy
    assert "connect-src 'none'" in policy
    assert "unsafe" not in policy
    script = page.rpartition("<script>")[2].partition("</script>")[0]
    style = page.partition("<style>")[2].partition("</style>")[0]
    for text in (script, style):
        assert "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy
    assert "<title>&lt;b&gt;&amp;</title>" in page


def test_marks_inside_values_are_left_alone():
    page = build_page("$script", {"name": "$style ${values}"})
    assert page.count("<style>") == 1
    assert '"name":"$style ${values}"' in page


def test_nothing_points_to_the_network():
    for path in FOLDER.iterdir():
        if path.suffix in (".js", ".css", ".html"):
            text = path.read_text().replace("http://www.w3.org/2000/svg", "")
            assert "//" not in re.sub(r"(^|\s)//.*", "", text), path.name
            assert "innerHTML" not in text, path.name
            assert "url(" not in text, path.name


def test_no_script_redefines_a_function_of_another():
    names = [
        name
        for path in FOLDER.glob("*.js")
        for name in re.findall(r"^(?:async )?(?:function|const|let) (\w+)", path.read_text(), re.MULTILINE)
    ]
    assert len(set(names)) == len(names) > 50
    page = build_page("t", {})
    assert all(path.read_text() in page for path in FOLDER.glob("*.js"))


def test_rounding_and_long_names():
    assert rounded([0.123456789, 3, None, float("inf")]) == [0.123457, 3, None, None]
    assert short_name("x" * 500) == "x" * 119 + "…"


def test_a_page_of_many_images_and_classes_stays_small():
    """100,000 images of 1,000 classes with long names, nearly all mistaken in their own way."""
    random = np.random.default_rng(0)
    raw = Raw(
        "here",
        {
            "label": random.integers(0, 1000, 100_000),
            "truth": random.integers(0, 1000, 100_000),
            "confidence": random.random(100_000),
            "file_name": np.array([f"{'x' * 60}{row}.jpg" for row in range(100_000)]),
        },
        classes=tuple(f"{number} " + "long name " * 10 for number in range(1000)),
    )
    assert len(audit_page(audit(predictions_from(raw))).encode()) < 3_000_000
