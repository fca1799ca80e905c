"""Text of untrusted sources: JSON, and cells of tables, which spreadsheets would run as formulas.

A cell that begins with = + - or @, also after spaces, gets an apostrophe in front, which spreadsheets read as the mark
of text. Reading removes it again. Numbers do not change, and cells that already begin with an apostrophe and such a
sign get one more: whatever is written is read back unchanged.
"""

import json
import re
from typing import Any

_FORMULA = re.compile(r"'*\s*[=+\-@]")
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|nan)", re.ASCII | re.IGNORECASE)


def guarded(text: str) -> str:
    """The text as it is written into a cell."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def unguarded(text: str) -> str:
    """The original text of a cell."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def parse_json(text: str | bytes) -> Any:
    """The parsed value. Raises ValueError, also if it is nested too deep for Python."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
