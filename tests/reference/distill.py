"""Distillation as in SimCLRv2 (Chen et al., 2020, Eq. 2) with plain loops over Python floats."""

import math

from tests.reference.paper import Vector, softmax


def distillation(teacher: list[Vector], student: list[Vector], temperature: float) -> float:
    """The mean over images of -sum_y P_T(y | x; tau) log P_S(y | x; tau)."""
    total = 0.0
    for taught, own in zip(teacher, student, strict=True):
        target = softmax([value / temperature for value in taught])
        predicted = softmax([value / temperature for value in own])
        total -= sum(share * math.log(value) for share, value in zip(target, predicted, strict=True))
    return total / len(teacher)
