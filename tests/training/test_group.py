"""What is left of an error when a group is left: its message and its lines, and nothing that it held."""

import weakref

import pytest

from debiaspl.training.group import _forget_locals


class Held:
    pass


def fail(held: list, error: Exception, behind: Exception | None = None) -> None:
    own = Held()
    held.append(weakref.ref(own))
    if behind is None:
        raise error
    raise error from behind


def test_an_error_and_those_behind_it_hold_nothing_any_more():
    held: list = []

    def cause():
        try:
            fail(held, ValueError("first"))
        except ValueError as error:
            fail(held, KeyError("second"), behind=error)

    def context():
        try:
            cause()
        except KeyError:
            fail(held, RuntimeError("third"), behind=OSError("another"))

    with pytest.raises(RuntimeError, match="third") as caught:
        context()
    assert all(one() is not None for one in held)
    _forget_locals(caught.value, None)
    assert [one() for one in held] == [None] * 3
    assert caught.traceback[-1].name == "fail"


def test_errors_in_a_ring_and_errors_of_the_caller():
    held: list = []
    first, second = ValueError("first"), KeyError("second")
    first.__cause__, second.__context__ = second, first
    _forget_locals(first, None)  # ends
    with pytest.raises(OSError, match="own") as callers:
        fail(held, OSError("the caller's own"))
    first.__context__ = callers.value
    _forget_locals(first, callers.value)
    assert held[0]() is not None
