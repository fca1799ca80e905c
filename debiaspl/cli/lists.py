"""``debiaspl recipes``, ``settings``, ``corrections`` and ``results``: what there is, as tables."""

from pathlib import Path
from typing import Annotated, Any

import typer

from debiaspl._printable import printable
from debiaspl.cli.options import AsJson
from debiaspl.cli.terminal import filled_table, plain, plain_errors, print_json, print_table, say

WIDEST = 32
"""Columns of a value in the table of settings; a list of operations goes over several lines."""

# The fields of Traits, as the columns are called.
QUESTIONS = {
    "helps_training": "helps training",
    "needs_no_class_distribution": "no class counts",
    "adapts": "adapts",
    "works_on_balanced": "balanced data too",
    "allows_shift": "shift allowed",
}
QUESTIONS_CAPTION = (
    "Yes is what one would wish for. Helps training: not the finished classifier alone. No class counts: need not be "
    "told how large the classes are. Adapts: follows the model. Balanced data too: has something to mend where classes "
    "are equally large. Shift allowed: labeled and unlabeled images may be distributed differently."
)
RESULTS_CAPTION = (
    "Accuracy: mean over folds (least to largest), top-1 % on the balanced test set, of the averaged weights after the "
    "last step. Seconds: of a fold's whole process, start-up included; several at once shared the GPU. "
    "Paper: WRN-28-2, 2^19 steps, five folds; most of its FixMatch numbers are copied from other papers. reached, "
    "below: of that recipe alone. other recipe: minutes and start are contrastmatch on ResNet-9, so their numbers do "
    "not compare with the paper's. open: not measured."
)
PROTOCOL_CAPTION = (
    "Top-1 % on the balanced test set, means over runs. g100: 100 to 1; unlabeled images are distributed as the "
    "labels, or uniform (unif.), or reversed (rev.). Ours: the averaged weights after the last step. Papers differ in "
    "which images are unlabeled and in what they report: docs/data.md."
)


def recipes_command(json_: AsJson = False) -> None:
    """List the recipes."""
    from debiaspl.recipes import RECIPES

    if json_:
        print_json([recipe.to_json() for recipe in RECIPES.values()])
        return
    rows = [
        (recipe.name, recipe.about, "-" if recipe.paper is None else f"{recipe.paper:.1f}", recipe.cost)
        for recipe in RECIPES.values()
    ]
    print_table(filled_table(("recipe", "experiment", "paper %", "cost"), rows, box=None, pad_edge=False))


def settings_command(
    recipe: Annotated[
        str | None, typer.Argument(metavar="RECIPE", help="A recipe, see: debiaspl recipes. The defaults otherwise.")
    ] = None,
    algorithm: Annotated[str | None, typer.Option(metavar="NAME", help="With this algorithm instead.")] = None,
    correction: Annotated[str | None, typer.Option(metavar="NAME", help="With this correction.")] = None,
    network: Annotated[str | None, typer.Option(metavar="NAME", help="With this network.")] = None,
    protocol: Annotated[str | None, typer.Option(metavar="NAME", help="With this protocol.")] = None,
    strong: Annotated[str | None, typer.Option(metavar="NAME", help="With these strong views.")] = None,
    beside: Annotated[str | None, typer.Option(metavar="NAME", help="With this algorithm beside it.")] = None,
    json_: AsJson = False,
) -> None:
    """List the settings of a recipe and of its parts: value, default and what each does. Change one with --set."""
    parts = {"protocol": protocol, "network": network, "algorithm": algorithm}
    parts |= {"correction": correction, "strong": strong, "beside": beside}
    with plain_errors():
        from debiaspl.recipes import recipe as find
        from debiaspl.training import Recipe
        from debiaspl.training.settings import settings

        base = Recipe("default") if recipe is None else find(recipe)
        changes = [f"{part}={name}" for part, name in parts.items() if name is not None]
        chosen = base.with_settings(changes, load_files=True)
        listed = settings(chosen)
    if json_:
        from dataclasses import asdict

        print_json([asdict(setting) for setting in listed])
        return
    table = filled_table(("setting", "value", "default", "what it does"), (), box=None, pad_edge=False)
    for column in table.columns[1:3]:
        column.max_width = WIDEST
    part = "recipe"
    for setting in listed:
        if setting.part != part:
            part = setting.part
            table.add_row()
            table.add_row(plain(f"{part} {getattr(chosen, part).name}", "bold"))
        value, default = as_typed(setting.value), as_typed(setting.default)
        table.add_row(
            setting.name, plain(value, "" if value == default else "bold"), plain(default), plain(setting.help)
        )
    print_table(table)


def as_typed(value: Any) -> str:
    """A value as ``--set`` takes it."""
    if isinstance(value, tuple | list):
        return ", ".join(map(as_typed, value))
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def corrections_command(json_: AsJson = False) -> None:
    """Compare the corrections: what each needs and what it can do."""
    import inspect
    from dataclasses import asdict

    from debiaspl.debias import CORRECTIONS

    declared: list[dict[str, Any]] = [
        {"name": name, "about": (inspect.getdoc(made) or "").partition("\n")[0], "traits": asdict(traits)}
        for name, made in CORRECTIONS.items()
        if (traits := getattr(made, "traits", None)) is not None
    ]
    if json_:
        print_json(declared)
        return
    from rich.box import MINIMAL
    from rich.console import Console
    from rich.table import Column

    yes, no = plain("yes", "green"), plain("no", "red")
    columns = [Column("correction", no_wrap=True), *(Column(title, justify="center") for title in QUESTIONS.values())]
    rows = [
        [correction["name"], *(yes if correction["traits"][field] else no for field in QUESTIONS)]
        for correction in declared
    ]
    Console().print(filled_table(columns, rows, QUESTIONS_CAPTION, box=MINIMAL, pad_edge=False))


def results_command(
    folder: Annotated[
        Path | None,
        typer.Option(
            help="Where benchmarks/gain.py wrote; results/gain and results/start of the checkout unless given."
        ),
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(metavar="N1/M1", help="A long-tail protocol, such as 500/4000: other papers' numbers and ours."),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write all of it as one page: NAME.html with filters, or NAME.md."),
    ] = None,
    json_: AsJson = False,
) -> None:
    """Print what was measured on real data, beside the paper's numbers."""
    if page is not None:
        from debiaspl.cli.results_page import write_page

        write_page(page, folder, protocol, json_)
        return
    if protocol is not None:
        _protocol(protocol, folder, json_)
        return
    with plain_errors():
        from debiaspl.recipes.results import HEADER, home, rows, table
        from debiaspl.training import RunError

        places = home() if folder is None else (folder,)
        if not places or not places[0].is_dir():
            raise RunError(
                f"{places[0] if places else 'results/gain'} is not a folder. Results lie in the repository, not in the "
                "installed package: run this in a checkout, or name a folder that benchmarks/gain.py wrote: --folder."
            )
        found = rows(*places)
        if not any(row.accuracy for row in found):
            raise RunError(
                f"{places[0]} holds no results. Expected a folder for each cell, such as "
                f"{places[0] / found[0].cell}, with files that benchmarks/gain.py wrote."
            )
        if json_:
            print_json([row.to_json() for row in found])
            return
        print_table(filled_table(HEADER, table(found), RESULTS_CAPTION))
        for gpu in sorted({row.gpu for row in found if row.gpu}):
            say(f"Measured on one {gpu}.")


def _protocol(protocol: str, folder: Path | None, json_: bool) -> None:
    """Print one long-tail protocol."""
    from dataclasses import asdict
    from textwrap import wrap

    with plain_errors():
        from rich.table import Column
        from rich.text import Text

        from debiaspl.recipes.protocol_table import FOLDER, protocol_rows, protocol_table
        from debiaspl.recipes.results import home
        from debiaspl.training import RunError

        if folder is not None and not folder.is_dir():
            raise RunError(f"{folder} is not a folder. Expected one with files that benchmarks/gain.py wrote.")
        places = [place.parent / FOLDER for place in home()[:1]] if folder is None else [folder]
        found = protocol_rows(protocol, next(iter(places), None))
        if json_:
            print_json([asdict(row) for row in found])
            return
        header, lines, notes = protocol_table(protocol, found)
        columns = [Column(Text(title)) for title in header]
        # Plain texts, but for the ends of lines.
        cells = [[Text("\n".join(map(printable, cell.split("\n")))) for cell in line] for line in lines]
        print_table(filled_table(columns, cells, box=None, pad_edge=False))
        say("")
        for note in (PROTOCOL_CAPTION, *notes):
            for line in wrap(note, 80, subsequent_indent="  ", break_on_hyphens=False):
                say(line)
