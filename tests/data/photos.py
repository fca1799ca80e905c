"""Real photographs for tests: the two that ship with scikit-learn, whole, or patches as class folders or tar shards."""

import io
import tarfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_sample_images
from torch import Tensor

from debiaspl.data import ImageSet
from debiaspl.data.lazy import read_listing
from debiaspl.data.listing import Skipped, list_folder
from debiaspl.data.text import csv_line


@cache
def photographs() -> tuple[np.ndarray, ...]:
    return tuple(load_sample_images().images)


def photo(number: int = 0) -> Image.Image:
    """640 x 427: a temple (0) or a flower (1); a fresh one, since Pillow's savers write into it."""
    return Image.fromarray(photographs()[number])


def patch(label: int, number: int, side: int = 24) -> Image.Image:
    """A patch of photograph ``label``; another one for each number."""
    photo = photographs()[label % 2]
    top, left = 7 * number % (photo.shape[0] - side), 31 * number % (photo.shape[1] - side)
    return Image.fromarray(photo[top : top + side, left : left + side])


def encoded(image: Image.Image, format: str = "JPEG", **options: Any) -> bytes:
    stream = io.BytesIO()
    image.save(stream, format, **options)
    return stream.getvalue()


def jpeg(image: Image.Image) -> bytes:
    return encoded(image, quality=90)


def read_folder(root: Path, size: tuple[int, int]) -> tuple[ImageSet, Skipped]:
    return read_listing(list_folder(root), size)


def pixels(image: Image.Image) -> Tensor:
    array = torch.from_numpy(np.array(image))
    return array[None] if array.ndim == 2 else array.permute(2, 0, 1)


def close(found: Tensor, expected: Tensor | Image.Image, tolerance: float = 3.0) -> bool:
    """Alike on average, in steps of 255; two photographs, or one and its mirror image, are some 60 apart."""
    reference = pixels(expected) if isinstance(expected, Image.Image) else expected
    return found.shape == reference.shape and float((found.float() - reference.float()).abs().mean()) < tolerance


def write_folder(root: Path, per_class: int = 10, classes: tuple[str, ...] = ("china", "flower")) -> Path:
    for label, name in enumerate(classes):
        (root / name).mkdir(parents=True)
        for number in range(per_class):
            (root / name / f"{number:04d}.jpg").write_bytes(jpeg(patch(label, number)))
    return root


def write_photos(root: Path, names: Iterable[str], side: int = 24) -> Path:
    """A patch for each name, of both photographs in turn."""
    for number, name in enumerate(names):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(jpeg(patch(number % 2, number, side)))
    return root


def write_labels(table: Path, labels: Mapping[str, str]) -> Path:
    table.write_text("".join(map(csv_line, (("file_name", "label"), *labels.items()))))
    return table


def write_shards(root: Path, per_class: int = 10, shards: int = 3, labels: tuple[str, ...] = ("0", "1")) -> Path:
    """Samples of both classes in turn, spread over a few shards of unequal length."""
    root.mkdir(parents=True, exist_ok=True)
    samples = [(label, number) for number in range(per_class) for label in range(len(labels))]
    cuts = np.linspace(0, len(samples), shards + 1).astype(int) + np.arange(shards + 1) % 2
    cuts[-1] = len(samples)
    for shard in range(shards):
        with tarfile.open(root / f"part-{shard:03d}.tar", "w") as tar:
            for label, number in samples[cuts[shard] : cuts[shard + 1]]:
                add(tar, f"{label}-{number:04d}.jpg", jpeg(patch(label, number)))
                add(tar, f"{label}-{number:04d}.cls", labels[label].encode())
    return root


def add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    tar.addfile(member, io.BytesIO(content))
