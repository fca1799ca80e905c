"""The loop: one small program, read from top to bottom."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from debiaspl.algorithms import Algorithm, Batch, Models
from debiaspl.data import IndexStream
from debiaspl.models import Network
from debiaspl.vectors.scaling import curvature
from debiaspl.vectors.views import VectorViews

LINES = 20
"""Lines of history, whatever the number of steps."""
SAMPLE = 1000
"""Rows that the size of a step is measured with."""


@dataclass(frozen=True)
class Schedule:
    """How long and how fast a head learns."""

    steps: int
    labeled_batch: int
    unlabeled_batch: int
    learning_rate: float
    """At the start, in units of what the data allow; it falls to 0, so that the last weights need no averaging."""
    weight_decay: float
    """On weights, not on biases."""
    seed: int

    def factor(self, number: int) -> float:
        """Of the learning rate at a step: half a cosine, from 1 to 0."""
        return (1 + math.cos(math.pi * number / self.steps)) / 2


def run(
    student: Network, algorithm: Algorithm, views: VectorViews, labels: Tensor, schedule: Schedule
) -> list[dict[str, Any]]:
    """Train the student in place; what is returned are a few lines of what happened."""
    known = (labels >= 0).nonzero().flatten()
    # Two losses, labeled and unlabeled; a bias is the weight of a feature that is always 1, and bends by 1 in each.
    bend = sum(curvature(views.weak(rows)) for rows in (known[:SAMPLE], _some(labels, schedule.seed)))
    rates = schedule.learning_rate / max(bend, 1e-6), schedule.learning_rate / 2
    groups = [
        {"params": [student.head.weight], "lr": rates[0], "weight_decay": schedule.weight_decay},
        {"params": [student.head.bias], "lr": rates[1]},
    ]
    optimiser = torch.optim.SGD(groups, momentum=0.9, nesterov=True)
    # A batch larger than the set would hold the same vectors twice.
    first = IndexStream(len(known), min(schedule.labeled_batch, len(known)), 2 * schedule.seed)
    second = IndexStream(len(labels), min(schedule.unlabeled_batch, len(labels)), 2 * schedule.seed + 1)
    history: list[dict[str, Any]] = []

    for number in range(schedule.steps):
        labeled, unlabeled = known[first[number].to(known.device)], second[number].to(known.device)
        batch = Batch(
            labeled=views.weak(labeled),
            labels=labels[labeled],
            weak=(views.weak(unlabeled),),
            strong=(views.strong(unlabeled),),
            positions=unlabeled,
            progress=torch.tensor(number / schedule.steps, device=known.device),
            generator=views.generator,
        )
        losses = algorithm.losses(Models(student, student), batch)
        for group, rate in zip(optimiser.param_groups, rates, strict=True):
            group["lr"] = rate * schedule.factor(number)
        optimiser.zero_grad()
        torch.stack(list(losses.values())).sum().backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        optimiser.step()
        if (number + 1) * LINES // schedule.steps > number * LINES // schedule.steps:
            history.append(_line(number + 1, losses, algorithm))
    return history


def _some(labels: Tensor, seed: int) -> Tensor:
    """Rows from all over the set."""
    return IndexStream(len(labels), min(SAMPLE, len(labels)), seed)[0].to(labels.device)


def _line(step: int, losses: dict[str, Tensor], algorithm: Algorithm) -> dict[str, Any]:
    line: dict[str, Any] = {"step": step, "losses": {name: float(loss.detach()) for name, loss in losses.items()}}
    if "kept" in algorithm.monitors:
        line["kept"] = float(algorithm.monitors["kept"].float().mean())
    prior = getattr(algorithm.correction, "prior", None)
    if prior is not None:
        line["prior"] = prior.tolist()
    return line
