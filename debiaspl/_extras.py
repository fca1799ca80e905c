"""Packages that only some features need."""

from importlib import import_module
from typing import Any


def extra(module: str, message: str) -> Any:
    """The module; where it is not installed, an ImportError with this message, which names the extra to install."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(message) from error
