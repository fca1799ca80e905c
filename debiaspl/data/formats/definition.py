"""What has to be known of a set to fetch it, find it and read it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from debiaspl.data.images import ImageSet


@dataclass(frozen=True)
class TrainTest:
    """A set and its test set."""

    train: ImageSet
    test: ImageSet
    unlabeled: ImageSet | None = None
    """Further images that nobody labeled, where the authors publish some: labels and truth are -1."""


@dataclass(frozen=True)
class Source:
    """A file at its authors' public address."""

    url: str
    md5: str
    """Of the whole file, in hexadecimal."""

    @property
    def name(self) -> str:
        return self.url.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class KnownSet:
    """A set that is read from files."""

    name: str
    read: Callable[[Path], TrainTest]
    """From the place where the set was found."""
    places: tuple[str, ...]
    """Where the set may lie below a data folder: folders, or archives that are read as they are."""
    signs: tuple[str, ...]
    """A folder that holds any of these is the set's own, be it whole or not; folders among them end in "/"."""
    sources: tuple[Source, ...] = ()
    """One archive, or the files themselves; none, where the authors want to be asked first."""
    target: str = ""
    """Where a fetched set is put, below the data folder."""
    inside: str | None = None
    """The folder of the archive that becomes the target; None where the files themselves are the set."""
    elsewhere: str = ""
    """How to get a set without sources."""
