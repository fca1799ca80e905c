"""Untrusted archives: unpacked, with no member outside of the folder; members of a tar file."""

import gzip
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

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
    """Write the content of a .tar.gz or .zip below ``folder``; nothing of it can lead out of that."""
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as pack:
                pack.extractall(folder)
        else:
            with tarfile.open(archive, "r:gz") as tar:
                tar.extractall(folder, filter="data")
    except _DAMAGED as error:
        reason = str(error) or type(error).__name__
        raise DataError(
            f"{archive} is damaged ({reason}), expected the complete archive of its authors. Download it again."
        ) from error
