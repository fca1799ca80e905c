"""Teachers that make a vector of each image once, and read any class names off it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from debiaspl.data import ImageSet
from debiaspl.zeroshot.teacher import Progress, no_progress

REMEMBERED = 100_000
"""Vectors of so many images are kept in memory for the verdict; of more, those that it needs are computed again."""


class Looking(ABC):
    """``predict`` in two parts: ``look`` at the images, which takes long, and ``read`` the classes, which does not."""

    _seen: tuple[ImageSet, Tensor, dict[int, str]] | None = None

    @abstractmethod
    def look(
        self, images: ImageSet, progress: Progress = no_progress, mirrored: bool = False
    ) -> tuple[Tensor, dict[int, str]]:
        """Vectors, (N, D), in float32 on the CPU, and position -> reason of images that cannot be read, whose vectors
        are zeros; of ``mirrored`` images, if asked."""

    @abstractmethod
    def read(self, vectors: Tensor, classes: Sequence[str], templates: Sequence[str]) -> Tensor:
        """Probabilities, (N, C), of these vectors."""

    def predict(
        self, images: ImageSet, classes: Sequence[str], templates: Sequence[str], progress: Progress = no_progress
    ) -> tuple[Tensor, dict[int, str]]:
        """Rows of images that cannot be read are even."""
        vectors, skipped = self.look(images, progress)
        if len(images) <= REMEMBERED:
            self._seen = images, vectors, skipped
        found = self.read(vectors, classes, templates)
        found[list(skipped)] = 1 / len(classes)
        return found, skipped

    def vectors_of(self, images: ImageSet, rows: Tensor, progress: Progress = no_progress) -> Tensor:
        """Vectors of some of the images, (len(rows), D), from memory where these have just been predicted."""
        if self._seen is not None and self._seen[0] is images:
            return self._seen[1][rows]
        return self.look(images.select(rows), progress)[0]

    def forget(self) -> None:
        """Let go of what was kept in memory."""
        self._seen = None


def in_parts(vectors: Tensor) -> tuple[Tensor, ...]:
    return torch.split(vectors, 4096)
