"""UDA's formulas with plain loops over Python floats, written from its text alone."""

import math

from tests.reference.mixmatch import sharpened
from tests.reference.paper import Vector, cross_entropy, debiased, softmax


def divergence(target: Vector, predicted: Vector) -> float:
    """KL(target || predicted); a class of probability 0 adds nothing."""
    pairs = zip(target, predicted, strict=True)
    return sum(share * (math.log(share) - math.log(value)) for share, value in pairs if share > 0)


def unlabeled_loss(
    weak: list[Vector],
    strong: list[Vector],
    old: Vector,
    new: Vector,
    strength: float,
    threshold: float,
    temperature: float,
) -> float:
    """Sharpened labels from the old prior, where they were confident before; margins from the new prior."""
    total = 0.0
    for logits_weak, logits_strong in zip(weak, strong, strict=True):
        probabilities = debiased(logits_weak, old, strength)
        if max(probabilities) >= threshold:
            total += divergence(sharpened(probabilities, temperature), debiased(logits_strong, new, -strength))
    return total / len(weak)


def limit(schedule: str, done: float, classes: int) -> float:
    """eta_t = alpha_t (1 - 1/K) + 1/K, with the three schedules of alpha_t."""
    alpha = {"linear": done, "log": 1 - math.exp(-done * 5), "exp": math.exp((done - 1) * 5)}[schedule]
    return alpha * (1 - 1 / classes) + 1 / classes


def annealed_loss(logits: list[Vector], labels: list[int], eta: float) -> float:
    """The mean over those labeled images whose label is not yet predicted with more than eta."""
    used = [(row, label) for row, label in zip(logits, labels, strict=True) if softmax(row)[label] <= eta]
    return sum(cross_entropy(row, label) for row, label in used) / len(used) if used else 0.0
