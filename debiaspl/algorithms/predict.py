"""Logits, and features, of the views of a batch, in as few passes as the batch norm allows."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from debiaspl.algorithms.algorithm import Batch, Models
from debiaspl.models import FurtherHead, Network


class Logits(NamedTuple):
    """Rows of logits for each view: of the labeled images, and of every weak and every strong view."""

    labeled: Tensor
    weak: tuple[Tensor, ...]
    strong: tuple[Tensor, ...]


def predict(models: Models, batch: Batch, joint: bool) -> Logits:
    """Logits of the labeled, the weak and the strong views; gradients reach the labeled and the strong ones alone.

    The student sees labeled and strong views in one batch. The weak views stand beside them in the same batch, so that
    batch norm sees all of them (``joint``, as in FixMatch), or in a batch of their own, which spares a backward pass
    through rows that have no loss. A teacher that is not the student labels the weak views by itself.
    """
    if not joint or not batch.weak or models.teacher is not models.student:
        weak = predict_weak(models, batch.weak)
        labeled, strong = predict_own(models, batch.labeled, batch.strong)
        return Logits(labeled, weak, strong)
    own = 1 + len(batch.strong)
    parts = _together(models.student, [batch.labeled, *batch.strong, *batch.weak])
    return Logits(parts[0], tuple(part.detach() for part in parts[own:]), parts[1:own])


def predict_twice(models: Models, batch: Batch, joint: bool, further: FurtherHead) -> tuple[Logits, Logits]:
    """``predict`` with the network's own classifier, and with a further one on the same features: no pass is repeated.

    Weak views that a teacher labels have its features, which the average of the further classifier belongs to.
    """
    own, weak = [batch.labeled, *batch.strong], None
    by_itself = models.teacher is models.student
    if not (joint and by_itself):
        with torch.no_grad():
            weak = models.teacher.embed(torch.cat(batch.weak))
    features = models.student.embed(torch.cat(own if weak is not None else [*own, *batch.weak]))

    def logits_of(head: Callable[[Tensor], Tensor], labelling: Callable[[Tensor], Tensor]) -> Logits:
        rows = torch.split(head(features), [len(views) for views in (own if weak is not None else [*own, *batch.weak])])
        labels = rows[len(own) :]
        if weak is not None:
            with torch.no_grad():
                labels = torch.split(labelling(weak), [len(views) for views in batch.weak])
        return Logits(rows[0], tuple(row.detach() for row in labels), rows[1 : len(own)])

    further_labels = further if by_itself else further.averaged
    return logits_of(models.student.head, models.teacher.head), logits_of(further, further_labels)


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
