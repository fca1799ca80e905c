"""Read archives in place, or unpack them; no member is written outside of the folder."""

import gzip
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from debiaspl.data.errors import DataError
from debiaspl.data.tar import members

# zipfile raises RuntimeError for a member that is encrypted or has an unknown compression.
_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError, RuntimeError)


def read_members(archive: Path, wanted: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """The files of a .tar.gz or .zip with a wanted base name, in the archive's order; nothing is unpacked."""
    with _plain_errors(archive):
        for name, content in _files(archive):
            if PurePosixPath(name).name in wanted:
                yield PurePosixPath(name).name, content.read()


def unpack(archive: Path, folder: Path) -> None:
    """Write every file of a .tar.gz or .zip below ``folder``, with default permissions."""
    with _plain_errors(archive):
        for name, content in _files(archive):
            if PurePosixPath(name).is_absolute() or "\\" in name or ".." in PurePosixPath(name).parts:
                raise tarfile.TarError(f"its member {name!r} leads out of it")
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            with (folder / name).open("xb") as file:
                shutil.copyfileobj(content, file, 1 << 20)


def _files(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Name and content of each file; raises for links and devices."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as pack:
            for info in pack.infolist():
                if not info.is_dir():
                    with pack.open(info) as content:
                        yield info.filename, content
        return
    with tarfile.open(archive, "r:gz") as tar:
        for member in members(tar):
            if not member.isdir():
                inside = tar.extractfile(member) if member.isreg() else None
                if inside is None:
                    raise tarfile.TarError(f"its member {member.name!r} is a link or a device")
                yield member.name, inside


@contextmanager
def _plain_errors(archive: Path) -> Iterator[None]:
    try:
        yield
    except _DAMAGED as error:
        reason = str(error) or type(error).__name__
        raise DataError(
            f"{archive} is damaged ({reason}), expected the complete archive of its authors. Download it again."
        ) from error
