"""What every algorithm is: a small module that turns a batch of views into named losses."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from debiaspl.debias import Correction


class Views(NamedTuple):
    """How many views of each unlabeled image an algorithm asks for."""

    weak: int = 0
    strong: int = 0


class Models(NamedTuple):
    """The network being trained, and the network that labels the weak views: an average of the student, or itself."""

    student: nn.Module
    teacher: nn.Module


@dataclass(frozen=True)
class Batch:
    """One step's images, as floats. Labels of unlabeled images are not among them, so no loss can use them."""

    labeled: Tensor
    """Weak views of the labeled images, (B, C, H, W)."""
    labels: Tensor
    """Their labels, (B,)."""
    weak: tuple[Tensor, ...] = ()
    """Weak views of the unlabeled images, each (U, C, H, W)."""
    strong: tuple[Tensor, ...] = ()
    """Strong views of the same images in the same order."""


class Algorithm(nn.Module, ABC):
    """``losses(models, batch)`` gives named losses whose sum is minimised.

    It is a pure tensor program: static shapes, no ``.item()``, nothing that waits for the device. Whatever it learns
    across steps is a buffer. What it wants to be seen it hands to ``report``.
    """

    views = Views()

    def __init__(self, correction: Correction | None = None) -> None:
        super().__init__()
        self.correction = Correction() if correction is None else correction
        self.monitors: dict[str, Tensor] = {}

    @abstractmethod
    def losses(self, models: Models, batch: Batch) -> dict[str, Tensor]:
        """Named losses, weighted: their sum is what the step minimises."""

    def report(self, **monitors: Tensor) -> None:
        """Show these tensors: scalars are averaged over steps. Three names are known: ``kept`` and ``pseudo_label``,
        one entry per unlabeled image, are compared with the truth outside the algorithm, where it is known;
        ``marginal`` is the mean raw probability of each class."""
        self.monitors = {name: value.detach() for name, value in monitors.items()}


def check_threshold(threshold: float) -> float:
    if not 0 <= threshold <= 1:
        raise ValueError(f"threshold is {threshold!r}, expected a confidence in [0, 1]; FixMatch uses 0.95.")
    return threshold


def predict(models: Models, batch: Batch, joint: bool) -> tuple[Tensor, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Logits of the labeled, the weak and the strong views; gradients reach the labeled and the strong ones alone.

    The student sees labeled and strong views in one batch. The weak views stand beside them in the same batch, so that
    batch norm sees all of them (``joint``, as in FixMatch), or in a batch of their own, which spares a backward pass
    through rows that have no loss. A teacher that is not the student labels the weak views by itself.
    """
    own = [batch.labeled, *batch.strong]
    if joint and batch.weak and models.teacher is models.student:
        parts = _together(models.student, [*own, *batch.weak])
        weak = tuple(part.detach() for part in parts[len(own) :])
    else:
        weak = ()
        if batch.weak:
            with torch.no_grad():
                weak = _together(models.teacher, batch.weak)
        parts = _together(models.student, own)
    return parts[0], weak, tuple(parts[1 : len(own)])


def _together(model: nn.Module, views: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Logits of several views from one pass."""
    logits: Tensor = model(torch.cat(list(views)))
    return torch.split(logits, [len(images) for images in views])
