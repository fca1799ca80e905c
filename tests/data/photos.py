"""Small real photographs for tests: patches of the two that ship with scikit-learn, as class folders or tar shards."""

import io
import tarfile
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_sample_images


@cache
def photographs() -> tuple[np.ndarray, ...]:
    return tuple(load_sample_images().images)


def patch(label: int, number: int, side: int = 24) -> Image.Image:
    """A patch of photograph ``label``; another one for each number."""
    photo = photographs()[label % 2]
    top, left = 7 * number % (photo.shape[0] - side), 31 * number % (photo.shape[1] - side)
    return Image.fromarray(photo[top : top + side, left : left + side])


def jpeg(image: Image.Image) -> bytes:
    content = io.BytesIO()
    image.save(content, "JPEG", quality=90)
    return content.getvalue()


def write_folder(root: Path, per_class: int = 10, classes: tuple[str, ...] = ("china", "flower")) -> Path:
    for label, name in enumerate(classes):
        (root / name).mkdir(parents=True)
        for number in range(per_class):
            (root / name / f"{number:04d}.jpg").write_bytes(jpeg(patch(label, number)))
    return root


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
