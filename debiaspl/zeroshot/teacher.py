"""The interface of all zero-shot models, and how to find one by name."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from debiaspl.data import ImageSet
from debiaspl.encoders import EncodedViews

Progress = Callable[[str, int, int | None], None]
"""Called with the current activity, the amount done, and the total; an activity ends where both are equal."""


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
    size: int | None
    """Side of its images, read from files; None: it uses no pixels."""
    default_templates: str
    """The default set of templates."""

    def identity(self) -> dict[str, Any]:
        """Everything that its predictions depend on, besides images, classes and templates: part of the cache's key."""

    def predict(
        self, images: ImageSet, classes: Sequence[str], templates: Sequence[str], progress: Progress = no_progress
    ) -> tuple[Tensor, dict[int, str]]:
        """Probabilities, (N, C), in float32 on the CPU, and index -> reason of images that cannot be read."""


def find_teacher(
    name: str | None, side: int, features: Path, views: EncodedViews | None = None, device: torch.device | None = None
) -> Teacher:
    """``conse``, the default; a file of arrays; or a CLIP or SigLIP by hub name or folder.

    ``side`` is that of the photos; ``features`` is a folder in which ConSE stores its network's features, with these
    ``views``, for a frozen student.
    """
    if name is None or name.lower() == "conse":
        from debiaspl.zeroshot.conse import ConseTeacher
        from debiaspl.zeroshot.student import lite0_size

        return ConseTeacher(lite0_size(side), features, views, device)
    from debiaspl.zeroshot.arrays import ENDINGS, ArraysTeacher

    if name.endswith(ENDINGS):
        return ArraysTeacher(name)
    from debiaspl.zeroshot.clip import ClipTeacher

    return ClipTeacher(name, device)
