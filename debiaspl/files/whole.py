"""Write files atomically: they are complete or absent.

Data is first written under a random hidden name in the same folder, so that two commands never share it and nobody can
put a link in its place. It is locked while its process runs: leftovers of a killed process have no lock, and the next
process that writes the same target removes them.
"""

import hashlib
import json
import os
import re
import secrets
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from debiaspl.files.lock import FileError, is_at, try_lock

LONGEST_NAME = 200
"""Longest name, in bytes, that fits into a hidden name; file systems allow 255."""
PARTIAL = re.compile(r"\..+\.[0-9a-f]{16}\.partial")
"""Names of what a killed process may leave."""
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Call ``write`` on a new file beside ``path``, sync it to disk, and then rename it to ``path``.

    A kill at any moment leaves the old file or the new one; an error leaves the old one and nothing else.
    """
    try:
        with _beside(path) as (partial, descriptor):
            with open(descriptor, "wb", closefd=False) as file:
                write(file)
            put_in_place(partial, path)
    except OSError as error:
        raise FileError(f"could not write {path}: {error.strerror or error}. Nothing else was changed.") from error


def put_in_place(partial: Path, path: Path) -> None:
    """Sync ``partial`` to disk, and rename it to ``path``, replacing what was there."""
    _bring_to_disk(partial)
    partial.replace(path)
    _bring_to_disk(path.parent)


def write_bytes(path: Path, content: bytes) -> None:
    write_whole(path, lambda file: file.write(content))


def write_text(path: Path, text: str) -> None:
    # File names that are not UTF-8 contain surrogates, which become the original bytes again.
    write_bytes(path, text.encode(errors="surrogateescape"))


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=2) + "\n")


def refuse_missing_folder(path: Path) -> None:
    """Raise if the folder of a file named by the user does not exist. A typo must not create folders. Folders of runs
    are created, because they are the output."""
    folder = path.parent
    if folder.is_dir():
        return
    if folder.exists():
        raise FileError(f"{path} cannot be written: {folder} is a file, expected a folder.")
    highest = [above for above in folder.parents if not above.exists()][-1:]
    neither = "".join(f", nor does {above}" for above in highest)
    raise FileError(
        f"{path} cannot be written: the folder {folder} does not exist{neither}. Fix the name, or create the folder: "
        f"mkdir -p {shlex.quote(str(folder))}"
    )


def exists_already(path: Path, holds: str = "", resume: bool = False, other: str = "another name") -> str:
    """The message of every command that would overwrite something without ``--overwrite``.

    ``holds`` says what a folder contains; ``resume``: it can also be resumed.
    """
    found = f"{path} already contains {holds}" if holds else f"{path} exists already"
    return f"{found}. Use {'--resume to resume it, ' if resume else ''}--overwrite to replace it, or choose {other}."


def refuse_existing(path: Path, overwrite: bool, *inputs: Path | None) -> None:
    """Raise where a file would be overwritten without ``overwrite``, where it is a folder or one of the ``inputs``, or
    where its folder is missing."""
    refuse_missing_folder(path)
    if path.is_dir():
        raise FileError(f"{path} is a folder, expected the name of a file to write, such as {path / 'new.csv'}.")
    if path.exists() and not overwrite:
        raise FileError(exists_already(path))
    if path.exists() and any(one is not None and one.exists() and one.samefile(path) for one in inputs):
        raise FileError(f"{path} is also what this command reads. Choose another name for what it writes.")


@contextmanager
def _beside(path: Path) -> Iterator[tuple[Path, int]]:
    """A new hidden file beside ``path``, open and locked; removed at the end, unless it was renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path)
    while True:
        partial = path.with_name(f"{_beginning(path.name)}{secrets.token_hex(8)}.partial")
        descriptor = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL | _NO_LINK, 0o666)
        try:
            with suppress(OSError):
                try_lock(descriptor, wait=True)
            # Before it was locked, another process may have removed it as a leftover.
            if is_at(partial, descriptor):
                yield partial, descriptor
                return
        finally:
            if is_at(partial, descriptor):
                with suppress(OSError):
                    partial.unlink()
            os.close(descriptor)


def _beginning(name: str) -> str:
    fits = len(os.fsencode(name)) <= LONGEST_NAME
    return f".{name if fits else hashlib.sha256(os.fsencode(name)).hexdigest()}."


@cache  # once per target: labels.csv is written at every answer, into a folder of perhaps 100,000 photos
def remove_leftovers(path: Path) -> None:
    """Remove what a killed process has left of this target. A running process holds its lock."""
    left = re.compile(re.escape(_beginning(path.name)) + r"[0-9a-f]{16}\.partial")
    names: list[str] = []
    with suppress(OSError):  # a folder that is writable but cannot be listed
        names = os.listdir(path.parent)
    for name in filter(left.fullmatch, names):
        with suppress(OSError):  # gone in the meantime, a link, or owned by another user
            descriptor = os.open(path.with_name(name), os.O_RDONLY | _NO_LINK)
            try:
                if try_lock(descriptor):
                    path.with_name(name).unlink()
            finally:
                os.close(descriptor)


def _bring_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
