"""A task: the images that a run learns from and is measured on."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, from_numpy

from debiaspl.data.images import UNLABELED, ImageSet, TrainTest, content_digest, same_images
from debiaspl.data.label_table import Columns
from debiaspl.data.lazy import Progress, images_of, unseen
from debiaspl.data.listing import list_folder, list_images
from debiaspl.data.open import is_folder_of_images, open_data
from debiaspl.data.splits import FewLabels, LabelShare, LongTail, Mismatch, Split, Splitter, TwoTails, hold_out_labels
from debiaspl.data.text import DataError


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
                f"fold is {self.fold} and folds is {self.folds}, expected folds 0, or 2 or more above fold."
            )

    def read(self, data: str, image_size: int, stream: bool, progress: Progress = unseen) -> ImageSet:
        """The folder's images with the given labels, at this size; with ``stream`` they stay in their files."""
        place, table = Path(data).expanduser(), self.table or None
        listing = list_folder(place, table, columns=self.columns, folders=self.folders)
        return images_of(listing, image_size, stream, progress)

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

    def read(self, data: str, image_size: int, stream: bool, progress: Progress = unseen) -> ImageSet:
        """The images at this size; with ``stream`` they stay in their files."""
        if not is_folder_of_images(data):
            return without_classes(open_data(data, image_size, stream).train)
        return images_of(list_images(Path(data).expanduser()), image_size, stream, progress)

    def split(self, labels: Tensor, seed: int) -> Split:
        return Split(torch.empty(0, dtype=torch.int64), torch.arange(len(labels)))


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


PROTOCOLS: dict[str, Callable[..., Splitter]] = {
    "few-labels": FewLabels,
    "given": GivenLabels,
    "label-share": LabelShare,
    "long-tail": LongTail,
    "mismatch": Mismatch,
    "no-labels": NoLabels,
    "two-tails": TwoTails,
}


class Hints(NamedTuple):
    """Labels of the unlabeled images from another model, such as a zero-shot one."""

    label: Tensor
    """int64, (N,)."""
    confidence: Tensor
    """Confidence of that label, 0 to 1, (N,)."""


@dataclass(frozen=True, eq=False)
class Task:
    """The data of a run: labeled images, images whose labels are hidden, and test images.

    ``Task.of`` makes one from a set and a protocol, ``Task.of_given`` from images of which some are labeled,
    ``Task.of_unlabeled`` one without labels and classes, whose labeled and test sets are empty.
    """

    labeled: ImageSet
    unlabeled: ImageSet
    test: ImageSet
    validation: ImageSet | None = None
    """Labeled images held out from training, for choosing settings."""
    hints: Hints | None = None
    """For algorithms that also learn from another model."""

    def __post_init__(self) -> None:
        sets = (self.labeled, self.unlabeled, self.test, *([self.validation] if self.validation else []))
        if len({images.classes for images in sets}) > 1 or len({images.is_encoded for images in sets}) > 1:
            raise ValueError("the sets of a task have different classes, or only some are encoded. Use parts of one.")
        if any(len(images) and int(images.truth.min()) < 0 for images in sets[2:]):
            raise ValueError("a test or validation image has no label, but these sets need a label for every image.")
        if self.hints is not None and {tuple(part.shape) for part in self.hints} != {(len(self.unlabeled),)}:
            raise ValueError(f"the hints do not fit: expected one for each of {len(self.unlabeled)} unlabeled images.")
        # The names of images from arrays are numbers: equal names in two sets may be different images.
        if not same_images(self.labeled, self.unlabeled):
            names = tuple(f"unlabeled/{name}" for name in self.unlabeled.ids)
            object.__setattr__(self, "unlabeled", replace(self.unlabeled, ids=names))

    @classmethod
    def of(cls, whole: TrainTest, protocol: Splitter, seed: int, validation: float = 0.0) -> "Task":
        """A task from a set and a protocol; ``validation`` is a share of the labels that is held out from training."""
        train = whole.train
        split = protocol.split(train.labels, seed)
        held_out = None
        if validation:
            split, positions = hold_out_labels(train.labels, split, validation, seed)
            held_out = train.select(positions)
        unlabeled = train.select(split.unlabeled).without_labels()
        if not len(split.labeled):
            return cls.of_unlabeled(unlabeled)
        return cls(train.select(split.labeled), unlabeled, whole.test, held_out)

    @classmethod
    def of_given(
        cls, images: ImageSet, protocol: GivenLabels | None = None, seed: int = 0, validation: float = 0.0
    ) -> "Task":
        """A task from images with user-provided labels. What is held out is the test set; without folds, the labeled
        images are used instead, which says nothing about other photos."""
        protocol = protocol or GivenLabels()
        split, held_out = protocol.split(images.labels, seed), protocol.held_out(images.labels, seed)
        validated = None
        if validation:
            split, positions = hold_out_labels(images.labels, split, validation, seed)
            validated = images.select(positions)
            split = split._replace(unlabeled=torch.cat((split.unlabeled, positions)).sort().values)
        labeled = images.select(split.labeled)
        test = images.select(held_out) if len(held_out) else labeled
        return cls(labeled, images.select(split.unlabeled).without_labels(), test, validated)

    @classmethod
    def of_unlabeled(cls, images: ImageSet) -> "Task":
        """A task without labels; existing labels are ignored."""
        unlabeled = without_classes(images)
        nothing = unlabeled.select([])
        return cls(nothing, unlabeled, nothing)

    @property
    def has_labels(self) -> bool:
        """Whether there are labels to train and to measure a classifier."""
        return len(self.labeled) > 0

    def to(self, device: torch.device) -> "Task":
        hints = None if self.hints is None else Hints(*(part.to(device) for part in self.hints))
        return replace(self.with_sets(lambda images: images.to(device)), hints=hints)

    def with_sets(self, change: Callable[[ImageSet], ImageSet]) -> "Task":
        """The same task with each of its sets changed."""
        validation = None if self.validation is None else change(self.validation)
        return Task(change(self.labeled), change(self.unlabeled), change(self.test), validation, self.hints)

    def every_image(self) -> ImageSet:
        """All training images, each once, by name: the order does not change when more of them are labeled."""
        both = self.labeled.joined(self.unlabeled)
        first = {name: position for position, name in reversed(list(enumerate(both.ids)))}
        return both.select([first[name] for name in sorted(first)])


def digest(task: Task) -> str:
    """A digest of which images are labeled, unlabeled and tested, of their labels, and of their content."""
    found = hashlib.sha256()
    for images in (task.labeled, task.unlabeled, task.test, *([] if task.validation is None else [task.validation])):
        found.update("\0".join([*images.classes, *images.ids]).encode(errors="surrogateescape"))
        found.update(images.labels.cpu().numpy().tobytes())
        found.update(content_digest(images.images))
    for hint in task.hints or ():
        found.update(hint.cpu().numpy().tobytes())
    return found.hexdigest()
