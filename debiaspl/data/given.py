"""Folders as they are: with all their labels, except those held out to measure a run, or with none."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, from_numpy

from debiaspl.data.errors import DataError
from debiaspl.data.folder import left_in_files, read_listing
from debiaspl.data.images import UNLABELED, ImageSet
from debiaspl.data.listing import Listing, list_folder, list_images
from debiaspl.data.open import is_folder_of_images, open_data
from debiaspl.data.splits import Split
from debiaspl.data.table_form import Columns


@dataclass(frozen=True)
class GivenLabels:
    """Uses every given label, except those of one fold, which measure the run."""

    table: str = ""
    """The table of labels (file_name,label); by default labels.csv in the folder, or class folders."""
    folds: int = 0
    """Number of parts into which the labels are divided; 0: train with all."""
    fold: int = 0
    """Which part is held out."""
    file_column: str = ""
    """Name of the table's column of images, if not file_name."""
    label_column: str = ""
    """Name of the table's column of classes, if not label."""
    folders: bool = False
    """Whether class folders are labels too, for images that the table does not name."""
    labeled_also_unlabeled: bool = False
    """Whether labeled images are also used as unlabeled ones."""

    def __post_init__(self) -> None:
        if self.folds == 1 or self.folds < 0 or not 0 <= self.fold < max(self.folds, 1):
            raise ValueError(
                f"fold is {self.fold} and folds is {self.folds}, expected folds 0, or at least 2 and a fold below that "
                "number, from 0."
            )

    def read(
        self,
        data: str,
        image_size: int,
        stream: bool,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> ImageSet:
        """The folder's images with the given labels, at this size; with ``stream`` they stay in their files."""
        place, table = Path(data).expanduser(), self.table or None
        listing = list_folder(place, table, columns=self.columns, folders=self.folders)
        return _read(listing, image_size, stream, progress)

    @property
    def columns(self) -> Columns:
        return Columns(self.file_column or None, self.label_column or None)

    def split(self, labels: Tensor, seed: int) -> Split:
        """Labels to train with, and all other images; if there are none, the labeled ones again."""
        held_out = self.held_out(labels, seed)
        known = np.flatnonzero(labels.cpu().numpy() != UNLABELED)
        training = np.setdiff1d(known, held_out.numpy())
        if len(training) == 0:
            raise DataError("no image has a label. Label a few images of every class first.")
        every = np.arange(len(labels))
        rest = every if self.labeled_also_unlabeled else np.setdiff1d(every, training)
        return Split(from_numpy(training), from_numpy(rest if len(rest) else training))

    def held_out(self, labels: Tensor, seed: int) -> Tensor:
        """Positions of the labels of this fold, ascending; empty without folds."""
        if not self.folds:
            return torch.empty(0, dtype=torch.int64)
        return (fold_of(labels, self.folds, seed) == self.fold).nonzero().flatten()


@dataclass(frozen=True)
class NoLabels:
    """Ignores all labels: uses every image of a folder, at any depth, or the training images of a known set."""

    def read(
        self,
        data: str,
        image_size: int,
        stream: bool,
        root: str | Path | None = None,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> ImageSet:
        """The images at this size; with ``stream`` they stay in their files."""
        if not is_folder_of_images(data):
            return without_classes(open_data(data, image_size, stream, root).train)
        return _read(list_images(Path(data).expanduser()), image_size, stream, progress)

    def split(self, labels: Tensor, seed: int) -> Split:
        return Split(torch.empty(0, dtype=torch.int64), torch.arange(len(labels)))


def _read(listing: Listing, image_size: int, stream: bool, progress: Callable[[int, int], None]) -> ImageSet:
    return left_in_files(listing, image_size) if stream else read_listing(listing, image_size, progress=progress)[0]


def without_classes(images: ImageSet) -> ImageSet:
    """The same images without classes and labels."""
    none = torch.full_like(images.labels, UNLABELED)
    return replace(images, labels=none, truth=none, classes=())


def fold_of(labels: Tensor, folds: int, seed: int) -> Tensor:
    """The fold of each labeled image: each class is distributed over all folds in turn; -1 for images without a label,
    and for the only label of a class, which is always used for training."""
    random = np.random.RandomState(seed)
    known = labels.cpu().numpy()
    found = np.full(len(known), -1, dtype=np.int64)
    begin = 0
    for number in np.unique(known[known != UNLABELED]):
        own = random.permutation(np.flatnonzero(known == number))
        if len(own) > 1:
            # Continue where the last class ended, so that the folds differ by at most one image.
            found[own] = (begin + np.arange(len(own))) % folds
            begin += len(own)
    return from_numpy(found)
