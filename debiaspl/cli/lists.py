"""``debiaspl list``: recipes, algorithms, corrections and settings, as tables of at most 80 columns."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from enum import StrEnum
from itertools import zip_longest
from shutil import get_terminal_size
from textwrap import wrap
from typing import Annotated, Any

import typer

from debiaspl.cli.options import AsJson, Length, Method, Settings
from debiaspl.cli.terminal import print_json, say

WIDTH = 80
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

# The fields of Traits, as the columns are called.
QUESTIONS = {
    "helps_training": "helps training",
    "needs_no_class_distribution": "no class counts",
    "adapts": "adapts",
    "works_on_balanced": "balanced data too",
    "allows_shift": "shift allowed",
}
QUESTIONS_CAPTION = (
    "Yes is an advantage. Helps training: acts during training, not on the finished classifier only. No class counts: "
    "the sizes of the classes need not be known. Adapts: follows the model as it learns. Balanced data too: has an "
    "effect where classes are equally large. Shift allowed: labeled and unlabeled images may be distributed "
    "differently. Settings of one: debiaspl list settings --set correction=NAME."
)


class Kind(StrEnum):
    RECIPES = "recipes"
    ALGORITHMS = "algorithms"
    CORRECTIONS = "corrections"
    SETTINGS = "settings"


def list_command(
    kind: Annotated[Kind, typer.Argument(metavar="WHAT", help="recipes, algorithms, corrections or settings.")],
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WORD...", help="Only those with these words; for settings: a RECIPE.", show_default="all"
        ),
    ] = None,
    settings: Settings = None,
    length: Length = None,
    method: Method = None,
    json_: AsJson = False,
) -> None:
    """List recipes, algorithms, corrections, or the settings of a recipe.

    Settings of another algorithm or correction: debiaspl list settings --set algorithm=NAME.
    """
    if kind is Kind.RECIPES:
        _list_recipes(words or [], json_)
    elif kind is Kind.ALGORITHMS:
        _list_algorithms(words or [], json_)
    elif kind is Kind.CORRECTIONS:
        _list_corrections(words or [], json_)
    else:
        _list_settings(words or [], (length, method), settings or [], json_)


def _list_recipes(words: list[str], json_: bool) -> None:
    """Cells, with the paper's accuracy and the lengths that they have."""
    from debiaspl.recipes.cells import CELLS

    chosen = _matching(Kind.RECIPES, ((cell.name, cell.about, cell) for cell in CELLS.values()), words)
    if json_:
        print_json(
            [
                {"name": cell.name, "about": cell.about, "data": cell.data, "papers": cell.papers}
                | {"lengths": {length: base.cost for length, base in cell.lengths.items()}}
                for cell in chosen
            ]
        )
        return
    widths = 33, 25, 5, 14
    _row(["recipe", "", "paper", "lengths"], widths, right=(2,), gap=1)
    for cell in chosen:
        paper = cell.papers.get("debiaspl")
        cells = [cell.name, cell.about, "-" if paper is None else f"{paper:.1f}", ", ".join(cell.lengths)]
        _row(cells, widths, right=(2,), gap=1)
    _notes(RECIPES_CAPTION)


def _matching(kind: Kind, named: Iterable[tuple[str, str, Any]], words: Sequence[str]) -> list[Any]:
    """Of (name, description, thing) the things with all of these words, in capitals or not."""
    wanted = [word.casefold() for word in words]
    chosen = [one for name, about, one in named if all(word in f"{name} {about}".casefold() for word in wanted)]
    if not chosen:
        raise ValueError(f"no {kind.value[:-1]} has {' and '.join(words)} in its name or description.")
    return chosen


def _row(cells: Sequence[str], widths: Sequence[int], right: Sequence[int] = (), gap: int = 2) -> None:
    """Print a row: each cell wrapped to its width, ``gap`` spaces apart; ``right`` are columns of numbers."""
    wrapped = [_wrap(cell, width) or [""] for cell, width in zip(cells, widths, strict=True)]
    for line in zip_longest(*wrapped, fillvalue=""):
        placed = (
            part.rjust(width) if number in right else part.ljust(width)
            for number, (part, width) in enumerate(zip(line, widths, strict=True))
        )
        say((" " * gap).join(placed).rstrip(), as_is=True)


def _notes(texts: Sequence[str]) -> None:
    """Print paragraphs of at most 80 columns, or of a narrower terminal's."""
    for text in texts:
        say("\n" + "\n".join(_wrap(text, min(get_terminal_size().columns, WIDTH))))


def _wrap(text: str, width: int) -> list[str]:
    return wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _list_settings(recipes: list[str], which: tuple[str | None, str | None], settings: list[str], json_: bool) -> None:
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
    listed = settings_of(chosen)
    if json_:
        print_json([asdict(setting) for setting in listed])
        return
    part, widths = "recipe", (26, 16, 34)
    _row(("setting", "value", "what it does"), widths)
    for setting in listed:
        if setting.part != part:
            part = setting.part
            say(f"\n{part} {getattr(chosen, part).name}")
        value, default = (
            as_text(one).replace(",", ", ").replace(",  ", ", ") for one in (setting.value, setting.default)
        )
        about = setting.help if value == default else f"{setting.help} Default: {default or 'none'}."
        _row((setting.name, value, about), widths)


def _list_algorithms(words: list[str], json_: bool) -> None:
    """What each does, its paper and what it needs."""
    from debiaspl.recipes.algorithm_list import algorithm_list

    chosen = _matching(Kind.ALGORITHMS, ((row.name, row.about, row) for row in algorithm_list()), words)
    if json_:
        print_json([row._asdict() for row in chosen])
        return
    widths = 13, 32, 16, 5, 6
    _row(("algorithm", "what it does", "paper", "views", "frozen"), widths)
    for group, title in GROUPS.items():
        rows = [row for row in chosen if row.group == group]
        _notes([title] if rows else [])
        for row in rows:
            _row((row.name, row.about, row.paper or "-", row.views, "yes" if row.frozen else "no"), widths)
    _notes(ALGORITHMS_CAPTION)


def _list_corrections(words: list[str], json_: bool) -> None:
    """What each needs and what it can do."""
    import inspect

    from debiaspl.debias import CORRECTIONS

    declared: list[dict[str, Any]] = [
        {"name": name, "about": (inspect.getdoc(made) or "").partition("\n")[0], "traits": asdict(traits)}
        for name, made in CORRECTIONS.items()
        if (traits := getattr(made, "traits", None)) is not None
    ]
    chosen = _matching(Kind.CORRECTIONS, ((one["name"], one["about"], one) for one in declared), words)
    if json_:
        print_json(chosen)
        return
    widths = 24, *(len(max(title.split(), key=len)) for title in QUESTIONS.values())
    _row(("correction", *QUESTIONS.values()), widths)
    for one in chosen:
        _row((one["name"], *("yes" if one["traits"][field] else "no" for field in QUESTIONS)), widths)
    _notes([QUESTIONS_CAPTION])
