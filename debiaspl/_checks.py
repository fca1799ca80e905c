"""The name that was probably meant, and a module that is not installed."""

import difflib
from collections.abc import Iterable
from importlib import import_module
from typing import Any


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A sentence with the most similar name, behind a space; empty if none is similar."""
    close = difflib.get_close_matches(name, names, n=1)
    return f" Did you mean {close[0]}?" if close else ""


def extra(module: str, message: str) -> Any:
    """Import and return a module. If it is not installed, raise ImportError with ``message``, which names the extra."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(message) from error
