"""Which file is it? Its digest tells."""

import hashlib
from pathlib import Path


def digest_of_file(path: Path, name: str = "sha256") -> str:
    """In hexadecimal. MD5 finds damaged downloads, whose authors publish no other; it proves nothing against malice."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(name, usedforsecurity=False)).hexdigest()


def digest_if_there(path: Path) -> str:
    """The digest of a file that may be gone: nothing, where it cannot be read."""
    try:
        return digest_of_file(path)
    except OSError:
        return ""
