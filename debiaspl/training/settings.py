"""All settings of a recipe and of its parts: from text and to text, and each with a line of help.

A field of a dataclass is documented by the text below it, which is read from the source; an argument of a constructor,
by the ``Args:`` of its class.
"""

import ast
import inspect
import itertools
import re
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass, fields
from functools import partial
from typing import Any

from debiaspl.debias import CompositeBuilder
from debiaspl.training.parts import PARTS, find, settings_of
from debiaspl.training.recipe import Choice, Recipe


@dataclass(frozen=True)
class Setting:
    """One setting, as used with ``--set``."""

    part: str
    """``recipe``, or the kind of part."""
    name: str
    """To type: ``correction.strength`` if ``strength`` belongs to another part."""
    value: Any
    default: Any
    help: str


def parse_settings(recipe: Recipe, assignments: Iterable[str], load_files: bool = False) -> Recipe:
    """The recipe with ``key=value`` changes from the command line; see ``Recipe.changed``."""
    return recipe.converted(split_assignments(assignments), _parsed, load_files)


def split_assignments(assignments: Iterable[str]) -> dict[str, str]:
    """Key -> text, of ``key=value``."""
    texts = {}
    for assignment in assignments:
        key, equals, text = (part.strip() for part in assignment.partition("="))
        if not equals:
            raise ValueError(f"found {assignment!r}, expected key=value, such as steps=1000.")
        texts[key] = text
    return texts


def as_text(value: Any) -> str:
    """A value as ``parse_settings`` reads it."""
    if isinstance(value, Choice):
        return value.name
    if isinstance(value, tuple | list):
        return ",".join(map(as_text, value))
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and float(short := f"{value:g}") == value:
        return short
    return str(value)


def _parsed(key: str, text: str, like: Any) -> Any:
    """A value with the type of ``like``."""
    try:
        if isinstance(like, bool):
            return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[text.lower()]
        if isinstance(like, int):
            return int(text)
        if like is None and text.lstrip("-").isdecimal():
            return int(text)
        if isinstance(like, float) or like is None:
            return None if text.lower() == "none" else float(text)
        if isinstance(like, tuple):
            return tuple(_parsed(key, item.strip(), like[0]) for item in text.split(","))
        return text
    except (KeyError, ValueError):
        expected = {bool: "true or false", int: "a whole number"}.get(type(like), "a number")
        raise ValueError(f"{key} is {text!r}, expected {expected}.") from None


def settings(recipe: Recipe) -> list[Setting]:
    """The recipe's own fields, then the settings of each of its parts."""
    texts, found = help_texts(Recipe), []
    for item in fields(recipe):
        values = (getattr(recipe, item.name), "" if item.default is MISSING else item.default)
        value, default = (one.name if isinstance(one, Choice) else one for one in values)
        found.append(Setting("recipe", item.name, value, default, texts.get(item.name, "")))
    for kind in PARTS:
        choice: Choice = getattr(recipe, kind)
        texts = help_texts(find(kind, choice.name))
        for name, default in settings_of(kind, choice.name).items():
            typed = name if recipe.owner(name) == kind else f"{kind}.{name}"
            found.append(Setting(kind, typed, choice.settings.get(name, default), default, texts.get(name, "")))
    return found


def help_texts(builder: Callable[..., Any]) -> dict[str, str]:
    """The first sentence of documentation for each setting of a class and its parents."""
    if isinstance(builder, CompositeBuilder):
        parts = {part: help_texts(made) for part, made in builder.builders.items()}
        return {key: parts[part].get(name, "") for key, ((part, name), *_) in builder.targets.items()}
    part: Any = builder.func if isinstance(builder, partial) else getattr(builder, "source", builder)
    texts: dict[str, str] = {}
    for source in reversed(inspect.getmro(part)) if isinstance(part, type) else (part,):
        texts |= _arguments(inspect.cleandoc(source.__doc__ or ""))
        if "__dataclass_fields__" in vars(source):
            texts |= _below_fields(source)
    return {name: _first_sentence(text) for name, text in texts.items()}


def _arguments(documentation: str) -> dict[str, str]:
    """The entries of ``Args:``, each with its continuation lines."""
    section = re.search(r"^Args:\n((?:(?: {4}.*)?(?:\n|$))+)", documentation, re.MULTILINE)
    entries = re.findall(r"^(\w+): (.*(?:\n +.*)*)", textwrap.dedent(section[1]), re.MULTILINE) if section else []
    return dict(entries)


def _below_fields(source: type) -> dict[str, str]:
    """The text below each field; empty if the source is not available."""
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(source))).body
    except (OSError, SyntaxError):
        return {}
    texts = {}
    for line, below in itertools.pairwise(getattr(tree, "body", ())):
        match line, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[name] = text
    return texts


def _first_sentence(text: str) -> str:
    """The first sentence on one line, without code marks."""
    whole = " ".join(text.split())
    whole = (whole[:1].upper() + whole[1:]).replace("``", "")
    return re.split(r"(?<=\.) (?=[A-Z])", whole, maxsplit=1)[0]
