"""Digests that identify files."""

import hashlib
from pathlib import Path


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
