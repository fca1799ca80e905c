"""Long lines for a terminal: broken between words, with a hanging indent. What a user copies stays in one piece."""

import os
import re
from collections.abc import Iterator
from typing import TextIO

HANG = "  "
"""Before every line but the first of a text."""
LEAST = 20
"""Columns of the narrowest terminal for which lines are broken."""
_KEPT = "\ue000"
"""Stands for a space that must stay. It is not printable, so no text contains it on purpose."""

_TOKEN = re.compile(r"""(?:(?<![^\s(=])'[^']*'(?!\w)|(?<![^\s(=])"[^"]*"(?!\w)|\S)+""")
"""A word, or several in quotes, such as the name of a folder in a command."""
_PROGRAMS = {"debiaspl", "torchrun", "pip", "python", "mkdir"}
_ARGUMENT = re.compile(r"""-|['"]|.*[/=\[]|.*\.\w|[A-Z]+$""")
"""Looks like an argument: an option, a path, a setting, something in quotes, or a PLACEHOLDER."""
_SHORT = 4
"""Words of a command that may all be plain: ``debiaspl train photos``."""


def whole(name: object) -> str:
    """A path or command for a text that is wrapped later: its spaces are not broken."""
    return str(name).replace(" ", _KEPT)


def unmarked(text: str) -> str:
    """The text as it is printed."""
    return text.replace(_KEPT, " ")


def width_of(stream: TextIO) -> int | None:
    """Columns of a terminal; None for a file or a pipe, whose reader wants lines as they are."""
    if not stream.isatty():
        return None
    told = os.environ.get("COLUMNS", "")
    if told.isdecimal() and int(told):
        return int(told)
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):  # no file of the system
        return None


def wrapped(line: str, width: int | None) -> list[str]:
    """The lines of at most ``width`` columns; longer ones only for a path or command that is itself longer."""
    if width is None or width < LEAST or _cells(line) <= width:
        return [unmarked(line)]
    start = line[: len(line) - len(line.lstrip(" "))]
    lines: list[str] = []
    end = 0
    for first, last in _pieces(line):
        piece = line[first:last]
        gap = line[end:first] if lines else start
        end = last
        if lines and _cells(lines[-1]) + _cells(gap) + _cells(piece) <= width:
            lines[-1] += gap + piece
        else:
            lines.append((start + HANG if lines else start) + piece)
    return [unmarked(one) for one in lines]


def _pieces(line: str) -> Iterator[tuple[int, int]]:
    """Where each part that must not be broken begins and ends."""
    tokens = [match.span() for match in _TOKEN.finditer(line)]
    words = [line[first:last] for first, last in tokens]
    number = 0
    while number < len(tokens):
        last = number + _length(words[number:])
        yield tokens[number][0], tokens[last - 1][1]
        number = last


def _length(words: list[str]) -> int:
    """How many of these words are one piece: more than one where a command or an option begins."""
    first = words[0].lstrip("(")
    if first not in _PROGRAMS and not first.startswith("--"):
        return 1
    # A command ends with its sentence.
    ends = (number for number, word in enumerate(words, 1) if word[-1] in ".,;:)!?")
    count = next(ends, len(words))
    if first in _PROGRAMS and count <= _SHORT:
        return count
    found = 2 if first in _PROGRAMS else 1
    for number in range(1, count):
        is_value = words[number - 1].startswith("--") and (first in _PROGRAMS or number == count - 1)
        if is_value or _ARGUMENT.match(words[number]):
            found = max(found, number + 1)
        elif first not in _PROGRAMS:
            break
    return min(found, count)


def _cells(text: str) -> int:
    """Columns that the text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(unmarked(text))
