"""Which images come first."""

import threading

import pytest

from debiaspl.label.guide import Guide, Stopped
from debiaspl.label.order import Order
from tests.label.made import Table, wait_until


class Listed(Guide):
    """Reads nothing, waits where it is told to, and names these images in turn."""

    def __init__(self, *lists, rounds=1):
        super().__init__(None, (), Table(), ())
        self.lists, self.rounds, self.asked_with = list(lists), rounds, []
        self.gate = threading.Event()

    def learn(self):
        while not self.gate.wait(0.01):
            if self.stopped:
                raise Stopped
        self.rounds -= 1
        if self.rounds:
            self.gate.clear()
        return self.rounds > 0

    def choose(self, answered):
        self.asked_with.append(set(answered))
        return [(key, "coverage") for key in (self.lists.pop(0) if self.lists else []) if key not in answered]


@pytest.fixture
def begun():
    """Start an order that is ended with the test."""
    running = []

    def start(guide, images=40, answered=()):
        order = Order(images, answered)
        running.append(order)
        order.start(guide)
        return order

    yield start
    for order in running:
        order.stop()
        assert not order._following[1].is_alive()


def shown(order) -> list[int]:
    keys = []
    while ahead := order.upcoming(6):
        assert order.upcoming(6) == ahead
        keys.append(ahead[0])
        order.answered(ahead[0])
    return keys


def test_every_image_comes_once_in_an_order_that_a_seed_decides():
    orders = [shown(Order(30, answered=[0, 1], seed=seed)) for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == list(range(2, 30))


def test_undone_comes_first_skipped_comes_last_and_unreadable_not_at_all():
    order = Order(30, answered=[])
    first, second, third = order.upcoming(3)
    order.answered(first)
    order.answered(second)
    order.put_first(first)
    assert order.upcoming(6)[0] == first
    order.answered(first)
    order.put_last([first, second])
    order.unreadable_now({third: "damaged"})
    rest = shown(order)
    assert rest[-2:] == [first, second]
    assert sorted(rest) == sorted(set(range(30)) - {third})


def test_no_answer_waits_for_a_guide_which_then_puts_its_choice_behind_the_image_on_the_screen(begun):
    guide = Listed([7, 8, 9], [10, 11])
    order = begun(guide)
    answered = []
    for _ in range(3):  # while the guide is reading
        answered.append(order.upcoming(6)[0])
        order.answered(answered[-1])
    assert not guide.asked_with
    before = order.upcoming(6)
    guide.gate.set()
    wait_until(lambda: order.upcoming(6) != before)
    after, asked = order.upcoming(6), order.asked
    assert after[:2] == before[:2]
    assert after[2:5] == [key for key in (7, 8, 9) if key in after[2:5]]
    assert {asked[key] for key in after[:2]} == {"random"}
    assert {asked[key] for key in after[2:] if key in (7, 8, 9, 10, 11)} == {"coverage"}
    rest = shown(order)
    wait_until(lambda: len(guide.asked_with) >= 2)  # its first choice was used up
    assert sorted([*answered, *rest]) == list(range(40))


def test_a_guide_that_knows_more_is_asked_again(begun):
    guide = Listed([20, 21], [30, 31], rounds=2)
    order = begun(guide, answered=range(20))
    guide.gate.set()
    wait_until(lambda: guide.asked_with and 20 in order.upcoming(4))
    guide.gate.set()
    wait_until(lambda: 30 in order.upcoming(4))
    assert sorted(shown(order)) == list(range(20, 40))


def test_a_guide_that_fails_says_so_and_the_images_come_anyway(begun):
    class Failing(Listed):
        def learn(self):
            raise RuntimeError("the run has another number of channels")

    order = begun(Failing())
    wait_until(lambda: order.failed is not None)
    assert order.failed == "the run has another number of channels"
    assert len(order.upcoming(6)) == 6
