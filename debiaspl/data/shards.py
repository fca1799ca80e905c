"""WebDataset tar shards: images and labels in plain tar files, read in any order without unpacking."""

import os
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from debiaspl.data.archive import DAMAGED_TAR, members
from debiaspl.data.errors import DataError
from debiaspl.data.file_names import EXTENSIONS
from debiaspl.data.lazy import PART

LABEL_EXTENSIONS = (".cls", ".txt")
LONGEST_LABEL = 4096
"""In bytes; a label is the name or the number of a class."""


@dataclass(frozen=True, eq=False)
class TarShards:
    """The place of each image in the shards: three numbers per image, so that a hundred million fit in memory.

    A shard contains, for each sample, files of one name and several extensions: ``0001.jpg`` and ``0001.cls``, the
    class number or name as text. One pass over the headers finds them. Images are then read by offset, in any order,
    from any process, which makes a shuffled stream possible that resumes at any step.
    """

    paths: tuple[Path, ...]
    shard: NDArray[np.int32]
    offset: NDArray[np.int64]
    size: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.shard)

    def stamp(self, position: int) -> tuple[int, int]:
        """Size of the image, and time of its shard."""
        found = self.paths[self.shard[position]].stat()
        return int(self.size[position]), max(found.st_mtime_ns, found.st_ctime_ns)

    def read(self, position: int) -> bytes:
        """The bytes of one image file."""
        path = self.paths[self.shard[position]]
        try:
            with path.open("rb") as file:
                content = os.pread(file.fileno(), int(self.size[position]), int(self.offset[position]))
        except OSError as error:
            raise DataError(f"could not read {path}: {error.strerror}. Is the shard still there?") from error
        if len(content) != self.size[position]:
            raise DataError(f"{path} has become shorter since it was first read. Was it replaced? Start a new run.")
        return content

    def mark(self, position: int, content: bool) -> bytes:
        size = b"%d " % self.size[position]
        return size + self.read(position)[:PART] if content else size


@dataclass(frozen=True, eq=False)
class Samples:
    """What a pass over shards found."""

    files: TarShards
    ids: tuple[str, ...]
    """``shard/sample`` of each image."""
    labels: tuple[str, ...]
    """The label as written; "" if a sample has none."""
    skipped: tuple[tuple[str, str], ...]
    """Samples without an image: (name, reason)."""


def find_shards(place: Path) -> tuple[Path, ...]:
    """A tar file, or all tar files of a folder, by name."""
    found = [place] if place.is_file() else sorted(place.glob("*.tar")) if place.is_dir() else []
    if not found:
        raise DataError(f"there is no tar file at {place}. Expected a shard, or a folder with shards named *.tar.")
    return tuple(found)


def index_shards(paths: Sequence[Path]) -> Samples:
    """One pass over the headers of all shards."""
    shard: list[int] = []
    offset: list[int] = []
    size: list[int] = []
    ids: list[str] = []
    labels: list[str] = []
    skipped: list[tuple[str, str]] = []
    for number, path in enumerate(paths):
        for name, sample in _samples(path).items():
            image = next((sample[extension] for extension in EXTENSIONS if extension in sample), None)
            if image is None:
                skipped.append((f"{path.name}/{name}", f"no image among {', '.join(sorted(sample))}"))
                continue
            shard.append(number)
            offset.append(image.offset_data)
            size.append(image.size)
            ids.append(f"{path.name}/{name}")
            labels.append(_label(path, name, sample))
    if not ids:
        raise DataError(f"no image in {len(paths)} shard(s), first {paths[0]}. Expected members such as 0001.jpg.")
    table = TarShards(tuple(paths), np.array(shard, np.int32), np.array(offset, np.int64), np.array(size, np.int64))
    return Samples(table, tuple(ids), tuple(labels), tuple(skipped))


def _samples(path: Path) -> dict[str, dict[str, tarfile.TarInfo]]:
    """Sample name -> extension -> member, in the order of the shard."""
    samples: dict[str, dict[str, tarfile.TarInfo]] = {}
    length = path.stat().st_size
    try:
        with tarfile.open(path, "r:") as shard:
            for member in members(shard):
                if member.isreg() and not PurePosixPath(member.name).name.startswith("."):
                    _refuse_cut(path, member, length)
                    folder, _, file = member.name.rpartition("/")
                    stem, dot, extension = file.partition(".")
                    samples.setdefault(f"{folder}/{stem}" if folder else stem, {})[dot + extension.lower()] = member
    except DataError:
        raise
    except (*DAMAGED_TAR, OSError) as error:
        why = str(error) or type(error).__name__
        raise DataError(f"{path} is not a complete, plain tar file ({why}). Get or make the shard again.") from error
    return samples


def _refuse_cut(path: Path, member: tarfile.TarInfo, length: int) -> None:
    if member.offset_data + member.size > length:
        raise DataError(f"{path} is truncated inside {member.name}. Get or make the shard again.")


def _label(path: Path, name: str, sample: dict[str, tarfile.TarInfo]) -> str:
    for extension in LABEL_EXTENSIONS:
        if extension in sample:
            member = sample[extension]
            if member.size > LONGEST_LABEL:
                raise DataError(
                    f"the label {name}{extension} in {path} has {member.size:,} bytes, expected the name or number of "
                    "a class. Get or make the shard again."
                )
            with path.open("rb") as file:
                content = os.pread(file.fileno(), member.size, member.offset_data)
            try:
                return content.decode().strip()
            except UnicodeDecodeError as error:
                raise DataError(f"the label {name}{extension} in {path} is not text: {error}.") from error
    return ""
