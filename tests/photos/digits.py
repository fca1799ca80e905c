"""Digits as files: a folder of photos that trains in a second."""

from pathlib import Path

from PIL import Image

from debiaspl.data import load
from tests.data.photos import write_labels


def write_digits(root: Path, count: int = 60, labeled: int = 0, folders: str = "") -> Path:
    """``count`` digits as PNG. The first ``labeled`` are even or odd: as labels.csv says, or by the folder they lie in,
    where the others lie in one called ``folders``."""
    digits, labels = load("digits").train, {}
    for number in range(count):
        label = ("even", "odd")[int(digits.labels[number]) % 2]
        place = folders if not folders or number >= labeled else label
        (root / place).mkdir(parents=True, exist_ok=True)
        Image.fromarray(digits.images[number, 0].numpy()).save(root / place / f"{number:03d}.png")
        if number < labeled:
            labels[f"{number:03d}.png"] = label
    if labeled and not folders:
        write_labels(root / "labels.csv", labels)
    return root
