"""Members of an untrusted tar file."""

import tarfile
from collections.abc import Iterator


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


DAMAGED = (tarfile.TarError, EOFError, ValueError, OverflowError, LookupError, MemoryError)
"""Exceptions from reading a damaged tar file, in addition to OSError."""
