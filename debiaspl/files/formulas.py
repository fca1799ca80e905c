"""Guard table cells against spreadsheets that would run them as formulas.

A cell that begins with = + - or @, also after spaces, gets an apostrophe in front, which spreadsheets read as the mark
of text. Reading removes it again. Numbers do not change, and cells that already begin with an apostrophe and such a
sign get one more: whatever is written is read back unchanged.
"""

import re

_FORMULA = re.compile(r"'*\s*[=+\-@]")
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|nan)", re.ASCII | re.IGNORECASE)


def guarded(text: str) -> str:
    """The text as it is written into a cell."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def unguarded(text: str) -> str:
    """The original text of a cell."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text
