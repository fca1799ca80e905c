"""Read archives in place, or unpack them without trusting the names inside."""

import gzip
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO

from debiaspl.data.errors import DataError
from debiaspl.data.tar import members

# zipfile raises RuntimeError for a member that is encrypted or has an unknown compression.
_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError, RuntimeError)


def read_members(archive: Path, wanted: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """The files of a .tar.gz or .zip with a wanted base name, in the archive's order; nothing is unpacked."""
    with _plain_errors(archive):
        for name, content in _members(archive):
            last = PurePosixPath(name).name
            if last in wanted:
                yield last, content.read()


def unpack(archive: Path, folder: Path) -> None:
    """Write every file of a .tar.gz or .zip below ``folder``, with default permissions."""
    with _plain_errors(archive):
        for name, content in _members(archive):
            target = folder / name
            if target.exists():
                raise _refused(archive, name, "comes twice")
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                shutil.copyfileobj(content, file, 1 << 20)


@contextmanager
def _plain_errors(archive: Path) -> Iterator[None]:
    try:
        yield
    except _DAMAGED as error:
        reason = str(error) or type(error).__name__
        raise DataError(
            f"{archive} is damaged or truncated ({reason}), expected a complete .tar.gz or .zip."
        ) from error


def _members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Name and content of each file; raises for links, devices and names that lead out of the archive."""
    return _zip_members(archive) if zipfile.is_zipfile(archive) else _tar_members(archive)


def _tar_members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with tarfile.open(archive, "r:gz") as tar:
        for member in members(tar):
            _check_name(archive, member.name)
            if member.isdir():
                continue
            content = tar.extractfile(member) if member.isreg() else None
            if content is None:
                raise _refused(archive, member.name, "is a link or a device")
            yield member.name, content


def _zip_members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(archive) as pack:
        for member in pack.infolist():
            _check_name(archive, member.filename)
            # The upper half is a Unix mode, or 0 if the archive was made on another system.
            if stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _refused(archive, member.filename, "is a link or a device")
            if not member.is_dir():
                with pack.open(member) as content:
                    yield member.filename, content


def _check_name(archive: Path, name: str) -> None:
    # By the rules of both kinds of systems: a backslash is a character on one and a separator on the other.
    for path in (PurePosixPath(name), PureWindowsPath(name)):
        if path.anchor or ".." in path.parts:
            raise _refused(archive, name, "leads out of the archive")


def _refused(archive: Path, name: str, why: str) -> DataError:
    return DataError(
        f"{archive} was not unpacked: its member {name!r} {why}, which no official archive contains. "
        "Do not use this file; download it from its authors."
    )
