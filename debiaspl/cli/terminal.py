"""Shared by all commands: error messages, tables, progress bars, and the command as it was typed."""

import json
import logging
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from debiaspl._printable import printable
from debiaspl._torchrun import rank, tell
from debiaspl._wrapped import unmarked, width_of, wrapped

if TYPE_CHECKING:
    from rich.table import Column, Table
    from rich.text import Text

WIDE = 10_000
"""In columns; wider than any table."""


def say(text: object, err: bool = False, as_is: bool = False) -> None:
    """Print text that may contain names from untrusted files, on lines of its own. On a terminal, long lines are broken
    between words; ``as_is``: never, for text that a program reads."""
    width = None if as_is else width_of(sys.stderr if err else sys.stdout)
    lines = (part for line in str(text).split("\n") for part in wrapped(line, width))
    typer.echo("\n".join(map(printable, lines)), err=err)


class _Shown(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        width = width_of(sys.stderr)
        lines = (part for line in super().format(record).split("\n") for part in wrapped(line, width))
        return "\n".join(map(printable, lines))


def break_warnings() -> None:
    """Print logged warnings as ``say`` prints, where no program has decided otherwise."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_Shown())


def plain(text: object, style: str = "") -> "Text":
    """The same for rich, without markup."""
    from rich.text import Text

    return Text(printable(unmarked(str(text))), style)


@contextmanager
def plain_errors() -> Iterator[None]:
    """Print errors that a user can fix as a message, without a traceback."""
    said = "error" if rank() is None else f"error on rank {rank()}"
    try:
        yield
    except OSError as error:
        if isinstance(error, BrokenPipeError) and error.filename is None:
            raise  # the reader of a pipe has closed it: typer exits silently
        _fail(f"{said}: {error.filename or ''}: {error.strerror or error}")
    except KeyboardInterrupt:
        say("Stopped.", err=True)
        raise typer.Exit(130) from None
    except (ValueError, ImportError, RuntimeError) as error:
        from debiaspl.training import Interrupted, RunError
        from debiaspl.training.own_file import went_through

        if went_through(error) or (isinstance(error, RuntimeError) and not isinstance(error, RunError)):
            raise
        if isinstance(error, Interrupted):
            if not rank():
                say(str(error), err=True)
            raise typer.Exit(128 + error.signal) from None
        _fail(f"{said}: {error}")


def _fail(message: str) -> NoReturn:
    say(message, err=True)
    if rank() is not None:
        tell(message)
        # Python would end NCCL first, which waits for the others; torchrun must see at once that this one is gone.
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


def print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2))


def filled_table(
    header: Iterable["Column | str"], rows: Iterable[Sequence["Text | str"]], caption: str | None = None, **style: Any
) -> "Table":
    """A rich table with these rows; text is never read as markup."""
    from rich.table import Column, Table

    shown = None if caption is None else plain(caption, "table.caption")
    columns = [Column(plain(name)) if isinstance(name, str) else name for name in header]
    table = Table(*columns, caption=shown, caption_justify="left", **style)
    for row in rows:
        table.add_row(*(plain(cell) if isinstance(cell, str) else cell for cell in row))
    return table


def print_table(table: "Table") -> None:
    """Print a table. On a terminal that is too narrow, cells are broken between words, those of the first column last,
    and on a very narrow one within words; nothing is cut off. Elsewhere nothing is broken."""
    from rich.console import Console
    from rich.measure import Measurement

    first, *others = table.columns
    first.no_wrap = True
    console = Console()
    wide = console.options.update(width=WIDE)
    if not console.is_terminal:
        Console(width=max(console.width, console.measure(table, options=wide).maximum)).print(table)
        return

    def measured(column: "Column") -> Measurement:
        found = [Measurement.get(console, wide, cell) for cell in (column.header, *column.cells)]
        return Measurement(max(one.minimum for one in found), max(one.maximum for one in found))

    for column in others:
        column.min_width = measured(column).minimum
    first.min_width = measured(first).maximum
    if console.measure(table, options=wide).minimum > console.width:
        first.no_wrap, first.min_width, first.overflow = False, None, "fold"
        for column in others:
            column.max_width = column.min_width
    if console.measure(table, options=wide).minimum > console.width:
        for column in others:
            column.no_wrap, column.min_width, column.max_width, column.overflow = False, None, None, "fold"
    console.print(table)


@contextmanager
def progress_bar(unit: str) -> Iterator[Callable[[str, int, int | None], None]]:
    """A progress bar on a terminal, nothing elsewhere. Call it with a description, the amount done and the total.

    ``unit`` is ``bytes``, or a word for what is counted. The bar is shown from the first call on and disappears when
    all is done: a run that trains afterwards shows a line of its own. A new description starts a new task, with its
    own remaining time.
    """
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda what, done, total: None
        return
    amount = DownloadColumn() if unit == "bytes" else MofNCompleteColumn()
    columns = TextColumn("{task.description}", markup=False), BarColumn(), amount, TimeRemainingColumn()
    progress = Progress(*columns, console=console, transient=True)

    def show(what: str, done: int, total: int | None) -> None:
        shown = progress.tasks[0] if progress.tasks else None
        if shown is None or shown.description != what or shown.total != total:
            for task in progress.task_ids:
                progress.remove_task(task)
            progress.add_task(what, total=total, completed=done)
        else:
            progress.update(shown.id, completed=done)
        if done != total:
            progress.start()
        elif progress.live.is_started:
            progress.stop()

    try:
        yield show
    finally:
        if progress.live.is_started:
            progress.stop()
