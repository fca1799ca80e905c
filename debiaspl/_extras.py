"""Optional dependencies."""

from importlib import import_module
from typing import Any


def extra(module: str, message: str) -> Any:
    """Import and return a module. If it is not installed, raise ImportError with ``message``, which names the extra."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(message) from error
