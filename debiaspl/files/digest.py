"""Digests that identify files."""

import hashlib
from pathlib import Path


def digest_of_file(path: Path, name: str = "sha256") -> str:
    """The digest in hexadecimal. MD5 detects damaged downloads, for which no other is published, but not tampering."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(name, usedforsecurity=False)).hexdigest()


def digest_if_there(path: Path) -> str:
    """The digest of a file, or an empty text if it cannot be read."""
    try:
        return digest_of_file(path)
    except OSError:
        return ""
