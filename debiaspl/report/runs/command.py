"""The command that makes a run again, found from its recipe."""

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from debiaspl.report.runs.methods import flat
from debiaspl.training import Recipe

WORDS = ("name", "about", "cost", "paper")
ABSENT = object()
"""Equal to no value of a recipe."""


def command_of(values: Mapping[str, Any], known: Mapping[str, Recipe]) -> str | None:
    """``debiaspl train --recipe NAME --set ...``; None if no such command gives exactly this recipe.

    ``known`` are the recipes by name. A run of the demo is called after its recipe, with the method and seed behind it.
    """
    name = max((one for one in known if str(values["name"]).startswith(one)), key=len, default=None)
    if name is None:
        return None
    settings = _differences(flat(known[name].to_json()), flat(values))
    try:
        wanted, made = Recipe.from_json(values), known[name].with_settings(settings)
    except (ValueError, TypeError, KeyError):
        return None
    # Settings are written as text and some cannot be taken back: only a command that was tried is told.
    if replace(made, **{word: getattr(wanted, word) for word in WORDS}) != wanted:
        return None
    return shlex.join(["debiaspl", "train", "--recipe", name, *(part for one in settings for part in ("--set", one))])


def _differences(base: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Assignments, those of whole parts before those of their settings."""
    names = [name for name, value in wanted.items() if name not in WORDS and base.get(name, ABSENT) != value]
    return [f"{name}={_written(wanted[name])}" for name in sorted(names, key=lambda name: "." in name)]


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list) else "none" if value is None else str(value)
