"""Teachers that compute a vector for each image once, and predict any class names from it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from debiaspl.data import ImageSet
from debiaspl.zeroshot.teacher import Progress, no_progress

REMEMBERED = 100_000
"""Most vectors that are kept in memory for the verdict; with more images, those it needs are computed again."""


class Looking(ABC):
    """``predict`` in two parts: ``look`` encodes the images, which is slow, and ``read`` the classes, which is fast."""

    _seen: tuple[ImageSet, Tensor, dict[int, str]] | None = None

    @abstractmethod
    def look(
        self, images: ImageSet, progress: Progress = no_progress, mirrored: bool = False
    ) -> tuple[Tensor, dict[int, str]]:
        """Vectors, (N, D), in float32 on the CPU, and index -> reason of images that cannot be read, whose vectors are
        zeros; with ``mirrored``, of the mirrored images."""

    @abstractmethod
    def read(self, vectors: Tensor, classes: Sequence[str], templates: Sequence[str]) -> Tensor:
        """Probabilities, (N, C), from these vectors."""

    def predict(
        self, images: ImageSet, classes: Sequence[str], templates: Sequence[str], progress: Progress = no_progress
    ) -> tuple[Tensor, dict[int, str]]:
        """Probabilities and unreadable images; rows of the latter are uniform."""
        vectors, skipped = self.look(images, progress)
        if len(images) <= REMEMBERED:
            self._seen = images, vectors, skipped
        reading = "reading the class names"  # seconds: the text model is loaded first
        progress(reading, 0, len(classes))
        found = self.read(vectors, classes, templates)
        progress(reading, len(classes), len(classes))
        found[list(skipped)] = 1 / len(classes)
        return found, skipped

    def vectors_of(self, images: ImageSet, rows: Tensor, progress: Progress = no_progress) -> Tensor:
        """Vectors of some of the images, (len(rows), D), from memory if these were just predicted."""
        if self._seen is not None and self._seen[0] is images:
            return self._seen[1][rows]
        return self.look(images.select(rows), progress)[0]

    def forget(self) -> None:
        """Free the vectors in memory."""
        self._seen = None


def in_parts(vectors: Tensor) -> tuple[Tensor, ...]:
    return torch.split(vectors, 4096)
