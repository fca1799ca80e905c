"""DebiasPL as the paper says it, in an eager loop with nothing but torch: no room of the package is used."""

import math
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn


def train(
    student: nn.Module,
    batches: Sequence[Any],
    *,
    classes: int,
    strength: float,
    momentum: float,
    threshold: float,
    learning_rate: float,
    weight_decay: float,
    average_decay: float,
    steps: int,
    joint: bool,
    average_statistics: bool,
) -> Iterator[dict[str, Any]]:
    """After every step: the losses, the prior, the share kept, the student and its average."""
    average = deepcopy(student)
    weights = [parameter for parameter in student.parameters() if parameter.ndim > 1]
    others = [parameter for parameter in student.parameters() if parameter.ndim <= 1]
    optimiser = torch.optim.SGD(
        [{"params": weights, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}],
        lr=learning_rate,
        momentum=0.9,
        nesterov=True,
    )
    prior = torch.full((classes,), 1 / classes, dtype=torch.float64)
    for number, batch in enumerate(batches):
        for group in optimiser.param_groups:
            group["lr"] = learning_rate * math.cos(7 * math.pi * number / (16 * steps))
        labeled, (weak,), (strong,) = batch.labeled, batch.weak, batch.strong
        if joint:
            together = student(torch.cat((labeled, strong, weak)))
            logits, logits_strong, logits_weak = together.split([len(labeled), len(strong), len(weak)])
        else:
            with torch.no_grad():
                logits_weak = student(weak)
            logits, logits_strong = student(torch.cat((labeled, strong))).split([len(labeled), len(strong)])

        # Step 1: labels with the old prior. Step 2: the raw mean moves it. Step 3: the margin has the new one.
        raw = logits_weak.detach().double()
        confidence, label = (raw - strength * prior.log()).softmax(-1).max(-1)
        keep = confidence >= threshold
        prior = momentum * prior + (1 - momentum) * raw.softmax(-1).mean(0)
        own = _cross_entropy(logits, batch.labels).mean()
        unlabeled = (_cross_entropy(logits_strong + strength * prior.log(), label) * keep).mean()

        optimiser.zero_grad()
        (own + unlabeled).backward()
        optimiser.step()
        _average(average, student, average_decay, average_statistics)
        yield {
            "losses": {"labeled": own.item(), "unlabeled": unlabeled.item()},
            "prior": prior.clone(),
            "kept": keep.double().mean().item(),
            "student": student,
            "average": average,
        }


def _cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    chosen = logits.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    return logits.logsumexp(-1) - chosen


@torch.no_grad()
def _average(average: nn.Module, student: nn.Module, decay: float, statistics: bool) -> None:
    for mean, value in zip(average.parameters(), student.parameters(), strict=True):
        mean.copy_(decay * mean + (1 - decay) * value)
    for mean, value in zip(average.buffers(), student.buffers(), strict=True):
        moves = statistics and mean.is_floating_point()
        mean.copy_(decay * mean + (1 - decay) * value if moves else value)
