"""Files that are either whole or absent."""

import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from debiaspl.training.errors import RunError


def partial_of(path: Path) -> Path:
    """Where a file lies while it is being written; a kill can leave it there."""
    return path.with_name(f".{path.name}.partial")


def write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Let ``write`` fill a file beside ``path``, bring it to the disk, and only then give it its name.

    A kill at any moment leaves the old file or the new one; a failure leaves the old one and nothing else.
    """
    partial = partial_of(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(partial)
        _bring_to_disk(partial)
        partial.replace(path)
        _bring_to_disk(path.parent)
    except OSError as error:
        _remove(partial)
        raise RunError(f"could not write {path}: {error.strerror or error}. Nothing else was changed.") from error
    except BaseException:
        _remove(partial)
        raise


def refuse_missing_folder(path: Path) -> None:
    """Raise where a file that a user has named would lie in a folder that is not there. A slip in a name must not make
    folders; those of runs are made, for they are what is asked for."""
    folder = path.parent
    if folder.is_dir():
        return
    if folder.exists():
        raise RunError(f"{path} cannot be made: {folder} is a file, expected a folder.")
    highest = [above for above in folder.parents if not above.exists()][-1:]
    neither = "".join(f", nor does {above}" for above in highest)
    raise RunError(
        f"{path} cannot be made: the folder {folder} does not exist{neither}. Mend the name, or make the folder: "
        f"mkdir -p {shlex.quote(str(folder))}"
    )


def write_bytes(path: Path, content: bytes) -> None:
    def write(partial: Path) -> None:
        partial.write_bytes(content)

    write_whole(path, write)


def write_text(path: Path, text: str) -> None:
    # File names that are no UTF-8 come as surrogates, and go back to the bytes they were.
    write_bytes(path, text.encode(errors="surrogateescape"))


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=2) + "\n")


def _bring_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:  # the folder itself is gone or forbidden: there is nothing to clean up
        return
