"""Members of a tar file that may come from anywhere."""

import tarfile
from collections.abc import Iterator


def members(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """All of them, in order. Raises tarfile.ReadError where one claims to end before it begins: a pass over the file
    would come back to the same place for ever."""
    end = 0
    for member in tar:
        if member.size < 0 or member.offset < end:
            raise tarfile.ReadError(f"its member {member.name!r} claims {member.size:,} bytes at {member.offset:,}")
        if member.issparse():
            raise tarfile.ReadError(f"its member {member.name!r} is sparse")
        end = member.offset_data
        yield member


DAMAGED = (tarfile.TarError, EOFError, ValueError, OverflowError, LookupError, MemoryError)
"""What reading a damaged one may raise, beside OSError."""
