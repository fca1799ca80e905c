"""Tables of plain text that are never wider than 80 columns."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from shutil import get_terminal_size
from textwrap import wrap

WIDTH = 80


def columns(cells: Sequence[str], widths: Sequence[int], right: Sequence[int] = (), gap: int = 2) -> Iterator[str]:
    """The lines of one row: each cell wrapped to its width, ``gap`` spaces apart; ``right`` are columns of numbers."""
    wrapped = [
        wrap(cell, width, break_long_words=False, break_on_hyphens=False) or [""]
        for cell, width in zip(cells, widths, strict=True)
    ]
    for line in zip_longest(*wrapped, fillvalue=""):
        placed = (
            part.rjust(width) if number in right else part.ljust(width)
            for number, (part, width) in enumerate(zip(line, widths, strict=True))
        )
        yield (" " * gap).join(placed).rstrip()


def paragraph(text: str, indent: str = "") -> list[str]:
    """A text in lines of at most 80 columns, or of a narrower terminal's; ``indent`` before all but the first."""
    wide = min(get_terminal_size().columns, WIDTH)
    return wrap(text, wide, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def chosen_by(words: Sequence[str], *texts: str) -> bool:
    """Whether all of these words occur in the texts, in capitals or not."""
    whole = " ".join(texts).casefold()
    return all(word.casefold() in whole for word in words)
