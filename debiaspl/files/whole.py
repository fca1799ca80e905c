"""Write files atomically: they are complete or absent. Locks; digests of files.

Data is first written under a random hidden name in the same folder, so that two commands never share it and nobody can
put a link in its place. It is locked while its process runs: leftovers of a killed process have no lock, and the next
process that writes the same target removes them. The kernel releases a lock when its process ends, however it ends.
"""

import errno
import hashlib
import json
import os
import re
import secrets
import shlex
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

LONGEST_NAME = 200
"""Longest name, in bytes, that fits into a hidden name; file systems allow 255."""
PARTIAL = re.compile(r"\..+\.[0-9a-f]{16}\.partial")
"""Names of what a killed process may leave."""
# A name made by another user may be a link to a file that we must not change, or a pipe that blocks.
_CAREFULLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL}


class FileError(ValueError):
    """A file cannot be written or locked; the message says what was found, what was expected and what to do."""


class Busy(FileError):  # noqa: N818 - not an error: another process is working
    """Another process holds the lock."""


def try_lock(descriptor: int, wait: bool = False) -> bool | None:
    """Lock an open file or folder for this process. Returns False if another process holds the lock, None if the file
    system has no locks."""
    try:
        import fcntl
    except ImportError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return None
        raise
    return True


def open_locked(path: Path) -> BinaryIO:
    """Open a file for appending, create it if needed, and lock it until it is closed. Raises Busy or OSError."""
    while True:
        with ExitStack() as stack:
            file = stack.enter_context(open(open_own(path), "ab"))
            if try_lock(file.fileno()) is False:
                raise Busy(f"another process is using {path}.")
            # A process that was just ending may have removed the file with this lock: another may hold a new file.
            if is_at(path, file.fileno()):
                stack.pop_all()
                return file


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file, which is removed at the end. Raises Busy or OSError."""
    with open_locked(path):
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def is_at(path: Path, descriptor: int) -> bool:
    """Whether the open file still has this name."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    return False


def open_own(path: Path) -> int:
    """A descriptor for appending; the file is created if needed. Raises OSError, or FileError if the path is a link, a
    pipe or a second name of a file."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _CAREFULLY, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP and path.is_symlink():
            raise FileError(f"{path} is a link, expected a regular file. See where it leads, and remove it.") from None
        raise
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        os.close(descriptor)
        raise FileError(f"{path} is a pipe or a hard link, expected a regular file. Remove it.")
    return descriptor


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
    if not path.parent.is_dir():
        found = f"{path} cannot be written: there is no folder {path.parent}"
        raise FileError(f"{found}. Fix the name, or create it: mkdir -p {shlex.quote(str(path.parent))}")


def refuse_existing(path: Path, overwrite: bool, *inputs: Path | None) -> None:
    """Raise where a file would be overwritten without ``overwrite``, where it is a folder or one of the ``inputs``, or
    where its folder is missing."""
    refuse_missing_folder(path)
    if path.is_dir():
        raise FileError(f"{path} is a folder, expected the name of a file to write, such as {path / 'new.csv'}.")
    if path.exists() and not overwrite:
        raise FileError(f"{path} exists already. Use --overwrite to replace it, or choose another name.")
    if path.exists() and any(one is not None and one.exists() and one.samefile(path) for one in inputs):
        raise FileError(f"{path} is also what this command reads. Choose another name for what it writes.")


@contextmanager
def _beside(path: Path) -> Iterator[tuple[Path, int]]:
    """A new hidden file beside ``path``, open and locked; removed at the end, unless it was renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path)
    while True:
        partial = path.with_name(f"{_beginning(path.name)}{secrets.token_hex(8)}.partial")
        descriptor = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL | _CAREFULLY, 0o666)
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
            descriptor = os.open(path.with_name(name), os.O_RDONLY | _CAREFULLY)
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


def digest_of_file(path: Path) -> str:
    """The SHA-256 in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_if_there(path: Path) -> str:
    """The digest of a file, or an empty text if it cannot be read."""
    try:
        return digest_of_file(path)
    except OSError:
        return ""
