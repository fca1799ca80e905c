"""``debiaspl list``: recipes, algorithms, corrections and settings, as tables of at most 80 columns."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from functools import partial
from itertools import zip_longest
from shutil import get_terminal_size
from textwrap import wrap
from typing import Annotated, Any

from debiaspl.cli.options import AsJson, Length, Method, Settings, argument
from debiaspl.cli.terminal import say

WIDTH = 80
_wrap = partial(wrap, break_long_words=False, break_on_hyphens=False)
RECIPES_CAPTION = (
    "paper: DebiasPL's top-1 % on the test set in the paper. The first length is the default. paper: its settings, or "
    "those of a protocol; fast: the same in less time; minutes: ours; start: ours, from features without labels, which "
    "--method moco learns first.",
    "The settings of one: debiaspl list settings RECIPE. Train it: debiaspl train --recipe RECIPE --length start "
    "--method contrastmatch.",
)

GROUPS = {
    "ALGORITHMS": "Need labels and images without labels:",
    "HINTED": "Need labels, images, and labels of a graph, of another model or of a trained run; or experts:",
    "STARTS": "Need images alone, and learn features without labels (train --method NAME):",
}
ALGORITHMS_CAPTION = (
    "views: weak + strong views that it needs of each unlabeled image; more views take more time. frozen: whether it "
    "works with a frozen encoder.",
    "Settings of one: debiaspl list settings --set algorithm=NAME. Train with it: --method NAME.",
)

CORRECTIONS_CAPTION = "Settings of one: debiaspl list settings --set correction=NAME. Which one: docs/corrections.md."


Rows = list[Sequence[str] | str]
"""Of cells, the header first; a text is a title or a note."""
Shown = tuple[list[dict[str, Any]], Sequence[int], Rows]
"""What is printed: values as JSON; or the widths and rows of a table."""


class Kind(StrEnum):
    RECIPES = "recipes"
    ALGORITHMS = "algorithms"
    CORRECTIONS = "corrections"
    SETTINGS = "settings"


def list_command(
    kind: Annotated[Kind, argument("WHAT", "recipes, algorithms, corrections or settings.")],
    words: Annotated[
        list[str] | None, argument("WORD...", "Only those with these words; for settings: a RECIPE.", "all")
    ] = None,
    settings: Settings = None,
    length: Length = None,
    method: Method = None,
    json_: AsJson = False,
) -> None:
    """List recipes, algorithms, corrections, or the settings of a recipe.

    Settings of another algorithm or correction: debiaspl list settings --set algorithm=NAME.
    """
    if kind is Kind.SETTINGS:
        values, widths, rows = _settings(words or [], (length, method), settings or [])
    else:
        show = {Kind.RECIPES: _recipes, Kind.ALGORITHMS: _algorithms, Kind.CORRECTIONS: _corrections}[kind]
        values, widths, rows = show(words or [])
    if json_:
        say(json.dumps(values, indent=2), as_is=True)
        return
    for row in rows:
        if isinstance(row, str):
            say("\n" + "\n".join(_wrap(row, min(get_terminal_size().columns, WIDTH))))
        else:
            _print_row(row, widths)


def _print_row(cells: Sequence[str], widths: Sequence[int]) -> None:
    """Each cell wrapped to its width."""
    wrapped = [_wrap(cell, width) or [""] for cell, width in zip(cells, widths, strict=True)]
    for line in zip_longest(*wrapped, fillvalue=""):
        say("  ".join(part.ljust(width) for part, width in zip(line, widths, strict=True)).rstrip(), as_is=True)


def _with_words(what: Kind, values: list[dict[str, Any]], words: Sequence[str]) -> list[dict[str, Any]]:
    """Those with all of these words in name or description, in capitals or not."""
    wanted = [word.casefold() for word in words]
    chosen = [one for one in values if all(word in f"{one['name']} {one['about']}".casefold() for word in wanted)]
    if not chosen:
        raise ValueError(f"no {what.value[:-1]} has {' and '.join(words)} in its name or description.")
    return chosen


def _recipes(words: list[str]) -> Shown:
    """Cells, with the paper's accuracy and the lengths that they have."""
    from debiaspl.recipes.cells import CELLS

    values = [
        {"name": cell.name, "about": cell.about, "data": cell.data, "papers": cell.papers}
        | {"lengths": {length: base.cost for length, base in cell.lengths.items()}}
        for cell in CELLS.values()
    ]
    chosen = _with_words(Kind.RECIPES, values, words)
    rows: Rows = [("recipe", "", "paper", "lengths")]
    for one in chosen:
        paper = f"{one['papers']['debiaspl']:.1f}" if "debiaspl" in one["papers"] else "-"
        rows.append((one["name"], one["about"], paper.rjust(5), ", ".join(one["lengths"])))
    return chosen, (34, 21, 5, 14), [*rows, *RECIPES_CAPTION]


def _algorithms(words: list[str]) -> Shown:
    """What each does, its paper and what it needs."""
    from debiaspl.recipes.algorithm_list import algorithm_list

    chosen = _with_words(Kind.ALGORITHMS, algorithm_list(), words)
    rows: Rows = [("algorithm", "what it does", "paper", "views", "frozen")]
    for group, title in GROUPS.items():
        own = [one for one in chosen if one["group"] == group]
        rows += [title] if own else []
        for one in own:
            frozen = "yes" if one["frozen"] else "no"
            rows.append((one["name"], one["about"], one["paper"] or "-", one["views"], frozen))
    return chosen, (13, 32, 16, 5, 6), [*rows, *ALGORITHMS_CAPTION]


def _corrections(words: list[str]) -> Shown:
    import inspect

    from debiaspl.debias import CORRECTIONS

    texts = {name: inspect.getdoc(made) or "" for name, made in CORRECTIONS.items() if name != "none"}
    values = [{"name": name, "about": text.partition("\n")[0]} for name, text in texts.items()]
    chosen = _with_words(Kind.CORRECTIONS, values, words)
    rows = [("correction", "what it does"), *((one["name"], one["about"]) for one in chosen)]
    return chosen, (24, 54), [*rows, CORRECTIONS_CAPTION]


def _settings(recipes: list[str], which: tuple[str | None, str | None], settings: list[str]) -> Shown:
    """Value and meaning of each setting; the default only where the value is another."""
    from debiaspl.recipes import recipe as find
    from debiaspl.training import Recipe
    from debiaspl.training.settings import as_text, parse_settings, settings as settings_of

    if len(recipes) > 1:
        raise ValueError(f"{' and '.join(recipes)} are {len(recipes)} recipes. Expected one: list settings RECIPE.")
    if not recipes and any(which):
        raise ValueError("--length and --method are those of a RECIPE: debiaspl list settings RECIPE.")
    base = find(recipes[0], *which, load_files=True) if recipes else Recipe("default")
    chosen = parse_settings(base, settings, load_files=True)
    part, listed = "recipe", settings_of(chosen)
    rows: Rows = [("setting", "value", "what it does")]
    for setting in listed:
        if setting.part != part:
            part = setting.part
            rows.append(f"{part} {getattr(chosen, part).name}")
        value, default = (
            as_text(one).replace(",", ", ") if isinstance(one, tuple | list) else as_text(one)
            for one in (setting.value, setting.default)
        )
        about = setting.help if value == default else f"{setting.help} Default: {default or 'none'}."
        rows.append((setting.name, value, about))
    return [asdict(setting) for setting in listed], (26, 16, 34), rows
