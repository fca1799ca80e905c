"""What all commands share: plain errors, progress bars, and the command as it was typed."""

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import typer

from debiaspl._torchrun import rank, tell

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.table import Table

WIDE = 10_000
"""Columns; more than any table has."""
FILE_COLUMN = "Column of the table that names the image; file_name."
LABEL_COLUMN = "Column of the table that names its class; label."


@contextmanager
def plain_errors() -> Iterator[None]:
    """Errors that a user can mend are a message, not a traceback."""
    said = "error" if rank() is None else f"error on rank {rank()}"
    try:
        yield
    except OSError as error:
        if isinstance(error, BrokenPipeError) and error.filename is None:
            raise  # "| head" has heard enough: typer ends in silence
        _fail(f"{said}: {error.filename or ''}: {error.strerror or error}")
    except KeyboardInterrupt:
        typer.echo("Stopped.", err=True)
        raise typer.Exit(130) from None
    except (ValueError, ImportError, RuntimeError) as error:
        from debiaspl.training import Interrupted, RunError
        from debiaspl.training.own_file import went_through

        if went_through(error) or (isinstance(error, RuntimeError) and not isinstance(error, RunError)):
            raise
        if isinstance(error, Interrupted):
            if not rank():
                typer.echo(str(error), err=True)
            raise typer.Exit(128 + error.signal) from None
        _fail(f"{said}: {error}")


def _fail(message: str) -> NoReturn:
    typer.echo(message, err=True)
    if rank() is not None:
        tell(message)
        # Python would end NCCL first, which waits for the others; torchrun is to see at once that this one is gone.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)
    raise typer.Exit(1) from None


def command_to_go_on() -> str:
    """The command as it was typed, with --resume."""
    if rank() is not None:
        return "the same torchrun command, with --resume"
    typed = [argument for argument in sys.argv[1:] if argument not in ("--resume", "--overwrite")]
    return shlex.join(["debiaspl", *typed, "--resume"])


def print_table(table: "Table") -> None:
    """The first column, by which things are named, is never cut; and nothing is, where no terminal has a width."""
    from rich.console import Console

    table.columns[0].no_wrap = True
    console = Console()
    if not console.is_terminal:
        console = Console(width=max(console.width, console.measure(table, options=_wide(console)).maximum))
    console.print(table)


def _wide(console: "Console") -> "ConsoleOptions":
    return console.options.update(width=WIDE)


@contextmanager
def progress_bar(unit: str) -> Iterator[Callable[[str, int, int | None], None]]:
    """A bar on the terminal, silent elsewhere; told what is going on, how much is done, and of how much.

    ``unit`` is ``bytes``, or a word for what is counted.
    """
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    amount = DownloadColumn() if unit == "bytes" else MofNCompleteColumn()
    columns = TextColumn("{task.description}", markup=False), BarColumn(), amount, TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=None)
        yield lambda what, done, total: progress.update(task, description=what, completed=done, total=total)
