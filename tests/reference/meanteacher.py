"""Mean Teacher's formulas with plain loops over Python floats, written from its text alone."""

import math

from tests.reference.paper import Vector, debiased


def consistency(student: list[Vector], teacher: list[Vector], old: Vector, new: Vector, strength: float) -> float:
    """J: the squared distance of the probabilities, the mean over classes and images; targets are corrected with the
    old prior, the student has the margin of the new one."""
    total = 0.0
    for logits_student, logits_teacher in zip(student, teacher, strict=True):
        target = debiased(logits_teacher, old, strength)
        predicted = debiased(logits_student, new, -strength)
        total += sum((one - other) ** 2 for one, other in zip(predicted, target, strict=True)) / len(target)
    return total / len(student)


def growth(done: float, share: float) -> float:
    """exp(-5 (1 - T)^2), T from 0 to 1 over the first part of the training, then 1."""
    return math.exp(-5 * (1 - done / share) ** 2) if done < share else 1.0
