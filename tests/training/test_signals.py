"""Being asked to stop: noted, and obeyed the second time."""

import signal

import pytest

from debiaspl.training.process import stop_requests


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_under_torchrun_both_are_noted(number):
    with stop_requests(again=True) as asked:
        assert asked() == 0
        signal.raise_signal(number)
        signal.raise_signal(number)
        assert asked() == number


def test_the_second_one_acts():
    with stop_requests() as asked:
        signal.raise_signal(signal.SIGINT)
        assert asked() == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
