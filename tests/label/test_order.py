"""Which images come first."""

import threading
import time

import numpy as np
import pytest
from PIL import Image

from debiaspl.label import order as order_module
from debiaspl.label.order import Order
from debiaspl.label.spread import DRAWN, Spread, sketch


def wait_until(condition) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_sketch_holds_colour_contrast_and_detail():
    pixels = np.random.default_rng(0).integers(0, 256, (3, 8, 8), dtype=np.uint8)
    image = [[[pixels[c][y][x] / 255 for x in range(8)] for y in range(8)] for c in range(3)]
    means = [sum(map(sum, plane)) / 64 for plane in image]
    spreads = [
        (sum((value - mean) ** 2 for row in plane for value in row) / 64) ** 0.5
        for plane, mean in zip(image, means, strict=True)
    ]
    grey = [[sum(image[c][y][x] for c in range(3)) / 3 for x in range(8)] for y in range(8)]
    down = sum(abs(grey[y + 1][x] - grey[y][x]) for y in range(7) for x in range(8)) / 56
    across = sum(abs(grey[y][x + 1] - grey[y][x]) for y in range(8) for x in range(7)) / 56
    expected = [*means, *(np.log(0.01 + value) for value in (*spreads, down + across))]
    np.testing.assert_allclose(sketch(pixels), expected, rtol=1e-5)


def test_the_pick_is_the_farthest_of_those_drawn():
    """Against the same rule with plain loops, and the same draws."""
    random = np.random.default_rng(5)
    made = {key: random.normal(size=7).astype(np.float32) for key in range(30)}
    spread, draws = Spread(seed=3), np.random.default_rng(3)
    for key, one in made.items():
        spread.add(key, one)
    keys, centres = list(made), []
    for _ in range(30):
        scale = np.std([made[key] for key in keys], axis=0) + 1e-6
        drawn = [keys[place] for place in draws.integers(len(keys), size=DRAWN)]
        far = [min((sum(((made[key] - c) / scale) ** 2) for c in centres), default=np.inf) for key in drawn]
        expected = drawn[int(np.argmax(far))]
        assert spread.pick() == expected
        centres.append(made[expected])
        place = keys.index(expected)
        keys[place] = keys[-1]
        keys.pop()
    assert spread.pick() is None


def test_what_is_unlike_comes_before_copies():
    """990 images alike and ten other kinds: chance would need several hundred picks to meet them all."""
    random = np.random.default_rng(0)
    needed = []
    for seed in range(10):
        spread = Spread(seed)
        for key in range(1000):
            kind = key if key < 50 else 50
            spread.add(key, random.normal(0, 0.01, 7).astype(np.float32) + np.float32(kind % 10 if key < 50 else 20))
        met: set[int] = set()
        picks = 0
        while len(met) < 11:
            key = spread.pick()
            assert key is not None
            met.add(key % 10 if key < 50 else 10)
            picks += 1
        needed.append(picks)
    chance = 1000 / 5 * sum(1 / n for n in range(1, 11))
    assert np.mean(needed) < chance / 2


@pytest.fixture
def colours(tmp_path):
    """40 red images, 2 green ones and a broken file."""
    for number in range(40):
        Image.new("RGB", (9, 9), (200 + number % 7, 0, 0)).save(tmp_path / f"{number:02d}.png")
    for number in (40, 41):
        Image.new("RGB", (9, 9), (0, 200, 0)).save(tmp_path / f"{number}.png")
    (tmp_path / "42.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    return tmp_path, tuple(f"{number:02d}.png" for number in range(43))


@pytest.fixture
def begun():
    """Start an order that is ended with the test."""
    running: list[Order] = []

    def start(order: Order, guide=None) -> Order:
        running.append(order)
        order.start(guide)
        return order

    yield start
    for order in running:
        order.stop()
        assert not any(thread.is_alive() for thread in order._threads)


def test_every_image_comes_once_and_what_cannot_be_read_is_named(colours, begun):
    root, files = colours
    order = begun(Order(root, files, answered=[0, 1]))
    shown = []
    while ahead := order.upcoming(6):
        assert order.upcoming(6)[: len(ahead)] == ahead
        if ahead[0] == 42:  # as the page does, if it comes to it before the thread
            order.unreadable_now(42, "damaged")
            continue
        shown.append(ahead[0])
        order.answered(ahead[0])
    assert sorted(shown) == list(range(2, 42))
    assert list(order.unreadable) == [42]


def test_undone_comes_first_and_skipped_comes_last(colours, begun):
    root, files = colours
    order = begun(Order(root, files, answered=[]))
    first, second = order.upcoming(2)
    order.answered(first)
    order.answered(second)
    assert first not in order.upcoming(6)
    order.put_first(first)
    assert order.upcoming(6)[0] == first
    order.answered(first)
    order.put_last([first, second])
    rest = []
    while ahead := order.upcoming(1):
        rest.append(ahead[0])
        order.answered(ahead[0])
    assert rest[-2:] == [first, second]
    assert len(set(rest)) == len(rest)


def test_the_first_image_does_not_wait_for_the_others(colours, begun, monkeypatch):
    root, files = colours
    gate, real = threading.Event(), order_module.decode

    def slow(path, size):
        gate.wait(20)
        return real(path, size)

    monkeypatch.setattr(order_module, "decode", slow)
    order = begun(Order(root, files, answered=[]))
    assert len(order.upcoming(3)) == 3
    assert not gate.is_set()
    assert len(order._spread) == 0
    gate.set()


def test_of_a_large_folder_a_part_is_read_at_a_time(colours, begun, monkeypatch):
    root, files = colours
    monkeypatch.setattr(order_module, "MOST", 10)
    order = begun(Order(root, files[:42], answered=[]))
    wait_until(lambda: len(order._spread) == 10)
    time.sleep(0.1)
    assert len(order._spread) == 10
    shown = set()
    while ahead := order.upcoming(1):
        shown.add(ahead[0])
        order.answered(ahead[0])
    assert shown == set(range(42))


def test_a_guide_is_followed_as_soon_as_it_knows_and_asked_again_when_it_is_used_up(colours, begun):
    root, files = colours
    gate, asked = threading.Event(), []

    def guide(answered):
        gate.wait(20)
        asked.append(set(answered))
        return [number for number in (7, 8, 9, 10, 11, 12) if number not in answered][:3]

    order = begun(Order(root, files, answered=[]), guide)
    before = order.upcoming(6)
    gate.set()
    wait_until(lambda: order.upcoming(6) != before)
    after = order.upcoming(6)
    named = [number for number in (7, 8, 9, 10, 11, 12) if number not in before[:2]][:3]
    assert after[:2] == before[:2]
    assert [number for number in after[2:] if number in named] == after[2 : 2 + len(set(named) & set(after))]
    for number in (7, 8, 9, 10, 11, 12):
        order.answered(number)
    shown = []
    while ahead := order.upcoming(1):
        if ahead[0] == 42:
            order.unreadable_now(42, "damaged")
            continue
        shown.append(ahead[0])
        order.answered(ahead[0])
    assert sorted(shown) == [number for number in range(42) if number not in (7, 8, 9, 10, 11, 12)]
    assert asked[0] == set()


def test_a_guide_that_fails_says_so_and_the_images_come_anyway(colours, begun):
    root, files = colours

    def guide(answered):
        raise RuntimeError("the run has another number of channels")

    order = begun(Order(root, files, answered=[]), guide)
    wait_until(lambda: order.failed is not None)
    assert order.failed == "the run has another number of channels"
    assert len(order.upcoming(6)) == 6
