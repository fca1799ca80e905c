"""Text for a terminal: harmless, whatever names of untrusted files are in it, and broken between words."""

import re
from shutil import get_terminal_size
from textwrap import wrap
from typing import TextIO

NARROWEST = 20
"""Columns of the narrowest terminal for which lines are broken."""
COMMAND = re.compile(r":\s+((?:debiaspl|torchrun|pip|mkdir) .*)$")
"""A command that ends a line."""


def printable(text: str) -> str:
    """Return the text on one line, with control characters, direction marks and undecodable bytes replaced."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def counted(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f} %"


def prose(text: str, stream: TextIO) -> str:
    """Return the text for this stream. On a terminal, long lines are broken between words, but not those that begin
    with a space: a user copies them. A command that ends a long line gets such a line of its own."""
    lines = [printable(line) for line in text.split("\n")]
    if stream.isatty():
        width = max(get_terminal_size().columns, NARROWEST)
        lines = [part for line in lines for part in _broken(line, width)]
    return "\n".join(lines)


def _broken(line: str, width: int) -> list[str]:
    if len(line) <= width or line.startswith(" "):
        return [line]
    if command := COMMAND.search(line):
        return [*_broken(line[: command.start() + 1], width), f"  {command[1]}"]
    return wrap(line, width, break_long_words=False, break_on_hyphens=False)
