"""``debiaspl results``: what was measured, beside the paper's numbers."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from debiaspl._printable import printable
from debiaspl.cli.columns import chosen_by, columns, paragraph
from debiaspl.cli.options import AsJson, OverwriteFiles
from debiaspl.cli.terminal import filled_table, plain_errors, print_json, print_table, say

if TYPE_CHECKING:
    from debiaspl.recipes.results import MeasuredRow

WIDTHS, NUMBERS = (26, 7, 19, 5, 8, 5), (3, 4, 5)
"""Columns of the table, 80 in all, and which of them are numbers."""
CAPTION = (
    "ours %: mean over folds (worst to best), top-1 on the balanced test set, of the averaged weights after the last "
    "step. seconds: of one fold's whole process, start-up included; in brackets, how many runs shared the GPU. paper: "
    "WRN-28-2, 2^19 steps, five folds; most of its FixMatch numbers are copied from other papers. open: not measured.",
    "Only the recipe 'paper' can be compared with the paper's number: 'minutes' and 'start' are contrastmatch on "
    "ResNet-9.",
)
PROTOCOL_CAPTION = (
    "Top-1 % on the balanced test set, means over runs. g100: 100 to 1; unlabeled images are distributed as the "
    "labels, or uniform (unif.), or reversed (rev.). Ours: the averaged weights after the last step. Papers differ in "
    "which images are unlabeled and in what they report: docs/data.md."
)


def results_command(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WORD...",
            help="Only rows with these words: an image set, a method or a recipe.",
            show_default="all",
        ),
    ] = None,
    measured: Annotated[bool, typer.Option("--measured", help="Only rows that were measured here.")] = False,
    folder: Annotated[
        Path | None,
        typer.Option(help="Results of benchmarks/gain.py.", show_default="results/, or the package's copy of it"),
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(
            metavar="N1/M1",
            help="A long-tail protocol, such as 500/4000: other papers' numbers and ours.",
            show_default="the paper's tables",
        ),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write all as one page: NAME.html or NAME.md.", show_default="print"),
    ] = None,
    overwrite: OverwriteFiles = False,
    json_: AsJson = False,
) -> None:
    """Print what was measured on real data, beside the paper's numbers."""
    with plain_errors():
        from debiaspl.training import RunError

        if folder is not None and not folder.is_dir():
            raise RunError(f"{folder} is not a folder. Expected one with files that benchmarks/gain.py wrote.")
        if page is not None or protocol is not None:
            option = "--protocol" if page is None else "--page"
            others = {"--measured": measured, "words": words, "--json": json_ and page, "--protocol": protocol and page}
            given = [name for name, value in others.items() if value]
            if given:
                raise ValueError(f"{option} shows all of it, and {' and '.join(given)} would not act. Leave them out.")
        if page is not None:
            _write_page(page, folder, overwrite)
        elif protocol is not None:
            _print_protocol(protocol, folder, json_)
        else:
            _print_results(words or [], measured, folder, json_)


def _print_results(words: list[str], measured: bool, folder: Path | None, json_: bool) -> None:
    from debiaspl.recipes.all_results import about
    from debiaspl.recipes.method_names import MARGINS, MARGINS_WORDS
    from debiaspl.recipes.results import HEADER, home, narrow_table, rows
    from debiaspl.training import RunError

    places = home() if folder is None else (folder,)
    every = rows(*places)
    if not any(row.accuracy for row in every):
        raise RunError(
            f"{places[0]} holds no results. Expected a folder for each cell, such as {places[0] / every[0].cell}, with "
            "files that benchmarks/gain.py wrote."
        )
    found = [
        row
        for row in every
        if chosen_by(words, row.cell, about(row.cell), row.method, row.recipe) and (row.accuracy or not measured)
    ]
    if not found:
        raise ValueError(f"no result has {' and '.join(words)} in its cell, method or recipe.")
    if json_:
        print_json([row.to_json() for row in found])
        return
    say("\n".join(columns(HEADER, WIDTHS, NUMBERS)), as_is=True)
    groups: dict[str, list[MeasuredRow]] = {}
    for row in found:
        groups.setdefault(row.cell, []).append(row)
    for cell, group in groups.items():
        say("")
        say("\n".join(paragraph(f"{cell}: {about(cell)}")))
        for cells in narrow_table(group):
            say("\n".join(columns(cells, WIDTHS, NUMBERS)), as_is=True)
    gpus = sorted({row.gpu for row in found if row.gpu})
    alone = [f"{MARGINS_WORDS}."] if any(MARGINS in row.method for row in found) else []
    for note in (*CAPTION, *alone, *(f"Measured on one {gpu}." for gpu in gpus)):
        say("")
        say("\n".join(paragraph(note)))


def _print_protocol(protocol: str, folder: Path | None, json_: bool) -> None:
    """Print one long-tail protocol."""
    from dataclasses import asdict

    from rich.table import Column
    from rich.text import Text

    from debiaspl.recipes import result_files
    from debiaspl.recipes.protocol_table import FOLDER, protocol_rows, protocol_table

    found = protocol_rows(protocol, result_files.home() / FOLDER if folder is None else folder)
    if json_:
        print_json([asdict(row) for row in found])
        return
    header, lines, notes = protocol_table(protocol, found)
    headings = [Column(Text(title)) for title in header]
    # Plain text; only line ends are kept.
    cells = [[Text("\n".join(map(printable, cell.split("\n")))) for cell in line] for line in lines]
    print_table(filled_table(headings, cells, box=None, pad_edge=False))
    say("")
    for note in (PROTOCOL_CAPTION, *notes):
        say("\n".join(paragraph(note, indent="  ")))


def _write_page(page: Path, folder: Path | None, overwrite: bool) -> None:
    """Write an HTML page, or Markdown with a figure where the name ends in .md."""
    from debiaspl.files import refuse_existing, write_text
    from debiaspl.recipes.all_results import all_lines, standard_folder
    from debiaspl.recipes.results import home
    from debiaspl.recipes.results_figure import minutes_figure
    from debiaspl.recipes.results_page import page as html_page
    from debiaspl.recipes.results_text import text

    figure = page.with_suffix(".svg") if page.suffix == ".md" else None
    for file in (page, figure):
        if file is not None:
            refuse_existing(file, overwrite)
    places = home() if folder is None else (folder,)
    lines = all_lines(places, standard_folder(places))
    if figure is not None:
        write_text(figure, minutes_figure(lines))
        write_text(page, text(lines, figure.name))
    else:
        write_text(page, html_page(lines))
    say(f"The page is {page}: {sum(bool(line.accuracy) for line in lines)} measured rows of {len(lines)}.")
