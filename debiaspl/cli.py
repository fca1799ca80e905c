"""The command line. Everything heavy is imported by the command that needs it: ``--help`` answers at once."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    name="debiaspl",
    help="Image classifiers from a handful of labels, with the bias taken out of their pseudo-labels.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from debiaspl import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None: ...


@app.command("demo")
def demo_command(
    out: Annotated[Path, typer.Option(help="Folder for the runs.")] = Path("runs/demo"),
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds; each is another choice of labels.")] = 5,
    long_tail: Annotated[bool, typer.Option("--long-tail", help="Classes of 20 to 1, 10 % labeled.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a demo that was stopped.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Begin anew in the same folder.")] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Runs at a time; as many as there are cores.")] = None,
) -> None:
    """Compare supervised, FixMatch and DebiasPL on embedded real digits, one label a class."""
    with _plain_errors():
        from rich.console import Console

        from debiaspl.recipes.demo import demo

        console = Console()
        console.print(_demo_headline(long_tail, seeds), highlight=False)
        with _progress() as watch:
            go_on = " ".join(["debiaspl demo", *_given(sys.argv[2:]), "--resume"])
            comparison = demo(out, range(seeds), long_tail, resume, overwrite, workers, watch, go_on)
        console.print(_table(comparison))
        console.print(f"Runs, table, figure and results.json are in {out}", highlight=False, soft_wrap=True)


@app.command("train")
def train_command(
    recipe: Annotated[str, typer.Option(help="Which experiment; see: debiaspl recipes.")],
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting; may be repeated.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the run; runs/RECIPE unless given.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped.")] = False,
    device: Annotated[str | None, typer.Option(help="cuda or cpu; a GPU if there is one.")] = None,
    workers: Annotated[int, typer.Option(min=0, help="Processes that read images from files.")] = 2,
) -> None:
    """Train one recipe."""
    with _plain_errors():
        from debiaspl.recipes import recipe as find
        from debiaspl.training import train

        chosen = find(recipe).with_settings(settings or [])
        folder = out or Path("runs") / chosen.name
        go_on = " ".join(["debiaspl train", *_given(sys.argv[2:]), "--resume"])
        results = train(chosen, folder, resume, device, workers, go_on)
        typer.echo(f"accuracy {100 * results['accuracy']:.1f} % on {results['test']:,} test images, {chosen.name}")
        typer.echo(f"worst class {100 * results['worst_recall']:.0f} %; the run is in {folder}")


@app.command("recipes")
def recipes_command(json_: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """List the recipes."""
    from debiaspl.recipes import RECIPES

    if json_:
        import json

        typer.echo(json.dumps([recipe.to_json() for recipe in RECIPES.values()], indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("recipe", "experiment", "paper %", "cost", box=None, pad_edge=False)
    for recipe in RECIPES.values():
        table.add_row(recipe.name, recipe.about, "-" if recipe.paper is None else f"{recipe.paper:.1f}", recipe.cost)
    Console().print(table)


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Errors that a user can mend are a message, not a traceback."""
    try:
        yield
    except (ValueError, ImportError, RuntimeError) as error:
        from debiaspl.training import Interrupted, RunError

        if isinstance(error, RuntimeError) and not isinstance(error, RunError):
            raise
        if isinstance(error, Interrupted):
            typer.echo(str(error), err=True)
            raise typer.Exit(128 + error.signal) from None
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None


def _given(arguments: list[str]) -> list[str]:
    """The arguments as they were typed, for the command that goes on."""
    import shlex

    return [shlex.quote(argument) for argument in arguments if argument not in ("--resume", "--overwrite")]


def _demo_headline(long_tail: bool, seeds: int) -> str:
    setting = "classes of 20 to 1, 10 % of each labeled" if long_tail else "balanced classes, one label each"
    return f"Handwritten digits, {setting}; 500 balanced test images; {seeds} seed{'s' if seeds > 1 else ''}."


@contextmanager
def _progress() -> Iterator[Any]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = TextColumn("training"), BarColumn(), TextColumn("{task.percentage:3.0f} %"), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("training")
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _table(comparison: Any) -> Any:
    from rich.table import Table

    from debiaspl.report.comparison import HEADER

    table = Table(
        *HEADER, caption="mean ± standard deviation over seeds; imbalance: largest class over smallest, median"
    )
    for row in comparison.rows():
        table.add_row(*row)
    return table
