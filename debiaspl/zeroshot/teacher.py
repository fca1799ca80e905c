"""What every zero-shot model is, to the rest of the package."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from torch import Tensor

from debiaspl.data import ImageSet

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
