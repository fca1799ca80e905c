"""The files of a folder of features. ``encoding.py`` says which images are computed.

    manifest.jsonl            line k: the names of the images of file k, at most 10,000
    about.json                the encoder, and the size of its images
    00000.safetensors         their features, and the size, time and digest of each image: the first rows, or all

A file belongs to one encoder and to one line of the manifest, and has a digest: one that is damaged or made for
something else is computed again.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from debiaspl.data.manifest import ABOUT, StoredFor, encoders_in, regular_file
from debiaspl.data.tensor_file import read_tensor_file, tensor_file
from debiaspl.encoders.encoder import Encoder, fingerprint
from debiaspl.files import parse_json, write_bytes, write_json

FEATURES = ".features"
"""Name of such a folder beside runs."""
_FORMAT = 4


@dataclass
class ImageRow:
    """What a file keeps of one image."""

    stamp: tuple[int, int] = (-1, -1)
    """Its size and time; -1 if it was not read."""
    digest: bytes = bytes(32)
    """SHA-256."""
    bad: str = ""
    """Why it could not be decoded."""
    features: Tensor | None = None
    """float32, (D,); None stands for zeros."""


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
        if self.path.name not in encoders_in(self.path.parent):
            write_json(self.path / ABOUT, self.about._asdict())

    def read(self, number: int, names: Sequence[str], features: bool = True) -> list[ImageRow]:
        """The first rows of this file, in the order of its names. Without ``features`` only stamps and digests are
        read, which are then not checked."""
        try:
            return self._loaded(number, names, features)
        except (OSError, KeyError, TypeError, ValueError, AttributeError):  # missing or damaged
            return []

    def write(self, number: int, names: Sequence[str], rows: Sequence[ImageRow]) -> None:
        values = torch.zeros((len(rows), self.width), dtype=torch.float16 if self.half else torch.float32)
        for value, row in zip(values, rows, strict=True):
            value.copy_(0.0 if row.features is None else row.features)
        tensors = {
            "features": values,
            "stamps": torch.tensor([row.stamp for row in rows]),
            "digests": torch.tensor([list(row.digest) for row in rows], dtype=torch.uint8),
        }
        skipped = {place: row.bad for place, row in enumerate(rows) if row.bad}
        text = json.dumps({**self._about(names), "skipped": skipped})
        write_bytes(self._file(number), tensor_file(tensors, "debiaspl", text))

    def _loaded(self, number: int, names: Sequence[str], features: bool) -> list[ImageRow]:
        only = () if features else ("stamps", "digests")
        tensors, texts = read_tensor_file(regular_file(self._file(number)), only=only)
        about, count = parse_json(texts["debiaspl"]), len(tensors["stamps"])
        skipped = about.pop("skipped")
        values = tensors["features"].float() if features else torch.empty(count, 0)
        shapes = {"features": (count, self.width), "stamps": (count, 2), "digests": (count, 32)}
        good = about == self._about(names) and count <= len(names) and bool(values.isfinite().all())
        if not good or any(tensor.shape != shapes[name] for name, tensor in tensors.items()):
            raise ValueError("it was written for something else")
        parts = zip(tensors["stamps"].tolist(), tensors["digests"].numpy(), values, strict=True)
        return [
            ImageRow((size, when), digest.tobytes(), str(skipped.get(str(place), "")), row)
            for place, ((size, when), digest, row) in enumerate(parts)
        ]

    def _about(self, names: Sequence[str]) -> dict[str, str]:
        return {"encoder": self.key, "names": hashlib.sha256(json.dumps(names).encode()).hexdigest()}

    def _file(self, number: int) -> Path:
        return self.path / f"{number:05d}.safetensors"
