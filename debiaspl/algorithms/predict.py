"""Logits of the views of a batch, in as few passes as the batch norm allows."""

from collections.abc import Sequence

import torch
from torch import Tensor

from debiaspl.algorithms.algorithm import Batch, Models
from debiaspl.models import Network


def predict(models: Models, batch: Batch, joint: bool) -> tuple[Tensor, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Logits of the labeled, the weak and the strong views; gradients reach the labeled and the strong ones alone.

    The student sees labeled and strong views in one batch. The weak views stand beside them in the same batch, so that
    batch norm sees all of them (``joint``, as in FixMatch), or in a batch of their own, which spares a backward pass
    through rows that have no loss. A teacher that is not the student labels the weak views by itself.
    """
    if not joint or not batch.weak or models.teacher is not models.student:
        weak = predict_weak(models, batch.weak)
        labeled, strong = predict_own(models, batch.labeled, batch.strong)
        return labeled, weak, strong
    own = 1 + len(batch.strong)
    parts = _together(models.student, [batch.labeled, *batch.strong, *batch.weak])
    return parts[0], tuple(part.detach() for part in parts[own:]), parts[1:own]


def predict_weak(models: Models, weak: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Logits of weak views from whoever labels them, in a batch of their own, without gradients."""
    if not weak:
        return ()
    with torch.no_grad():
        return _together(models.teacher, weak)


def predict_own(models: Models, labeled: Tensor, strong: Sequence[Tensor]) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Logits of the labeled and of the strong views from the student, in one batch."""
    parts = _together(models.student, [labeled, *strong])
    return parts[0], parts[1:]


def _together(model: Network, views: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Logits of several views from one pass."""
    logits: Tensor = model(torch.cat(list(views)))
    return torch.split(logits, [len(images) for images in views])
