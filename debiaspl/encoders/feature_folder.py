"""The files of a folder of features. ``encoding.py`` says which images are computed.

    manifest.jsonl            line k: the names of the images of file k, at most 10,000
    about.json                the encoder, and the size of its images
    00000.safetensors         their features, and the size, time and digest of each image
    00001-part.safetensors    the first rows of file 1, which is not complete yet

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

    def tensors(self) -> dict[str, Tensor]:
        whole = {"features": self.features, "stamps": self.stamps, "digests": self.digests}
        return {name: tensor[: self.count] for name, tensor in whole.items()}


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
        """The rows of this file that are there. Without ``features`` only their stamps and digests are read, which are
        then not checked."""
        both = (self._loaded(file_name(number, part), names, features) for part in (False, True))
        return next(filter(None, both), None) or Rows.empty(len(names), self.width)

    def write(self, number: int, names: Sequence[str], rows: Rows) -> None:
        tensors, complete = rows.tensors(), rows.count == len(names)
        if self.half:
            tensors["features"] = tensors["features"].half()
        text = json.dumps({**self._about(names), "skipped": rows.skipped})
        write_bytes(self.path / file_name(number, part=not complete), tensor_file(tensors, "debiaspl", text))
        if complete:
            self.remove_part(number)

    def remove_part(self, number: int) -> None:
        (self.path / file_name(number, part=True)).unlink(missing_ok=True)

    def _loaded(self, name: str, names: Sequence[str], features: bool) -> Rows | None:
        rows = Rows.empty(len(names), self.width if features else 0)
        try:
            path = regular_file(self.path / name)
            tensors, texts, _ = read_tensor_file(path, only=() if features else ("stamps", "digests"))
            about = parse_json(texts["debiaspl"])
            rows.skipped = {int(row): str(reason) for row, reason in about.pop("skipped").items()}
            rows.count = len(tensors["stamps"])
            tensors = {"features": torch.empty(rows.count, 0)} | tensors
            good = about == self._about(names) and bool(tensors["features"].isfinite().all())
            for key, place in rows.tensors().items():
                half = key == "features" and tensors[key].dtype == torch.float16
                good &= tensors[key].shape == place.shape and (half or tensors[key].dtype == place.dtype)
                if good:
                    place.copy_(tensors[key])
        except (OSError, KeyError, TypeError, ValueError, AttributeError):
            return None  # missing or damaged
        return rows if good else None

    def _about(self, names: Sequence[str]) -> dict[str, object]:
        line = hashlib.sha256(json.dumps(names).encode()).hexdigest()
        return {"encoder": self.key, "names": line, "start": 0}


def file_name(number: int, part: bool = False) -> str:
    return f"{number:05d}{'-part' if part else ''}.safetensors"
