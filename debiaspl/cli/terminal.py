"""Shared by all commands: error messages, tables, progress bars, and the command as it was typed."""

import io
import json
import logging
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NoReturn

import typer

from debiaspl._printable import counted, printable, prose
from debiaspl._processes import rank
from debiaspl.files import FileError, write_text

MOST_NAMED = 10
"""How many files that cannot be used are named."""


def say(text: object, err: bool = False, as_is: bool = False) -> None:
    """Print text that may contain names from untrusted files. On a terminal, long lines are broken between words;
    ``as_is``: never, for text that a program reads."""
    stream = io.StringIO() if as_is else sys.stderr if err else sys.stdout
    typer.echo(prose(str(text), stream), err=err)


class _Prose(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return prose(super().format(record), sys.stderr)


def break_warnings() -> None:
    """Print logged warnings as ``say`` prints, where no program has decided otherwise."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_Prose())


@contextmanager
def plain_errors() -> Iterator[None]:
    """Print errors that a user can fix as a message, without a traceback."""
    try:
        yield
    except OSError as error:
        if isinstance(error, BrokenPipeError) and error.filename is None:
            raise  # the reader of a pipe has closed it: typer exits silently
        fail(f"{error.filename or ''}: {error.strerror or error}")
    except KeyboardInterrupt:
        say("Stopped.", err=True)
        raise typer.Exit(130) from None
    except (ValueError, ImportError, RuntimeError, MemoryError) as error:
        from debiaspl.training import Interrupted, RunError
        from debiaspl.training.parts import went_through

        if went_through(error):
            raise
        if any(name in repr(error) for name in ("MemoryError", "OutOfMemoryError", "DefaultCPUAllocator")):
            reason = str(error).partition("\n")[0].rstrip(".") or type(error).__name__
            fail(f"not enough memory: {reason}. Use smaller batches or images, or fewer workers.")
        if isinstance(error, RuntimeError) and not isinstance(error, RunError):
            raise
        if isinstance(error, Interrupted):
            if not rank():
                say(str(error), err=True)
            raise typer.Exit(128 + error.signal) from None
        fail(str(error))


def fail(message: str, code: int = 1) -> NoReturn:
    message = f"error: {message}" if rank() is None else f"error on rank {rank()}: {message}"
    say(message, err=True)
    if rank() is not None:
        tell(message)
        # Python would end NCCL first, which waits for the others; torchrun must see at once that this one is gone.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    raise typer.Exit(code) from None


def tell(error: str) -> None:
    """Write the error to torchrun's error file, so that torchrun's final summary shows the reason."""
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not path or not Path(path).parent.is_dir():
        return
    more = {"py_callstack": error, "timestamp": str(int(time.time()))}
    with suppress(FileError):  # the error is on the terminal already
        # torchrun may kill this process at any moment and cannot read a partial file.
        write_text(Path(path), json.dumps({"message": {"message": error, "extraInfo": more}}))


def resume_command() -> str:
    """The command as it was typed, with --resume."""
    if rank() is not None:
        return "the same torchrun command, with --resume"
    typed = [argument for argument in sys.argv[1:] if argument not in ("--resume", "--overwrite")]
    return shlex.join(["debiaspl", *typed, "--resume"])


def note_new_run(resume: bool, folder: Path, mark: str = "config.json") -> None:
    """Say that ``--resume`` starts a new run, where ``folder`` has none: its name may be mistyped. It is no error: job
    files always say --resume."""
    if resume and not rank() and not (folder / mark).exists():
        say(f"--resume found no run in {folder}, so a new one starts there.", err=True)


def warn_of_bad(bad: Mapping[str, str], what: str = "read", hint: str = "") -> None:
    """Name some of the files that could not be used, with the reason."""
    if bad:
        say(f"warning: {counted(len(bad), 'image')} could not be {what}:", err=True)
    for name, reason in list(bad.items())[:MOST_NAMED]:
        say(f"  {printable(name)}: {reason}", err=True)
    if len(bad) > MOST_NAMED:
        say(f"  and {len(bad) - MOST_NAMED:,} more{hint}", err=True)


def print_table(header: Iterable[str], rows: Iterable[Sequence[str]], numbers: bool = False) -> None:
    """Print a table; all columns but the first to the right, and closer, if they are ``numbers``. On a narrow terminal
    cells are broken; nothing is cut off. Elsewhere nothing is broken."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 1 if numbers else 2, 0, 0))
    for place, name in enumerate(header):  # as Text, which is never read as markup
        table.add_column(Text(printable(name)), overflow="fold", justify="right" if numbers and place else "left")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 10_000
    console.print(table)


def _minutely(unit: str) -> Callable[[str, int, int | None], None]:
    from debiaspl.training.log import ProgressLine

    lines: dict[tuple[str, int], ProgressLine] = {}

    def show(what: str, done: int, total: int | None) -> None:
        if total is not None:
            line = lines.setdefault((what, total), ProgressLine(what, done, total, unit=unit))
            line.show(done, {"losses": {}})

    return show


@contextmanager
def progress_bar(unit: str, what: str | None = None) -> Iterator[Callable[..., None]]:
    """A progress bar on a terminal, a line a minute elsewhere. Call it with a description, unless ``what`` is the
    description, the amount done and the total.

    ``unit`` is ``bytes``, or a word for what is counted. The bar is shown from the first call on and disappears when
    all is done: a run that trains afterwards shows a line of its own. A new description has its own remaining time.
    """
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _minutely(unit) if what is None else partial(_minutely(unit), what)
        return
    amount = DownloadColumn() if unit == "bytes" else MofNCompleteColumn()
    columns = TextColumn("{task.description}", markup=False), BarColumn(), amount, TimeRemainingColumn()
    progress = Progress(*columns, console=console, transient=True)
    task = progress.add_task("")

    def show(what: str, done: int, total: int | None) -> None:
        if (what, total) != (progress.tasks[0].description, progress.tasks[0].total):
            progress.reset(task, description=what, total=total)
        progress.update(task, completed=done)
        if done != total:
            progress.start()
        else:
            progress.stop()

    try:
        yield show if what is None else partial(show, what)
    finally:
        progress.stop()
