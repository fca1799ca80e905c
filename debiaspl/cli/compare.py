"""``debiaspl compare``."""

from pathlib import Path
from typing import Annotated, Any

import typer

from debiaspl.cli.resuming import warn_of_new_experiment
from debiaspl.cli.terminal import command_to_go_on, plain_errors, progress_bar

CAPTION = (
    "Mean ± standard deviation over seeds, on the test set. Worst: of the class least well recognised. "
    "Better on: seeds on which the correction is the better one."
)


def compare_command(
    photos: Annotated[
        Path | None, typer.Argument(help="A folder of photos with labels, instead of --data; see: debiaspl train.")
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(help="Its table of labels (file_name,label), if it lies elsewhere.")
    ] = None,
    encoder: Annotated[
        str | None, typer.Option(help="A pretrained network for the photos, which stays as it is: efficientnet-lite0.")
    ] = None,
    data: Annotated[str | None, typer.Option(help="A known set or a folder; that of the recipe unless given.")] = None,
    algorithms: Annotated[
        str | None, typer.Option(help="Names with commas between, PATH.py:ClassName among them; all unless given.")
    ] = None,
    corrections: Annotated[
        str, typer.Option(help="Names with commas between; own is what an algorithm's paper has built in.")
    ] = "none,debiaser",
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds; each is another choice of labels.")] = 3,
    recipe: Annotated[str | None, typer.Option(help="What all runs have in common; digits-10 for digits.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting; may be repeated.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the runs; runs/compare-DATA unless given.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a matrix that was stopped.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Begin anew in the same folder.")] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Runs at a time; as many as there are cores.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print all numbers as JSON.")] = False,
) -> None:
    """Train algorithms with and without corrections on one data set, and print the matrix."""
    with plain_errors():
        import json

        from rich.console import Console

        from debiaspl.algorithms import ALGORITHMS
        from debiaspl.recipes.compare import compare, plan

        base = _base(photos, labels, encoder, data, recipe)
        chosen = list(ALGORITHMS) if algorithms is None else _names(algorithms)
        planned = plan(base, chosen, _names(corrections), range(seeds), settings or [])
        folder = out or Path("runs") / f"compare-{base.name if photos else Path(data or recipe or 'digits').name}"
        console = Console()
        if not json_:
            console.print(_headline(planned), highlight=False)
        if resume:
            warn_of_new_experiment(folder, "compare", "matrix")
        with progress_bar("steps") as show:
            matrix, numbers = compare(
                planned,
                folder,
                resume,
                overwrite,
                workers,
                lambda done, total: show("training", done, total),
                command_to_go_on(),
            )
        if json_:
            typer.echo(json.dumps(numbers, indent=2))
            return
        console.print(_table(matrix, console))
        for note in [CAPTION, *matrix.notes(), *planned.notes()]:
            console.print(note, highlight=False, markup=False)
        console.print(f"Runs, table.md and results.json are in {folder}", highlight=False, soft_wrap=True)


def _base(photos: Path | None, labels: Path | None, encoder: str | None, data: str | None, recipe: str | None) -> Any:
    """What all runs have in common."""
    from debiaspl.recipes.compare import base_recipe

    if photos is None:
        if labels is not None or encoder is not None:
            raise ValueError("--labels and --encoder are for a folder of photos: debiaspl compare PHOTOS.")
        return base_recipe(data, recipe)
    if data is not None or recipe is not None:
        raise ValueError(f"{photos} is given, and --data or --recipe too; expected one of them.")
    from debiaspl.cli.photos import load_named
    from debiaspl.photos.matrix import base_recipe as base_on_photos
    from debiaspl.photos.survey import survey

    found = survey(photos, labels)
    return base_on_photos(found, None if encoder is None else (encoder, load_named(found, "cpu", encoder)))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _headline(planned: Any) -> str:
    counts = (
        (len(planned.cells), "algorithm"),
        (len(planned.corrections), "correction"),
        (len(planned.seeds), "seed"),
    )
    product = " x ".join(f"{count} {word}{'s' if count > 1 else ''}" for count, word in counts)
    runs = len({job.out for job in planned.jobs(Path()).values()})
    return f"{planned.base.data}, recipe {planned.base.name}: {product}, {runs} runs."


def _table(matrix: Any, console: Any) -> Any:
    """The first form of the table that the terminal has room for, or else the last."""
    from rich.table import Column, Table

    for header, *rows in matrix.tables():
        columns = [Column(name.replace(" ", "\n", 1) if len(name) > 8 else name, no_wrap=True) for name in header]
        table = Table(*columns, box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for row in rows:
            table.add_row(*row)
        if console.measure(table, options=console.options.update(max_width=1000)).maximum <= console.width:
            break
    return table
