"""One labelling session per table."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from debiaspl.training.errors import RunError


@contextmanager
def locked(table: Path) -> Iterator[None]:
    """Keep other sessions off this table. The kernel frees the lock with the process, however that ends."""
    path = table.with_name(f".{table.name}.lock")
    file = _taken(path, table)
    try:
        file.seek(0)
        file.truncate()
        file.write(f"{os.getpid()}\n".encode())
        file.flush()
        yield
    finally:
        path.unlink(missing_ok=True)
        file.close()


def _taken(path: Path, table: Path) -> IO[bytes]:
    while True:
        try:
            file = path.open("a+b")
        except OSError as error:
            raise RunError(
                f"could not write beside {table}: {error.strerror}. "
                "Choose a place for the labels that can be written: --labels."
            ) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            process = file.read(20).decode(errors="replace").strip()
            file.close()
            raise RunError(
                f"{table} is being labelled already{f' by process {process}' if process.isdecimal() else ''}. "
                "Go on in its page, or end it with Ctrl-C; or label into another table: --labels."
            ) from error
        # A session that was just ending has removed the file that this lock is on: another one may hold a new file.
        if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
            return file
        file.close()
