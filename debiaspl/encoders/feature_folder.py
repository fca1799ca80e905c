"""The files of a folder of features. ``encoding.py`` says which images are computed.

    manifest.jsonl            line k: the names of the images of file k, at most 10,000
    about.json                the encoder, and the size of its images
    00000.safetensors         their features, and the size, time and digest of each image
    00001-00512.safetensors   rows 512 and following of file 1, which is not complete yet

A file belongs to one encoder and to one line of the manifest, and has a digest: one that is damaged or made for
something else is computed again.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from debiaspl.data.manifest import ABOUT, StoredFor, regular_file
from debiaspl.data.tensor_file import read_tensor_file, tensor_file
from debiaspl.encoders.encoder import Encoder, fingerprint
from debiaspl.files import parse_json, write_bytes, write_json

FEATURES = ".features"
"""Name of such a folder beside runs."""
_FORMAT = 4


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
    about: StoredFor
    """For people, and for commands that have no photos."""
    half: bool = False
    """Whether features are written in half precision, which takes half the space."""

    @classmethod
    def of(cls, root: Path, encoder: Encoder, shape: Sequence[int], half: bool = False) -> "FeatureFolder":
        """That of an encoder and of images of this shape, (C, H, W)."""
        key = hashlib.sha256(json.dumps([_FORMAT, fingerprint(encoder), *shape]).encode()).hexdigest()
        about = StoredFor(encoder.name, encoder.image_size, shape[1])
        return cls(root / key[:16], key, encoder.num_features, about, half)

    def describe(self) -> None:
        if not (self.path / ABOUT).exists():
            write_json(self.path / ABOUT, self.about._asdict())

    def read(self, number: int, names: Sequence[str], features: bool = True) -> Rows:
        """The rows of this file that are there: all, or those of its parts. Without ``features`` only their stamps and
        digests are read, which are then not checked."""
        rows = Rows.empty(len(names), self.width if features else 0)
        if not self._load(file_name(number), names, rows) or rows.count < len(names):
            rows.count = 0
            for path in sorted(self.path.glob(file_name(number, "*"))):
                self._load(path.name, names, rows)
        return rows

    def write(self, number: int, names: Sequence[str], rows: Rows, start: int) -> None:
        """Write the rows from ``start`` on; if the file is complete, all of them."""
        complete = rows.count == len(names)
        start = 0 if complete else start
        skipped = {row: reason for row, reason in rows.skipped.items() if row >= start}
        text = json.dumps({**self._about(names, start), "skipped": skipped})
        name = file_name(number) if complete else file_name(number, f"{start:05d}")
        tensors = rows.tensors(start)
        if self.half:
            tensors["features"] = tensors["features"].half()
        write_bytes(self.path / name, tensor_file(tensors, "debiaspl", text))
        for path in self.path.glob(file_name(number, "*")) if complete else ():
            path.unlink(missing_ok=True)

    def _load(self, name: str, names: Sequence[str], rows: Rows) -> bool:
        """Append what this file holds to the rows, if it continues them."""
        try:
            path = regular_file(self.path / name)
            whole = rows.features.shape[1] > 0
            tensors, texts, _ = read_tensor_file(path, only=() if whole else ("stamps", "digests"))
            tensors = {"features": torch.empty(len(tensors["stamps"]), 0)} | tensors
            about = parse_json(texts["debiaspl"])
            skipped = {int(row): str(reason) for row, reason in about.pop("skipped").items()}
            start, end = rows.count, rows.count + len(tensors["features"])
            if about != self._about(names, start) or not bool(tensors["features"].isfinite().all()):
                return False
            for key, place in rows.tensors(start, end).items():
                half = key == "features" and tensors[key].dtype == torch.float16
                if tensors[key].shape != place.shape or not (half or tensors[key].dtype == place.dtype):
                    return False
            for key, place in rows.tensors(start, end).items():
                place.copy_(tensors[key])
        except (OSError, KeyError, TypeError, ValueError, AttributeError):
            return False  # missing or damaged
        rows.skipped, rows.count = rows.skipped | skipped, end
        return True

    def _about(self, names: Sequence[str], start: int) -> dict[str, object]:
        line = hashlib.sha256(json.dumps(names).encode()).hexdigest()
        return {"encoder": self.key, "names": line, "start": start}


def file_name(number: int, start: str = "") -> str:
    return f"{number:05d}{'-' if start else ''}{start}.safetensors"
