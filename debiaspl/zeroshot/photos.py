"""A folder of photos that nobody has labeled; the names of its inner folders mean nothing here."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from debiaspl.data import UNLABELED, DataError, ImageSet, LazyImages
from debiaspl.data.lazy import FolderFiles
from debiaspl.data.listing import EXTENSIONS, find_images, list_folder


def open_photos(root: Path, classes: Sequence[str]) -> ImageSet:
    """Every image below ``root``, left in its file, without a label and without a truth."""
    files, _ = find_images(root)
    if not files:
        raise DataError(f"{root} holds no image. Images end in {' '.join(EXTENSIONS)}.")
    lazy = LazyImages(FolderFiles(root, files), torch.arange(len(files)), (0, 0)).with_size_of_first()
    return ImageSet(lazy, torch.full((len(files),), UNLABELED), tuple(classes), files)


def read_truth(root: Path, table: Path, classes: Sequence[str]) -> dict[str, int]:
    """``--evaluate``: file -> class number, for the files that the table names. Reaches the final table alone."""
    return _given(root, table, classes, "--evaluate")


def read_labels(root: Path, table: Path, classes: Sequence[str]) -> dict[str, int]:
    """``--labels``: file -> class number, of labels that a person gave to learn from."""
    return _given(root, table, classes, "--labels")


def _given(root: Path, table: Path, classes: Sequence[str], option: str) -> dict[str, int]:
    if not table.is_file():
        raise DataError(f"{option} is {table}, which is no file. Expected a CSV with the columns file_name,label.")
    listing = list_folder(root, table, classes)
    given = dict(zip(listing.files, listing.labels.tolist(), strict=True))
    found = {file: label for file, label in given.items() if label != UNLABELED}
    if not found:
        raise DataError(f"{table} gives no image a label. Expected rows such as: {listing.files[0]},{classes[0]}")
    return found


def as_tensor(given: dict[str, int], ids: Sequence[str]) -> Tensor:
    """A label for each image, -1 where there is none."""
    return torch.tensor([given.get(name, UNLABELED) for name in ids], dtype=torch.int64)
