"""``debiaspl results``."""

from pathlib import Path
from typing import Annotated

import typer

from debiaspl.cli.terminal import plain_errors, print_table

CAPTION = (
    "Accuracy: mean over folds (least to largest), top-1 % on the balanced test set, of the averaged weights after the "
    "last step. Seconds: of a fold's whole process, start-up included; several at once shared the GPU. "
    "Paper: 2^19 steps, five folds. reached: no less than the paper. below: less. open: not measured."
)


def results_command(
    folder: Annotated[
        Path | None, typer.Option(help="Where benchmarks/gain.py wrote; results/gain of the checkout unless given.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Print what was measured on real data, beside the paper's numbers."""
    with plain_errors():
        import json

        from debiaspl.recipes.results import HEADER, home, rows, table
        from debiaspl.training import RunError

        place = folder or home()
        if place is None or not place.is_dir():
            raise RunError(
                f"{place or 'results/gain'} is not a folder. Results lie in the repository, not in the installed "
                "package: run this in a checkout, or name a folder that benchmarks/gain.py wrote with --folder."
            )
        found = rows(place)
        if not any(row.accuracy for row in found):
            raise RunError(
                f"{place} holds no results. Expected a folder for each cell, such as {place / found[0].cell}, with "
                "files that benchmarks/gain.py wrote."
            )
        if json_:
            typer.echo(json.dumps([row.to_json() for row in found], indent=2))
            return
        from rich.table import Table

        shown = Table(*HEADER, caption=CAPTION, caption_justify="left")
        for cells in table(found):
            shown.add_row(*cells)
        print_table(shown)
        for gpu in sorted({row.gpu for row in found if row.gpu}):
            typer.echo(f"Measured on one {gpu}.")
