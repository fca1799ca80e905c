"""The interface of all zero-shot models, those that encode each image once, and how to find one by name."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from debiaspl.data import ImageSet
from debiaspl.encoders import Encoder, features_of
from debiaspl.zeroshot.photos import lite0_size, sized

Progress = Callable[[str, int, int | None], None]
"""Called with the current activity, the amount done, and the total; an activity ends where both are equal."""
CHUNK = 4096
"""Vectors that are classified at a time."""


def no_progress(what: str, done: int, total: int | None) -> None:
    """Show no progress."""


class Teacher(Protocol):
    """Class names and templates -> probabilities for every image."""

    name: str
    """Its name in a table."""
    about: str
    """One honest line: what it is, how weak, and whether its pre-training saw such classes."""
    note: str
    """For the foot of a table: its pre-training data."""
    default_templates: str
    """The default set of templates."""

    def predict(
        self, images: ImageSet, classes: Sequence[str], templates: Sequence[str], progress: Progress = no_progress
    ) -> tuple[Tensor, dict[int, str]]:
        """Probabilities, (N, C), in float32 on the CPU, and index -> reason of images that cannot be read."""


class EncodingTeacher(ABC):
    """Encodes each image once, which is slow, and reads any class names from the vectors, which is fast."""

    name: str
    encoder: Encoder
    folder: Path
    """Where features are kept."""
    source: str
    """Name or folder of the encoder."""
    vectors: Tensor
    """(N, D), of the images that were predicted last."""

    @abstractmethod
    def read(self, vectors: Tensor, classes: Sequence[str], templates: Sequence[str]) -> Tensor:
        """Probabilities, (N, C), from these vectors."""

    def predict(
        self, images: ImageSet, classes: Sequence[str], templates: Sequence[str], progress: Progress = no_progress
    ) -> tuple[Tensor, dict[int, str]]:
        """Probabilities and unreadable images; rows of the latter are uniform."""
        watch = partial(progress, f"{self.encoder.name} looks")
        self.vectors, skipped = features_of(sized(images, self.encoder.image_size), self.encoder, self.folder, watch)
        reading = "reading the class names"  # seconds: the text model is loaded first
        progress(reading, 0, len(classes))
        probabilities = self.read(self.vectors, classes, templates)
        progress(reading, len(classes), len(classes))
        probabilities[list(skipped)] = 1 / len(classes)
        return probabilities, skipped


def find_teacher(name: str | None, side: int, folder: Path, device: torch.device | None = None) -> Teacher:
    """``conse``, the default; a file of arrays; or a CLIP or SigLIP by hub name or folder.

    ``side`` is that of the photos, and ``folder`` is where features are kept.
    """
    device = device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name is None or name.lower() == "conse":
        from debiaspl.zeroshot.conse import ConseTeacher

        return ConseTeacher(lite0_size(side), folder, device)
    from debiaspl.zeroshot.arrays import ENDINGS, ArraysTeacher

    if name.endswith(ENDINGS):
        return ArraysTeacher(name)
    from debiaspl.zeroshot.clip import ClipTeacher

    return ClipTeacher(name, folder, device)
