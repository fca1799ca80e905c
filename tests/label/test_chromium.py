"""The page as a person meets it, in headless Chromium."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from debiaspl.label.guide import Guide
from tests.label.made import CLASSES, served, write_photos
from tests.label.process import Labelling
from tests.label.test_standing import learned, waited
from tests.report.chromium import Chromium, Page, needs_chromium

pytestmark = [needs_chromium, pytest.mark.slow]

HOSTILE = '<img src=x onerror="document.title=1">, "quoted"\nsecond line 鳥'


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chromium]:
    with Chromium() as browser:
        yield browser


def press(page: Page, key: str, code: str | None = None, modifiers: int = 0, repeat: bool = False) -> None:
    """One key, as a keyboard sends it, and then whatever it sets off."""
    codes = {" ": "Space", "/": "Slash"}
    code = (
        code or codes.get(key) or (f"Digit{key}" if key.isdecimal() else f"Key{key.upper()}" if len(key) == 1 else key)
    )
    send = {"key": key, "code": code, "modifiers": modifiers}
    text = key if len(key) == 1 and not modifiers else "\r" if key == "Enter" else ""
    page.browser.send("Input.dispatchKeyEvent", page.session, type="keyDown", text=text, autoRepeat=repeat, **send)
    page.browser.send("Input.dispatchKeyEvent", page.session, type="keyUp", **send)
    page.wait_for("!busy")


def opened(chromium: Chromium, url: str, **size: int | bool) -> Page:
    page = chromium.page(url, **size)
    page.wait_for("!busy")
    return page


def text(page: Page, id: str) -> str:
    return page.evaluate(f"document.getElementById('{id}').textContent")


def counts(page: Page) -> list[str]:
    return page.evaluate("[...document.querySelectorAll('#classes .count')].map(cell => cell.firstChild.textContent)")


def name(page: Page) -> str:
    return page.evaluate("current && current.name")


def rows(table: Path) -> list[str]:
    return [row.rpartition(",")[0] for row in table.read_text().splitlines()[1:]]


def test_twenty_labels_by_keys_and_a_server_that_is_killed(tmp_path, chromium):
    photos = write_photos(tmp_path / "photos", 30)
    given: list[str] = []
    with Labelling(photos, "--classes", "china,flower,other", "--encoder", "none") as labelling:
        page = opened(chromium, labelling.url)
        for number in range(20):
            given.append(f"{name(page)},{('china', 'flower', 'other')[number % 3]}")
            press(page, str(1 + number % 3))
        assert text(page, "progress") == "20 of 30 labeled"
        assert counts(page) == ["7", "7", "6"]
        assert page.errors() == []
        assert all(url.startswith((labelling.url, "blob:")) for url in page.requests())
        labelling.end(signal.SIGKILL)
        press(page, "1")
        assert "does not answer any more. Every answer is saved in" in text(page, "alert")
        assert page.evaluate("!document.getElementById('alert').hidden")
        page.close()
    assert rows(photos / "labels.csv") == given


@pytest.fixture
def page(tmp_path, chromium) -> Iterator[Page]:
    photos = write_photos(tmp_path / "photos", 8)
    with served(photos, ("china", "flower", HOSTILE)) as client:
        one = opened(chromium, client.url)
        one.table = photos / "labels.csv"  # type: ignore[attr-defined]
        yield one
        assert one.errors() == []
        one.close()


def test_keys_for_skip_and_undo(page):
    first = name(page)
    press(page, " ")
    second = name(page)
    press(page, "ArrowRight")
    assert rows(page.table) == [f"{first},", f"{second},"]
    assert text(page, "progress") == "0 of 8 labeled, 2 skipped"
    press(page, "z", modifiers=2)
    assert (name(page), rows(page.table)) == (second, [f"{first},"])
    press(page, "ArrowLeft")
    assert (name(page), rows(page.table)) == (first, [])
    assert text(page, "caption") == f"{first} was skipped"
    assert page.evaluate("document.getElementById('undo').disabled")
    press(page, "ArrowLeft")
    assert rows(page.table) == []


def test_keys_that_mean_nothing_here_do_nothing(page):
    first = name(page)
    for key in ("4", "0", "a", "x", "Escape", "Enter", "/"):
        press(page, key)
    press(page, "1", modifiers=2)  # Ctrl+1 is the browser's
    press(page, "1", modifiers=1)
    press(page, "1", repeat=True)  # held down
    assert name(page) == first
    assert not page.table.exists()


def test_keyboards_on_which_digits_need_shift(page):
    first = name(page)
    press(page, "&", code="Digit1")
    press(page, "2", code="Numpad2")
    assert [row.split(",")[1] for row in rows(page.table)] == ["china", "flower"]
    assert rows(page.table)[0].startswith(first)


def test_names_are_text_whatever_they_hold(page):
    press(page, "3")
    assert page.evaluate("document.querySelectorAll('#classes .name')[2].textContent") == HOSTILE
    assert page.evaluate("document.title") != "1"
    assert page.table.read_text().partition("\n")[2] == name_and(HOSTILE, page)


def name_and(label: str, page: Page) -> str:
    last = page.evaluate("state.last.name")
    return f'{last},"{label.replace(chr(34), chr(34) * 2)}",random\n'


def test_buttons_do_the_same_and_give_the_keyboard_back(page):
    for selector in ("#classes li:nth-child(2) button", "#skip", "#undo"):
        box = page.evaluate(f"document.querySelector('{selector}').getBoundingClientRect().toJSON()")
        middle = {
            "x": box["x"] + box["width"] / 2,
            "y": box["y"] + box["height"] / 2,
            "button": "left",
            "clickCount": 1,
        }
        for kind in ("mousePressed", "mouseReleased"):
            page.browser.send("Input.dispatchMouseEvent", page.session, type=kind, **middle)
        page.wait_for("!busy")
        assert page.evaluate("document.activeElement.id") == "stage"
    assert [row.split(",")[1] for row in rows(page.table)] == ["flower"]
    press(page, " ")
    assert [row.split(",")[1] for row in rows(page.table)] == ["flower", ""]


def test_by_tab_and_enter_alone_and_what_is_said(page):
    order = []
    for _ in range(6):
        press(page, "Tab")
        order.append(page.evaluate("document.activeElement.textContent"))
    assert [one[:6] for one in order[:2]] == ["1china", "2flowe"]
    # Nothing to undo, so that button is left out; then the browser itself has its turn.
    assert [order[3], order[5][:6]] == ["SpaceSkip", "1china"]
    press(page, "Enter")
    assert [row.split(",")[1] for row in rows(page.table)] == ["china"]
    assert text(page, "said") == "china."
    assert page.evaluate("document.getElementById('image').alt") == f"{name(page)}, the image to be labeled"
    tree = page.browser.send("Accessibility.getFullAXTree", page.session)["nodes"]
    buttons = [node["name"]["value"] for node in tree if node.get("role", {}).get("value") == "button"]
    assert {"china 1 label", "flower 0 labels", "Skip", "Undo"} <= set(buttons)
    assert all(buttons)


def test_the_end_and_what_was_skipped(page):
    press(page, " ")
    for _ in range(7):
        press(page, "1")
    assert name(page) is None
    assert "Every image was shown" in text(page, "card")
    assert "debiaspl train" not in text(page, "card")  # of one class there is nothing to learn
    page.evaluate("document.querySelector('#card button').click()")
    page.wait_for("!busy && current !== null")
    press(page, "2")
    assert text(page, "card").startswith("Every image has a label8 labels in ")
    assert "Next: debiaspl train" in text(page, "card")
    assert page.evaluate("document.getElementById('bar').getAttribute('aria-valuenow')") == "8"
    press(page, "Backspace")
    assert name(page) is not None
    assert page.evaluate("document.getElementById('card').hidden")


def test_a_file_that_breaks_while_it_waits_is_left_out_and_named(tmp_path, chromium):
    photos = write_photos(tmp_path / "photos", 30)
    with served(photos) as client:
        page = opened(chromium, client.url)
        seen = set()
        coming = page.evaluate("state.upcoming.map(one => one.name)")
        page.wait_for("[...pictures.keys()].length === 6")
        for file in photos.glob("*.jpg"):
            if file.name not in coming:
                file.write_bytes(b"damaged")
        for _ in range(12):
            seen.add(name(page))
            press(page, "1")
            if name(page) is None:
                break
        assert seen == set(coming)
        assert text(page, "notes").startswith("2 classes have no label yet.24 files cannot be labeled")
        assert text(page, "card").startswith("Every image that can be read has a label")
        page.close()


def test_what_the_labels_are_worth_and_a_second_look(tmp_path, chromium, monkeypatch):
    monkeypatch.setattr(Guide, "learn", learned)
    with served(write_photos(tmp_path, 60), encoder="any", features=tmp_path / "features") as client:
        page = opened(chromium, client.url)
        assert page.evaluate("document.getElementById('doubts').hidden")
        for number in range(20):
            press(page, str(1 + (int(name(page)[:3]) + (number == 12)) % 3))
        waited(client, 20)
        page.evaluate("ask('state').then(show)")
        page.wait_for("!document.getElementById('doubts').hidden")
        assert "With 20 labels about" in text(page, "notes")
        page.evaluate("document.getElementById('doubts').open = true")
        page.wait_for("[...document.querySelectorAll('#doubts img')].some((one) => one.naturalWidth > 0)")
        wrong = page.evaluate("state.standing.doubts[0].name")
        page.evaluate("document.querySelector('#doubts button').click()")
        page.wait_for("!busy")
        assert name(page) == wrong
        assert text(page, "caption").startswith(f"{wrong} was ")
        press(page, str(1 + int(wrong[:3]) % 3))
        assert name(page) != wrong
        assert wrong not in page.evaluate("state.standing.doubts.map((one) => one.name)")
        assert [row for row in rows(tmp_path / "labels.csv") if row == f"{wrong},{CLASSES[int(wrong[:3]) % 3]}"]
        assert page.errors() == []
        page.close()


def test_many_classes_have_keys_for_36_and_a_word_for_all(tmp_path, chromium):
    photos = write_photos(tmp_path / "photos", 6)
    classes = tuple(f"class {number}" for number in range(100))
    with served(photos, classes) as client:
        page = opened(chromium, client.url)
        for key in ("0", "a", "Z"):
            press(page, key)
        press(page, "/")
        for letter in "97":
            press(page, letter)
        assert page.evaluate("[...document.querySelectorAll('#classes li')].filter(one => !one.hidden).length") == 1
        press(page, "Enter")
        press(page, "ф", code="KeyB")
        written = [row.split(",")[1] for row in rows(photos / "labels.csv")]
        assert written == ["class 9", "class 10", "class 35", "class 97", "class 11"]
        assert page.evaluate("[...document.querySelectorAll('#classes li')].filter(one => !one.hidden).length") == 100
        assert page.errors() == []
        page.close()


@pytest.mark.parametrize(("width", "height", "dark"), [(1100, 800, False), (1100, 800, True), (390, 800, False)])
def test_it_fits_and_can_be_read(tmp_path, chromium, width, height, dark):
    photos = write_photos(tmp_path / "photos", 4)
    with served(photos) as client:
        page = opened(chromium, client.url, width=width, height=height, dark=dark)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        image = page.evaluate("document.getElementById('image').getBoundingClientRect().height")
        assert image > 300
        if width > 600:
            assert page.evaluate("document.documentElement.scrollHeight <= innerHeight")
        colours = page.evaluate(
            "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
        )
        assert colours == (
            ["rgb(232, 235, 238)", "rgb(20, 24, 29)"] if dark else ["rgb(26, 31, 38)", "rgb(255, 255, 255)"]
        )
        page.close()
