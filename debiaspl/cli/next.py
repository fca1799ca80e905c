"""``debiaspl next``: which images to label next."""

from pathlib import Path
from typing import Annotated

import typer

from debiaspl.cli.predict import counted, warn_of_bad
from debiaspl.cli.terminal import FILE_COLUMN, LABEL_COLUMN, plain_errors, progress_bar


def next_command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run that has ended.")],
    photos: Annotated[Path, typer.Argument(metavar="PHOTOS", help="A folder of images; those in its sub-folders too.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="A table with a column for the labels.")] = Path("next.csv"),
    count: Annotated[int, typer.Option(min=1, help="How many.")] = 50,
    labels: Annotated[
        Path | None,
        typer.Option(help="Table of images that have a label; that of the run or of the folder unless given."),
    ] = None,
    file_column: Annotated[str | None, typer.Option(metavar="NAME", help=FILE_COLUMN)] = None,
    label_column: Annotated[str | None, typer.Option(metavar="NAME", help=LABEL_COLUMN)] = None,
    page: Annotated[Path | None, typer.Option(help="Also write a page of small pictures (HTML).")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")] = False,
    device: Annotated[str | None, typer.Option(help="cuda or cpu; a GPU if there is one.")] = None,
) -> None:
    """Pick the images whose labels would tell the model most: uncertain ones, all of them different."""
    with plain_errors():
        from debiaspl.data.label_table import Columns
        from debiaspl.data.listing import list_images
        from debiaspl.deploy.labeled import labeled_files, learned_from_teacher
        from debiaspl.deploy.next import suggest
        from debiaspl.deploy.predict import refuse_existing
        from debiaspl.deploy.saved import load_model
        from debiaspl.files import write_text
        from debiaspl.training.device import find_device

        for path in (out, *([] if page is None else [page])):
            refuse_existing(path, overwrite)
        columns = Columns(file_column, label_column)
        known = labeled_files(run, photos, list_images(photos).files, labels, columns)
        model = load_model(run, find_device(device))
        with progress_bar("images") as show:
            found = suggest(model, photos, count, known, lambda done, total: show("looking", done, total))
        write_text(out, found.to_csv())
        left_out = "" if known is None else f", {len(known):,} with a label left out"
        typer.echo(f"{len(found.picked):,} of {counted(found.unlabeled, 'image')}{left_out}; they are in {out}")
        if labels is None and learned_from_teacher(run):
            typer.echo("The labels it learned from are its teacher's, which nobody has looked at: they do not count.")
        if known is None:
            typer.echo("Which images have a label already is not known: --labels FILE tells it.", err=True)
        if page is not None:
            from debiaspl.report.next_page import next_page

            write_text(page, next_page(found, run, photos, out, None if known is None else len(known)))
            typer.echo(f"The page is {page}")
        warn_of_bad(found.bad)
