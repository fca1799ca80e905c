"""What the package must know about a set to download, find and read it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from debiaspl.data.images import ImageSet


@dataclass(frozen=True)
class TrainTest:
    """A set and its test set."""

    train: ImageSet
    test: ImageSet


@dataclass(frozen=True)
class Source:
    """A file at its authors' address."""

    url: str
    md5: str
    """MD5 of the whole file, in hexadecimal."""

    @property
    def name(self) -> str:
        return self.url.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class KnownSet:
    """A set that is read from files."""

    name: str
    read: Callable[[Path], TrainTest]
    """Reads the set from the place where it was found."""
    places: tuple[str, ...]
    """Folders below a data folder where the set may be."""
    signs: tuple[str, ...]
    """A folder with any of these contains the set, complete or not."""
    sources: tuple[Source, ...] = ()
    """One archive, or the files themselves; empty if the authors require registration."""
    target: str = ""
    """Where a downloaded set is put, below the data folder."""
    inside: str | None = None
    """The folder in the archive that becomes the target; None if the files themselves are the set."""
    elsewhere: str = ""
    """How to get a set without sources."""
