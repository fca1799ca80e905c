"""Being asked to stop: noted, answered at once where somebody asked for that, and obeyed the second time."""

import signal

import pytest

from debiaspl.training.signals import stop_requests


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_one_is_noted_and_answered_once(number, capsys):
    with stop_requests(again=True, heard="Stopping soon.") as asked:
        assert asked() == 0
        signal.raise_signal(number)
        signal.raise_signal(number)
        assert asked() == number
    assert capsys.readouterr().err == "\nStopping soon.\n"


def test_unless_asked_for_nothing_is_said_and_the_second_one_acts(capsys):
    with stop_requests() as asked:
        signal.raise_signal(signal.SIGINT)
        assert asked() == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert capsys.readouterr().err == ""
