"""What a file of predictions may be refused with."""

from collections.abc import Iterable


class PredictionsError(ValueError):
    """These predictions cannot be audited; the message says what was found, what was expected and what to do."""


def listed(values: Iterable[object], most: int = 8) -> str:
    """A few of the values, quoted, and how many more there are."""
    everything = [repr(str(value)) for value in values]
    rest = len(everything) - most
    return ", ".join(everything[:most]) + (f" and {rest:,} more" if rest > 0 else "")


def reason(error: Exception) -> str:
    """Why something failed, for the middle of a sentence: libraries end theirs with a full stop, or do not."""
    return (str(error).strip().splitlines() or ["it is cut short"])[0].rstrip(". ")


def rows_named(rows: Iterable[int], most: int = 3) -> str:
    """Positions from 0, as a person counts the rows of data."""
    numbers = [f"{row + 1:,}" for row in rows]
    rest = len(numbers) - most
    named = ", ".join(numbers[:most]) + (f" and {rest:,} more" if rest > 0 else "")
    return f"row{'s' if len(numbers) > 1 else ''} {named}"
