"""Text in a table that a spreadsheet would take for a formula, and run.

A cell that begins with = + - or @ gets an apostrophe in front, which spreadsheets take for the mark of text. Reading
takes it away again. Numbers are left as they are, and cells that already begin so get one apostrophe more: whatever is
written is read back unchanged.
"""

import re

_FORMULA = re.compile(r"'*[=+\-@]")


def guarded(text: str) -> str:
    """As it is written into a cell."""
    return f"'{text}" if _FORMULA.match(text) and not _is_number(text) else text


def unguarded(text: str) -> str:
    """As it was before it was written."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
