"""What is said about a setting: one check for all that are numbers, and the name that was probably meant."""

import difflib
from collections.abc import Iterable
from typing import TypeVar

Number = TypeVar("Number", int, float)


def within(name: str, value: Number, interval: str) -> Number:
    """The value of a setting. Raises unless it lies in the interval, such as ``[0, 1)`` or ``(0, inf)``."""
    low, high = map(float, interval[1:-1].split(","))
    above = low <= value if interval[0] == "[" else low < value
    below = value <= high if interval[-1] == "]" else value < high
    if not (above and below):
        raise ValueError(f"{name} is {value!r}, expected a number in {interval}.")
    return value


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A sentence with the most similar name, behind a space; empty if none is similar."""
    close = difflib.get_close_matches(name, names, n=1)
    return f" Did you mean {close[0]}?" if close else ""
