"""Logits and features of the views of a batch, in as few passes as batch norm allows."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from debiaspl.algorithms.algorithm import Batch, Models
from debiaspl.models import FurtherHead, Network


class Logits(NamedTuple):
    """Rows of logits for each view: of the labeled images, and of every weak and strong view."""

    labeled: Tensor
    weak: tuple[Tensor, ...]
    strong: tuple[Tensor, ...]


def predict(models: Models, batch: Batch, joint: bool) -> Logits:
    """Logits of the labeled, weak and strong views; only the labeled and the strong ones have gradients.

    The student sees labeled and strong views in one batch. With ``joint``, as in FixMatch, the weak views are part of
    this batch, so that batch norm sees all of them; otherwise they are a separate batch, which saves a backward pass
    through rows without a loss. A teacher that is not the student labels the weak views in a separate pass.
    """
    if not joint or not batch.weak or models.teacher is not models.student:
        weak = predict_weak(models, batch.weak)
        labeled, strong = predict_own(models, batch.labeled, batch.strong)
        return Logits(labeled, weak, strong)
    trained = 1 + len(batch.strong)
    parts = _in_one_pass(models.student, [batch.labeled, *batch.strong, *batch.weak])
    return Logits(parts[0], tuple(part.detach() for part in parts[trained:]), parts[1:trained])


def predict_twice(models: Models, batch: Batch, joint: bool, further: FurtherHead) -> tuple[Logits, Logits]:
    """``predict`` with the network's own classifier and with an additional one on the same features, without extra
    passes.

    If a teacher labels the weak views, it uses its own features and the average of the additional classifier.
    """
    trained, weak = [batch.labeled, *batch.strong], None
    is_student = models.teacher is models.student
    views = [*trained, *batch.weak] if joint and is_student else trained
    if views is trained:
        with torch.no_grad():
            weak = models.teacher.embed(torch.cat(batch.weak))
    features = models.student.embed(torch.cat(views))

    def logits_of(head: Callable[[Tensor], Tensor], labelling: Callable[[Tensor], Tensor]) -> Logits:
        rows = torch.split(head(features), [len(images) for images in views])
        labels = rows[len(trained) :]
        if weak is not None:
            with torch.no_grad():
                labels = torch.split(labelling(weak), [len(images) for images in batch.weak])
        return Logits(rows[0], tuple(row.detach() for row in labels), rows[1 : len(trained)])

    further_labels = further if is_student else further.averaged
    return logits_of(models.student.head, models.teacher.head), logits_of(further, further_labels)


def predict_weak(models: Models, weak: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Logits of weak views from the network that labels them, in a separate batch, without gradients."""
    if not weak:
        return ()
    with torch.no_grad():
        return _in_one_pass(models.teacher, weak)


def predict_own(models: Models, labeled: Tensor, strong: Sequence[Tensor]) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Logits of the labeled and of the strong views from the student, in one batch."""
    parts = _in_one_pass(models.student, [labeled, *strong])
    return parts[0], parts[1:]


def _in_one_pass(model: Network, views: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Logits of several views from one pass."""
    logits: Tensor = model(torch.cat(list(views)))
    return torch.split(logits, [len(images) for images in views])
