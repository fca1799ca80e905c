"""WebDataset tar shards: images and labels in plain tar files, read in any order without unpacking."""

import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
import torch
from numpy.typing import NDArray

from debiaspl.data.file_names import EXTENSIONS
from debiaspl.data.images import UNLABELED
from debiaspl.data.lazy import PART
from debiaspl.data.listing import Listing
from debiaspl.data.text import DataError

LABEL_EXTENSIONS = (".cls", ".txt")
LONGEST_LABEL = 4096
"""In bytes; a label is the name or the number of a class."""
_DAMAGED = (tarfile.TarError, EOFError, ValueError, OverflowError, LookupError, MemoryError, OSError)


@dataclass(frozen=True, eq=False)
class TarShards:
    """The place of each image in the shards: three numbers per image, so that a hundred million fit in memory.

    A sample has files of one name and several extensions: ``0001.jpg`` and ``0001.cls``, the class number or name as
    text. One pass over the headers finds them; images are then read by offset, in any order, from any process.
    """

    paths: tuple[Path, ...]
    shard: NDArray[np.int32]
    offset: NDArray[np.int64]
    size: NDArray[np.int64]

    def stamp(self, position: int) -> tuple[int, int]:
        """Size of the image, and time of its shard."""
        found = self.paths[self.shard[position]].stat()
        return int(self.size[position]), max(found.st_mtime_ns, found.st_ctime_ns)

    def read(self, position: int) -> bytes:
        """The bytes of one image file."""
        path = self.paths[self.shard[position]]
        try:
            content = _bytes_at(path, int(self.offset[position]), int(self.size[position]))
        except OSError as error:
            raise DataError(f"could not read {path}: {error.strerror}. Is the shard still there?") from error
        if len(content) != self.size[position]:
            raise DataError(f"{path} has become shorter since it was first read. Was it replaced? Start a new run.")
        return content

    def part(self, position: int) -> bytes:
        return self.read(position)[:PART]


def holds_shards(place: Path) -> bool:
    """Whether the place is a tar shard, or a folder of them."""
    return place.is_file() or any(place.glob("*.tar"))


def list_shards(place: Path) -> Listing:
    """The images of a tar file, or of all tar files of a folder, by name: one pass over their headers. An image is
    named ``shard/sample``; there may be less than two classes."""
    paths = (place,) if place.is_file() else tuple(sorted(place.glob("*.tar")))
    if not paths:
        raise DataError(f"there is no tar file at {place}. Expected a shard, or a folder with shards named *.tar.")
    found: list[tuple[int, int, int]] = []
    ids: list[str] = []
    labels: list[str] = []
    skipped: list[tuple[str, str]] = []
    for number, path in enumerate(paths):
        for name, sample in _samples(path).items():
            image = next((sample[extension] for extension in EXTENSIONS if extension in sample), None)
            if image is None:
                skipped.append((f"{path.name}/{name}", f"no image among {', '.join(sorted(sample))}"))
                continue
            found.append((number, image.offset_data, image.size))
            ids.append(f"{path.name}/{name}")
            labels.append(_label(path, name, sample))
    if not ids:
        raise DataError(f"no image in {len(paths)} shard(s), first {paths[0]}. Expected members such as 0001.jpg.")
    table = np.array(found, np.int64).T
    files = TarShards(paths, table[0].astype(np.int32), table[1].copy(), table[2].copy())
    # Class numbers in numeric order, then names alphabetically.
    order = sorted(set(labels) - {""}, key=lambda name: (0, int(name), name) if name.isdecimal() else (1, 0, name))
    classes = tuple(order)
    number_of = {name: label for label, name in enumerate(classes)} | {"": UNLABELED}
    numbers = torch.tensor([number_of[label] for label in labels])
    return Listing(place, tuple(ids), numbers, classes, tuple(skipped), stored=files)


def _samples(path: Path) -> dict[str, dict[str, tarfile.TarInfo]]:
    """Sample name -> extension -> member, in the order of the shard."""
    samples: dict[str, dict[str, tarfile.TarInfo]] = {}
    length = path.stat().st_size
    try:
        with tarfile.open(path, "r:") as shard:
            for member in _members(shard):
                if member.isreg() and not PurePosixPath(member.name).name.startswith("."):
                    if member.offset_data + member.size > length:
                        raise tarfile.ReadError(f"truncated inside {member.name}")
                    folder, _, file = member.name.rpartition("/")
                    stem, dot, extension = file.partition(".")
                    samples.setdefault(f"{folder}/{stem}" if folder else stem, {})[dot + extension.lower()] = member
    except _DAMAGED as error:
        why = str(error) or type(error).__name__
        raise DataError(f"{path} is not a complete, plain tar file ({why}). Get or make the shard again.") from error
    return samples


def _members(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """All members, in order. One that claims to end before it begins would be read forever, so it is an error."""
    end = 0
    for member in tar:
        if member.size < 0 or member.offset < end:
            raise tarfile.ReadError(f"its member {member.name!r} claims {member.size:,} bytes at {member.offset:,}")
        if member.issparse():
            raise tarfile.ReadError(f"its member {member.name!r} is sparse")
        end = member.offset_data
        yield member


def _label(path: Path, name: str, sample: dict[str, tarfile.TarInfo]) -> str:
    extension = next((each for each in LABEL_EXTENSIONS if each in sample), None)
    if extension is None:
        return ""
    member = sample[extension]
    if member.size > LONGEST_LABEL:
        raise DataError(f"the label {name}{extension} in {path} has {member.size:,} bytes, expected a class name.")
    try:
        return _bytes_at(path, member.offset_data, member.size).decode().strip()
    except UnicodeDecodeError as error:
        raise DataError(f"the label {name}{extension} in {path} is not text: {error}.") from error


def _bytes_at(path: Path, offset: int, size: int) -> bytes:
    with path.open("rb") as file:
        return os.pread(file.fileno(), size, offset)
