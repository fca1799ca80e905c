"""A task: the images that a run learns from and is measured on."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from debiaspl.data.formats.definition import TrainTest
from debiaspl.data.given import GivenLabels, NoLabels, without_classes
from debiaspl.data.images import ImageSet, content_digest, same_images
from debiaspl.data.splits import FewLabels, LabelShare, LongTail, Mismatch, Splitter, TwoTails, hold_out_labels

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

    ``Task.of`` makes one from a set and a protocol, ``Task.of_given`` from images of which some are labeled.
    ``Task.of_unlabeled`` makes one without labels, for self-supervised algorithms: its labeled and test sets are empty,
    and it has no classes.
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
            raise ValueError(
                "the sets of a task have different classes, or only some are encoded. Use parts of one set."
            )
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
        images are used instead, which says nothing about other photos.

        The true labels of the other images are not known; those of held-out ones are for monitors.
        """
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
