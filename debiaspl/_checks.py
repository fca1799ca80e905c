"""The name that was probably meant."""

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A sentence with the most similar name, behind a space; empty if none is similar."""
    close = difflib.get_close_matches(name, names, n=1)
    return f" Did you mean {close[0]}?" if close else ""
