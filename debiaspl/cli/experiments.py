"""``debiaspl demo``, ``train`` and ``recipes``."""

from pathlib import Path
from typing import Annotated, Any

import typer

from debiaspl._torchrun import rank
from debiaspl.cli.photos import train_on_photos
from debiaspl.cli.resuming import warn_of_new_experiment, warn_of_new_run
from debiaspl.cli.terminal import (
    FILE_COLUMN,
    LABEL_COLUMN,
    command_to_go_on,
    plain_errors,
    print_table,
    progress_bar,
)

CAPTION = (
    "Mean ± standard deviation over seeds, on 500 balanced test images. Worst: of the class least well recognised. "
    "Imbalance: pseudo-labels of the most used class for each one of the least used, in the second half of training, "
    "median over seeds."
)

VARIES = "Another processor rounds differently: single seeds can move by ten points, the mean by one or two."


def demo_command(
    out: Annotated[Path, typer.Option(help="Folder for the runs.")] = Path("runs/demo"),
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds; each is another choice of labels.")] = 4,
    long_tail: Annotated[bool, typer.Option("--long-tail", help="Classes of 20 to 1, 10 % labeled.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a demo that was stopped.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Begin anew in the same folder.")] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Runs at a time; as many as there are cores.")] = None,
) -> None:
    """Compare supervised, FixMatch and DebiasPL on embedded real digits, one label a class."""
    with plain_errors():
        from rich.console import Console

        from debiaspl.recipes.demo import demo

        console = Console()
        console.print(_demo_headline(long_tail, seeds), highlight=False)
        if resume:
            warn_of_new_experiment(out, "demo", "demo")
        with progress_bar("steps") as show:
            comparison = demo(
                out,
                range(seeds),
                long_tail,
                resume,
                overwrite,
                workers,
                lambda done, total: show("training", done, total),
                command_to_go_on(),
            )
        console.print(_table(comparison))
        console.print(f"{comparison.finding('DebiasPL')} {VARIES}", highlight=False)
        console.print(f"Runs, table, figure and results.json are in {out}", highlight=False, soft_wrap=True)
        console.print(f"The report is {out / 'report.html'}", highlight=False, soft_wrap=True, markup=False)


def train_command(
    photos: Annotated[
        Path | None, typer.Argument(help="A folder of photos: class folders and unlabeled/, or any, with labels.csv.")
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(help="The table of labels (file_name,label), if it lies elsewhere.")
    ] = None,
    file_column: Annotated[str | None, typer.Option(metavar="NAME", help=FILE_COLUMN)] = None,
    label_column: Annotated[str | None, typer.Option(metavar="NAME", help=LABEL_COLUMN)] = None,
    encoder: Annotated[
        str | None,
        typer.Option(help="A pretrained network: efficientnet-lite0, a vision model of the hub, or its folder."),
    ] = None,
    recipe: Annotated[str | None, typer.Option(help="Which experiment instead; see: debiaspl recipes.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting; may be repeated.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the run; runs/RECIPE, or runs/FOLDER, unless given.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped.")] = False,
    device: Annotated[str | None, typer.Option(help="cuda or cpu; a GPU if there is one.")] = None,
    workers: Annotated[int, typer.Option(min=0, help="Processes that read images from files.")] = 2,
    root: Annotated[Path | None, typer.Option(help="A further folder to look for known sets in.")] = None,
    eager: Annotated[bool, typer.Option("--eager", help="On a GPU: do not record the step; slower.")] = False,
    timeout: Annotated[
        float | None,
        typer.Option(min=1, help="With torchrun: seconds after which a process that hangs ends the run; 600."),
    ] = None,
    allow_alike: Annotated[
        bool, typer.Option("--allow-alike", help="Classes of photos may differ in capitals or spaces alone.")
    ] = False,
) -> None:
    """Train on a folder of photos with a few labels, or train one recipe.

    With torchrun, several processes train one recipe together: torchrun --nproc-per-node=2 -m debiaspl train ...
    """
    if photos is not None and recipe is None:
        with plain_errors():
            _refuse_for_photos(photos, root, timeout)
        table = labels, file_column, label_column
        train_on_photos(photos, table, encoder, settings or [], out, resume, device, workers, eager, allow_alike)
        return
    with plain_errors():
        for_photos = (labels, file_column, label_column, encoder, allow_alike or None)
        if recipe is None or photos is not None or any(option is not None for option in for_photos):
            both = f"{photos} and --recipe {recipe} are both given; " if recipe and photos else ""
            raise ValueError(
                f"{both}expected a folder of photos (debiaspl train photos/ --labels labels.csv), or else --recipe "
                "with the name of an experiment; --labels, --file-column, --label-column, --encoder and --allow-alike "
                "are for photos."
            )
        from debiaspl.recipes import RECIPES
        from debiaspl.recipes import recipe as find
        from debiaspl.report.runs import write_report
        from debiaspl.training import Run
        from debiaspl.training.group import TIMEOUT
        from debiaspl.training.loop import RunOptions, train_as

        chosen = find(recipe).with_settings(settings or [], load_files=True)
        folder = out or Path("runs") / chosen.name
        ended = resume and Run(folder).results_path.exists()
        if resume:
            warn_of_new_run(folder, chosen)
        limit = TIMEOUT if timeout is None else timeout
        options = RunOptions(resume, device, workers, root, eager, limit, command_to_go_on())
        results = train_as(options, chosen, folder)
        if rank():
            return  # the first one speaks for all
        if ended:
            typer.echo(f"The run in {folder} had ended; nothing was trained.")
        typer.echo(f"accuracy {100 * results['accuracy']:.1f} % on {results['test']:,} test images, {chosen.name}")
        typer.echo(f"worst class {100 * results['worst_recall']:.0f} %; the run is in {folder}")
        if "skipped" in results:
            typer.echo(f"{len(results['skipped'])} files could not be read; results.json names them", err=True)
        typer.echo(f"The report is {write_report([folder], folder / 'report.html', RECIPES)}")


def recipes_command(json_: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """List the recipes."""
    from debiaspl.recipes import RECIPES

    if json_:
        import json

        typer.echo(json.dumps([recipe.to_json() for recipe in RECIPES.values()], indent=2))
        return
    from rich.table import Table

    table = Table("recipe", "experiment", "paper %", "cost", box=None, pad_edge=False)
    for recipe in RECIPES.values():
        table.add_row(recipe.name, recipe.about, "-" if recipe.paper is None else f"{recipe.paper:.1f}", recipe.cost)
    print_table(table)


def _refuse_for_photos(photos: Path, root: Path | None, timeout: float | None) -> None:
    """What is for recipes alone would do nothing here."""
    if rank() is not None:
        raise ValueError("a folder of photos is trained on by one process; several train a --recipe.")
    if root is not None:
        raise ValueError(
            f"--root {root} is where known sets are looked for, which a --recipe names; the photos are in {photos}. "
            "Leave it out."
        )
    if timeout is not None:
        raise ValueError(
            f"--timeout {timeout:g} is for several processes, started with torchrun, that wait for each other. They "
            "train a --recipe; a folder of photos is trained on by one. Leave it out."
        )


def _demo_headline(long_tail: bool, seeds: int) -> str:
    setting = "classes of 20 to 1, 10 % of each labeled" if long_tail else "balanced classes, one label each"
    return f"Handwritten digits, {setting}; {seeds} seed{'s' if seeds > 1 else ''}."


def _table(comparison: Any) -> Any:
    from rich.table import Table

    table = Table(*comparison.header(), caption=CAPTION, caption_justify="left")
    for row in comparison.rows():
        table.add_row(*row)
    return table
