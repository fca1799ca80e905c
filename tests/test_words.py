"""Plain English: no phrase that makes an international reader stop, and messages that are whole sentences.

``python -m tests.messages`` prints all messages, to be read in one go.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.messages import Message, messages

ROOT = Path(__file__).parent.parent

INSTEAD = {
    r"weights? of chance|chance weights?|weights? by chance": "random weights",
    r"(go|goes|going|gone|went) on with": "resume",
    r"do(es)? not tell": "not significant with N seeds; does not say; does not show",
    r"ask(s|ed|ing)? the network": "works offline",
    r"mend(s|ed|ing)?": "fix, correct",
    r"strangers?'?": "untrusted",
    r"(is|are|was) a lie|(sizes|numbers|headers) that lie": "would mislead; is wrong",
    r"sisters?": "a short version of the recipe",
    r"twins?": "the slow reference version; the version in plain torch",
    r"houses?": "package",
    r"(this|these|which|other|lower|upper|each|every) rooms?|one room that": "package, module",
    r"(a|the) room imports|rooms? (of the package|below|above) |[|] room |## rooms": "package, module",
    r"frictions?": "momentum",
    r"pace": "speed; 1 - decay",
    r"which alone": "is not a debiaspl page, so it is not overwritten",
    r"as far as (the|these|those|its|their) \w+ (tell|say|show)s?": "no significant bias found",
    r"what (is|was|it is|they are|it was|they were) (told|given|known)": "arguments, inputs, metadata",
    r"views, of which": "say what is computed, in order",
}
"""Pattern -> what to write instead. A space stands for any white space, line ends included; only whole words count."""

GAP = r"""(?:\s|["'#*]|//|(?<=\s)f(?=["']))+"""
"""Between two words of a phrase: also the end of a line of a comment, or of one of two strings that are joined."""

REASONS = {"BadImage", "Damaged", "Refused", "ReadError", "damaged", "wrong", "_refused", "_no_image"}
"""Kinds of error whose text is a part of a longer message: ``cannot be decoded``."""

READ_BY_ANOTHER = {"report/runs/record.py"}
"""Files whose ValueErrors are a part of a longer message too: the caller names the file that they are about."""


def searched() -> Iterator[Path]:
    """Text that a user or contributor reads: package with its pages, docs, examples, and the files beside them."""
    for folder, endings in {
        "debiaspl": "py html js css",
        "docs": "md",
        "examples": "py md ipynb",
        "results": "md",
    }.items():
        for ending in endings.split():
            yield from sorted((ROOT / folder).rglob(f"*.{ending}"))
    yield from sorted(ROOT.glob("*.md"))
    yield ROOT / "pyproject.toml"


@cache
def patterns() -> list[tuple[re.Pattern[str], str]]:
    return [
        (re.compile(rf"(?<![\w-])(?:{pattern.replace(' ', GAP)})(?![\w-])", re.IGNORECASE), instead)
        for pattern, instead in INSTEAD.items()
    ]


def found_in(text: str) -> Iterator[tuple[int, str, str]]:
    """``line, phrase, what to write instead`` of every phrase to avoid."""
    for pattern, instead in patterns():
        for match in pattern.finditer(text):
            yield text.count("\n", 0, match.start()) + 1, " ".join(match[0].split()), instead


def test_no_phrase_to_avoid_is_left():
    hits = []
    for path in searched():
        name = path.relative_to(ROOT).as_posix()
        hits += [f"{name}:{line}: {was!r}: write {instead}" for line, was, instead in found_in(path.read_text())]
    assert not hits, "\n" + "\n".join(hits)


@pytest.mark.parametrize(
    "text",
    [
        "with weights of chance",
        "it is not gone on\n    # with",
        '"4 seeds do "\n    f"not tell"',
        "pages that ask the network for nothing",
        "nothing to mend, as far as these images tell",
        "exists and is no page of debiaspl, which alone a new page replaces",
        "half a number is a lie",
        "the files are strangers'",
        "a sister for minutes",
        "friction and pace",
        "views, of which are looked at",
        "what it is given",
        "This room imports torch alone",
    ],
)
def test_the_phrases_are_found(text):
    assert list(found_in(text))


def test_common_words_are_not_flagged():
    text = "recommend amendments; make room for a crop, there is room; spaces, a workspace; the seeds tell; lies within"
    assert not list(found_in(text))


@cache
def all_messages() -> list[Message]:
    return messages()


def test_the_list_of_messages_has_errors_prints_and_help_of_many_files():
    kinds = {message.kind for message in all_messages()}
    assert {"ValueError", "DataError", "RunError", "PredictionsError", "FileError", "print", "help"} <= kinds
    assert len({message.file for message in all_messages()}) > 100
    assert len(all_messages()) > 500


def test_alternatives_and_variables_of_a_message_are_read(tmp_path):
    source = tmp_path / "made.py"
    source.write_text(
        "def check(x):\n"
        "    why = 'too small' if x else 'too large'\n"
        "    raise ValueError(f'x is {x:,}, which is {why}. ' + 'Use 1.')\n"
    )
    texts = [str(message) for message in messages([source])]
    assert texts == [
        "made.py:3: ValueError: x is {x}, which is too small. Use 1.",
        "made.py:3: ValueError: x is {x}, which is too large. Use 1.",
    ]


def errors() -> list[Message]:
    """Messages that are shown as they are, without those that another message takes in: ``it is cut short``."""
    return [
        message
        for message in all_messages()
        if (message.kind.endswith("Error") or message.kind in ("Interrupted", "NeedsPictures"))
        and message.kind not in REASONS
        and not (message.kind == "ValueError" and message.file in READ_BY_ANOTHER)
        and not message.text.startswith(("it ", "its ", "{"))
    ]


def test_errors_are_sentences():
    """Each has some words and an end: a full stop, or a value or command to copy, which a full stop would spoil."""
    command = re.compile(r"(pip install|debiaspl|mkdir|--[a-z]|PATH\.py|torchrun|class |Write:)[^.]*$")
    short = [str(message) for message in errors() if len(message.text.split()) < 4]
    assert not short, "\n" + "\n".join(short)
    open_ends = [
        str(message)
        for message in errors()
        if not re.search(r"[.?!]$|\}$|[\])'\"]$", message.text) and not command.search(message.text)
    ]
    assert not open_ends, "\n" + "\n".join(open_ends)


def test_messages_hold_no_phrase_to_avoid():
    hits = [f"{message}: write {instead}" for message in all_messages() for _, _, instead in found_in(message.text)]
    assert not hits, "\n" + "\n".join(hits)
