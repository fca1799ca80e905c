"""``debiaspl data``: what concerns image sets. Everything heavy is imported by the command that needs it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from debiaspl.data.download import Watch

data_app = typer.Typer(name="data", help="Fetch image sets.", no_args_is_help=True)


@data_app.callback()
def _data() -> None: ...


@data_app.command("get")
def get_command(
    name: Annotated[str, typer.Argument(help="cifar10, cifar100, eurosat, mnist or stl10.")],
    root: Annotated[
        Path | None, typer.Option(help="Folder for the set; $DEBIASPL_DATA or ~/.cache/debiaspl unless given.")
    ] = None,
) -> None:
    """Fetch a known set from its authors."""
    with _plain_errors():
        from debiaspl.data.download import get
        from debiaspl.data.known import known_set

        if name == "digits":
            typer.echo("digits come with scikit-learn (pip install 'debiaspl[digits]'): there is nothing to fetch")
            return
        known = known_set(name)
        with _progress() as watch:
            got = get(known, root, watch)
        typer.echo(f"{name} is in {got.place}" if got.fetched else f"{name} is already in {got.place}")


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Errors that a user can mend are a message, not a traceback."""
    try:
        yield
    except (ValueError, ImportError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo("stopped; the same command goes on from here", err=True)
        raise typer.Exit(130) from None


@contextmanager
def _progress() -> Iterator["Watch"]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=None)
        yield lambda file, done, total: progress.update(task, description=file, completed=done, total=total)
