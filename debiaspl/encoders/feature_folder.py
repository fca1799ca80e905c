"""Features of images, each computed once and kept in a folder of numbered files.

    manifest.jsonl            line k: the names of the images of file k, at most 10,000
    00000.safetensors         their features, and the size, time and digest of each image
    00001-00512.safetensors   rows 512 and following of file 1, which is not complete yet

An image is not opened if a row has its name, size and time. Otherwise it is read and hashed. If a row has its digest,
the image was moved or copied, and has the features of that row; if not, it is encoded. New and changed images go into
new files; rows of images that were removed stay unused. A file belongs to one encoder and to one line of the manifest,
and has a digest: one that is damaged or made for something else is computed again.
"""

import hashlib
import json
import os
import stat
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from debiaspl.data import ImageSet
from debiaspl.data.decode import BadImage, decode
from debiaspl.data.lazy import LazyImages
from debiaspl.data.tensor_file import read_tensor_file, tensor_file
from debiaspl.encoders.encoder import Encoder, fingerprint
from debiaspl.files import fits, parse_json, write_bytes
from debiaspl.models import scale

FEATURES = ".features"
"""Name of such a folder beside runs."""
ROWS = 10_000
"""Images per file."""
SECONDS = 20.0
"""Time after which features are written, also if their file is not complete: the most work that a kill can lose."""
BATCH = {"cpu": 4, "cuda": 256}
"""Images per batch: on a CPU so few that activations fit in its cache."""
AHEAD = 64
"""Images that threads read ahead of the encoder."""
MANIFEST = "manifest.jsonl"
_FORMAT = 3
Watch = Callable[[int, int], None]
"""Called with the number of images done and the total."""


class ImageFeatures(NamedTuple):
    """Features of a set of images, in the order of the set."""

    values: Tensor
    """float32, (N, D)."""
    skipped: dict[int, str]
    """Index -> why an image could not be read; its row is zeros."""


@torch.no_grad()
def features_of(
    images: ImageSet, encoder: Encoder, folder: Path | str, watch: Watch = lambda done, total: None
) -> ImageFeatures:
    """Features of every image; those that ``folder`` has for this encoder and image size are not computed again.

    ``watch(done, total)`` is called after every batch. If it raises, to stop, what is done is kept.
    """
    names = images.ids
    if len(set(names)) != len(names):
        raise ValueError(f"{len(names):,} images have {len(set(names)):,} different names, expected one name each.")
    # A GPU computes in half precision.
    facts = [_FORMAT, fingerprint(encoder), next(encoder.parameters()).device.type, *images.images.shape[1:]]
    key = hashlib.sha256(json.dumps(facts).encode()).hexdigest()
    encoding = _Encoding(images, encoder, FeatureFolder(Path(folder) / key[:16], key, encoder.num_features), watch)
    return encoding.run()


@dataclass
class Rows:
    """The first rows of a file, in the order of its names; memory for all of them."""

    features: Tensor
    """float32, (N, D)."""
    stamps: Tensor
    """int64, (N, 2): size and time of each image; -1 if it was not read."""
    digests: Tensor
    """uint8, (N, 32): SHA-256 of each image."""
    skipped: dict[int, str] = field(default_factory=dict)
    """Row -> why the image could not be decoded."""
    count: int = 0
    """Number of rows that are there."""

    @classmethod
    def empty(cls, size: int, width: int) -> "Rows":
        digests = torch.zeros((size, 32), dtype=torch.uint8)
        return cls(torch.zeros((size, width)), torch.full((size, 2), -1), digests)

    def tensors(self, start: int = 0, end: int | None = None) -> dict[str, Tensor]:
        whole = {"features": self.features, "stamps": self.stamps, "digests": self.digests}
        return {name: tensor[start : self.count if end is None else end] for name, tensor in whole.items()}


@dataclass(frozen=True)
class FeatureFolder:
    """Reads and writes the files of one encoder. All of them are untrusted: what is not a regular file, or not what was
    written for this encoder and these names, does not count."""

    path: Path
    key: str
    """Fingerprint of the encoder and of the size of its images."""
    width: int

    def manifest(self) -> list[tuple[str, ...]]:
        """The names of each file; what follows a damaged line does not count."""
        files: list[tuple[str, ...]] = []
        try:
            for line in self._regular(MANIFEST).read_bytes().splitlines():
                names = parse_json(line)
                if not isinstance(names, list) or not 0 < len(names) <= ROWS:
                    break
                files.append(tuple(map(str, names)))
        except (OSError, ValueError):
            pass
        return files

    def write_manifest(self, files: Sequence[Sequence[str]]) -> None:
        write_bytes(self.path / MANIFEST, "".join(f"{json.dumps(names)}\n" for names in files).encode())

    def read(self, number: int, names: Sequence[str]) -> Rows:
        """The rows of this file that are there: all, or those of its parts."""
        rows = Rows.empty(len(names), self.width)
        if not self._load(_file(number), names, rows) or rows.count < len(names):
            rows.count = 0
            for path in sorted(self.path.glob(_file(number, "*"))):
                self._load(path.name, names, rows)
        return rows

    def write(self, number: int, names: Sequence[str], rows: Rows, start: int) -> None:
        """Write the rows from ``start`` on; if the file is complete, all of them."""
        complete = rows.count == len(names)
        start = 0 if complete else start
        skipped = {row: reason for row, reason in rows.skipped.items() if row >= start}
        text = json.dumps({**self._about(names, start), "skipped": skipped})
        name = _file(number) if complete else _file(number, f"{start:05d}")
        write_bytes(self.path / name, tensor_file(rows.tensors(start), "debiaspl", text))
        for path in self.path.glob(_file(number, "*")) if complete else ():
            path.unlink(missing_ok=True)

    def _load(self, name: str, names: Sequence[str], rows: Rows) -> bool:
        """Append what this file holds to the rows, if it continues them."""
        try:
            tensors, texts, _ = read_tensor_file(self._regular(name))
            about = parse_json(texts["debiaspl"])
            skipped = {int(row): str(reason) for row, reason in about.pop("skipped").items()}
            start, end = rows.count, rows.count + len(tensors["features"])
            if about != self._about(names, start) or not bool(tensors["features"].isfinite().all()):
                return False
            for key, place in rows.tensors(start, end).items():
                if (tensors[key].shape, tensors[key].dtype) != (place.shape, place.dtype):
                    return False
                place.copy_(tensors[key])
        except (OSError, KeyError, TypeError, ValueError, AttributeError):
            return False  # missing or damaged
        rows.skipped, rows.count = rows.skipped | skipped, end
        return True

    def _about(self, names: Sequence[str], start: int) -> dict[str, object]:
        line = hashlib.sha256(json.dumps(names).encode()).hexdigest()
        return {"encoder": self.key, "names": line, "start": start}

    def _regular(self, name: str) -> Path:
        """The path of this file. Raises an error for links, pipes, and what does not fit in memory."""
        path = self.path / name
        found = os.lstat(path)
        if not stat.S_ISREG(found.st_mode) or not fits(found.st_size):
            raise ValueError("it is not a regular file, or does not fit in memory")
        return path


def _file(number: int, start: str = "") -> str:
    return f"{number:05d}{'-' if start else ''}{start}.safetensors"


class _Image(NamedTuple):
    """One image that was read."""

    stamp: tuple[int, int]
    digest: bytes = bytes(32)
    pixels: Tensor | None = None
    """uint8, (C, H, W); None if it need not or cannot be encoded."""
    bad: str = ""


class _Encoding:
    """One call of ``features_of``."""

    def __init__(self, images: ImageSet, encoder: Encoder, folder: FeatureFolder, watch: Watch) -> None:
        self.stored, self.encoder, self.folder, self.watch = images.images, encoder, folder, watch
        self.device = next(encoder.parameters()).device
        self.place = {name: position for position, name in enumerate(images.ids)}
        self.stamps = _stamps(images)
        self.values = torch.zeros((len(images), folder.width))
        self.skipped: dict[int, str] = {}
        self.left = set(range(len(images)))
        """Images without features."""
        self.files = folder.manifest()
        self.homes: dict[bytes, tuple[int, int]] = {}
        """Digest of an image -> file and row of its features."""
        self.read = lru_cache(1)(lambda number: folder.read(number, self.files[number]))

    def run(self) -> ImageFeatures:
        begun: dict[int, Rows] = {}
        for number, names in enumerate(self.files):
            rows = self.folder.read(number, names)
            self._use(names, rows)
            if rows.count < len(names):
                begun[number] = rows
            if self.left:
                there = (rows.stamps[: rows.count, 0] >= 0).nonzero().flatten().tolist()
                digests = rows.digests.numpy()
                self.homes |= {digests[row].tobytes(): (number, row) for row in there if row not in rows.skipped}
        self._report()
        planned = {name for number, rows in begun.items() for name in self.files[number][rows.count :]}
        new = [name for name, position in self.place.items() if position in self.left and name not in planned]
        first = len(self.files)
        self.files += [tuple(new[start : start + ROWS]) for start in range(0, len(new), ROWS)]
        if new:
            self.folder.write_manifest(self.files)
        for number in (*begun, *range(first, len(self.files))):
            names = self.files[number]
            rows = begun.get(number) or Rows.empty(len(names), self.folder.width)
            if any(self.place.get(name) in self.left for name in names[rows.count :]):
                self._complete(number, rows)
        return ImageFeatures(self.values, self.skipped)

    def _use(self, names: Sequence[str], rows: Rows) -> None:
        """Take the rows of images that have not changed since."""
        pairs = []
        for row, (size, when) in enumerate(rows.stamps[: rows.count].tolist()):
            position = self.place.get(names[row], -1)
            if size >= 0 and position in self.left and self.stamps[position] == (size, when):
                pairs.append((position, row))
                if row in rows.skipped:
                    self.skipped[position] = rows.skipped[row]
        if pairs:
            positions, chosen = zip(*pairs, strict=True)
            self.values[list(positions)] = rows.features[list(chosen)]
            self.left -= set(positions)

    def _report(self) -> None:
        self.watch(len(self.stamps) - len(self.left), len(self.stamps))

    def _complete(self, number: int, rows: Rows) -> None:
        """Compute the other rows of a file, and write it."""
        names = self.files[number]
        written, since = rows.count, time.monotonic()
        try:
            for images in self._read_ahead(names[written:]):
                self._append(rows, images)
                if time.monotonic() - since > SECONDS:
                    self._write(number, rows, written)
                    written, since = rows.count, time.monotonic()
                self._report()
        finally:
            self._write(number, rows, written)

    def _write(self, number: int, rows: Rows, start: int) -> None:
        # An image that cannot be opened may be readable the next time: such images alone are not kept.
        first = 0 if rows.count == len(self.files[number]) else start
        if bool((rows.stamps[first : rows.count, 0] >= 0).any()):
            self.folder.write(number, self.files[number], rows, start)

    def _read_ahead(self, names: Sequence[str]) -> Iterator[list[tuple[int | None, _Image]]]:
        """Position, or None, and image of each name, in batches; threads read ahead."""
        size = BATCH[self.device.type]
        positions = [self.place.get(name) for name in names]
        pool = ThreadPoolExecutor(thread_name_prefix="decode")
        try:
            ahead = deque(pool.submit(self._image, position) for position in positions[: AHEAD + size])
            for start in range(0, len(positions), size):
                batch = positions[start : start + size]
                images = [ahead.popleft().result() for _ in batch]
                after = positions[start + AHEAD + size :][:size]
                ahead.extend(pool.submit(self._image, position) for position in after)
                yield list(zip(batch, images, strict=True))
        finally:
            # After an interrupt, running reads finish and no other one starts.
            pool.shutdown(cancel_futures=True)

    def _image(self, position: int | None) -> _Image:
        if position is None:  # removed since its name was written into the manifest
            return _Image((-1, -1))
        stamp = self.stamps[position]
        if not isinstance(self.stored, LazyImages):
            pixels = self.stored[torch.tensor([position])][0].cpu()
            digest = _digest(pixels)
            return _Image(stamp, digest, None if digest in self.homes else pixels)
        try:
            content = self.stored.files.read(int(self.stored.positions[position]))
        except BadImage as error:
            return _Image((-1, -1), bad=str(error))
        digest = hashlib.sha256(content).digest()
        if digest in self.homes:
            return _Image(stamp, digest)
        try:
            return _Image(stamp, digest, decode(content, self.stored.size, self.stored.channels))
        except BadImage as error:
            return _Image(stamp, digest, bad=str(error))

    def _append(self, rows: Rows, batch: list[tuple[int | None, _Image]]) -> None:
        encoded = iter(self._encoded([image.pixels for _, image in batch if image.pixels is not None]))
        for position, image in batch:
            row, rows.count = rows.count, rows.count + 1
            if image.pixels is not None:
                rows.features[row] = next(encoded)
            elif image.digest in self.homes:
                rows.features[row] = self._moved(image.digest)
            rows.stamps[row] = torch.tensor(image.stamp)
            rows.digests[row] = torch.frombuffer(bytearray(image.digest), dtype=torch.uint8)
            if position is not None:
                self.values[position] = rows.features[row]
                self.left.discard(position)
                if image.bad:
                    rows.skipped[row] = self.skipped[position] = image.bad

    def _moved(self, digest: bytes) -> Tensor:
        """Features of an image that has another name, or another time, than those in the folder."""
        number, row = self.homes[digest]
        rows = self.read(number)
        if rows.count <= row or rows.digests[row].numpy().tobytes() != digest:
            raise ValueError(f"{self.folder.path} was changed while it was read. Run the same command again.")
        return rows.features[row]

    def _encoded(self, pixels: list[Tensor]) -> Tensor:
        if not pixels:
            return torch.empty(0)
        # Batches of one size: the features of an image do not depend on the others that are encoded.
        filled = pixels + pixels[:1] * (BATCH[self.device.type] - len(pixels))
        pictures = scale(torch.stack(filled).to(self.device)).contiguous(memory_format=torch.channels_last)
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=pictures.is_cuda):
            features = self.encoder.embed(pictures)[: len(pixels)].float().cpu()
        if not bool(features.isfinite().all()):
            name = self.encoder.name
            raise ValueError(f"the encoder {name} returns features that are not finite numbers. Use another one.")
        return features


def _stamps(images: ImageSet) -> list[tuple[int, int]]:
    stored = images.images
    if isinstance(stored, LazyImages):
        return [stored.files.stamp(position) for position in stored.positions.tolist()]
    # Images in memory have no time: a part of the digest takes its place.
    found = []
    for positions in torch.split(torch.arange(len(images)), AHEAD):
        for pixels in stored[positions.to(stored.device)].cpu():
            found.append((pixels.numel(), int.from_bytes(_digest(pixels)[:7], "big")))
    return found


def _digest(pixels: Tensor) -> bytes:
    return hashlib.sha256(pixels.contiguous().numpy().data).digest()
