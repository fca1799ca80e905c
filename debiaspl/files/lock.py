"""File locks. The kernel releases a lock when its process ends, however it ends.

On a file system without locks, the process number in a lock file decides: the lock is free if that process has ended.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

# A name made by another user may be a link to a file that we must not change, or a pipe that blocks.
_CAREFULLY = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW if hasattr(os, "O_NOFOLLOW") else 0
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL}


class FileError(ValueError):
    """A file cannot be written or locked; the message says what was found, what was expected and what to do."""


class Busy(FileError):  # noqa: N818 - not an error: another process is working
    """Another process holds the lock."""

    def __init__(self, message: str, process: int | None = None) -> None:
        super().__init__(message)
        self.process = process
        """Its process number, if the file contains it."""


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
        file = open(open_own(path), "a+b")  # noqa: SIM115 - the caller closes it
        try:
            free = try_lock(file.fileno())
            process = None if free else _process_in(file)
        except OSError:
            file.close()
            raise
        if free is False or (free is None and _is_running(process)):
            file.close()
            raise Busy(f"another process is using {path}.", process)
        # A process that was just ending may have removed the file with this lock: another may hold a new file.
        if is_at(path, file.fileno()):
            return file
        file.close()


def _process_in(file: BinaryIO) -> int | None:
    file.seek(0)
    process = file.read(20).decode(errors="replace").strip()
    return int(process) if process.isdecimal() else None


def _is_running(process: int | None) -> bool:
    if process is None:
        return False
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # of another user
    return True


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file, which contains this process number and is removed at the end. Raises Busy or OSError."""
    with open_locked(path) as file:
        try:
            file.seek(0)
            file.truncate()
            file.write(f"{os.getpid()}\n".encode())
            file.flush()
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
            raise FileError(
                f"{path} is a link, expected a regular file. Check where it leads, and remove it."
            ) from None
        raise
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        os.close(descriptor)
        raise FileError(f"{path} is a pipe or a hard link, expected a regular file. Remove it.")
    return descriptor
