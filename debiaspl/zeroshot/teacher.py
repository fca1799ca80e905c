"""What every zero-shot model is, to the rest of the package; and which one a name means."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from debiaspl.data import ImageSet
from debiaspl.encoders import EncodedViews

Progress = Callable[[str, int, int | None], None]
"""Told what is going on, how much is done, and of how much."""


def no_progress(what: str, done: int, total: int | None) -> None:
    """Tell nobody."""


class Teacher(Protocol):
    """Class names and templates -> probabilities for every image."""

    name: str
    """What a table calls it."""
    about: str
    """One honest line: what it is, how weak, and whether its pre-training saw such classes."""
    note: str
    """For the foot of a table: what its pre-training has seen."""
    size: int | None
    """Side of the images it wants, read from files; None: it looks at no pixels."""
    default_templates: str
    """The set of templates to be used when nobody says."""

    def identity(self) -> dict[str, Any]:
        """All that decides its predictions beside images, classes and templates: part of the cache's key."""

    def predict(
        self, images: ImageSet, classes: Sequence[str], templates: Sequence[str], progress: Progress = no_progress
    ) -> tuple[Tensor, dict[int, str]]:
        """Probabilities, (N, C), in float32 on the CPU, and position -> reason of images that cannot be read."""


def find_teacher(
    name: str | None, side: int, features: Path, views: EncodedViews | None = None, device: torch.device | None = None
) -> Teacher:
    """``conse``, which is also what nothing means; a file of arrays; or a CLIP or SigLIP by hub name or folder.

    ``side`` is that of the photos; ``features`` a folder where ConSE keeps what its network sees, with these ``views``,
    for a student that is frozen.
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
