"""Untrusted archives: unpacked, with no member outside of the folder; members of a tar file."""

import gzip
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from debiaspl.data.errors import DataError

# zipfile raises RuntimeError for a member that is encrypted or has an unknown compression.
_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError, RuntimeError)
DAMAGED_TAR = (tarfile.TarError, EOFError, ValueError, OverflowError, LookupError, MemoryError)
"""Exceptions from reading a damaged tar file, in addition to OSError."""


def members(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """All members, in order. Raises tarfile.ReadError if one claims to end before it begins: a pass over the file would
    return to the same place forever."""
    end = 0
    for member in tar:
        if member.size < 0 or member.offset < end:
            raise tarfile.ReadError(f"its member {member.name!r} claims {member.size:,} bytes at {member.offset:,}")
        if member.issparse():
            raise tarfile.ReadError(f"its member {member.name!r} is sparse")
        end = member.offset_data
        yield member


def unpack(archive: Path, folder: Path) -> None:
    """Write every file of a .tar.gz or .zip below ``folder``, with default permissions."""
    try:
        for name, content in _files(archive):
            if PurePosixPath(name).is_absolute() or "\\" in name or ".." in PurePosixPath(name).parts:
                raise tarfile.TarError(f"its member {name!r} leads out of it")
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            with (folder / name).open("xb") as file:
                shutil.copyfileobj(content, file, 1 << 20)
    except _DAMAGED as error:
        reason = str(error) or type(error).__name__
        raise DataError(
            f"{archive} is damaged ({reason}), expected the complete archive of its authors. Download it again."
        ) from error


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
