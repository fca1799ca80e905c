"""ABC (Lee, Shin and Kim, 2021) with plain loops, written from the paper's formulas."""

import math

from tests.reference.paper import Vector, cross_entropy, softmax


def chances(counts: list[int]) -> Vector:
    """Eq. 2: N_L / N_k, the parameter of a class's Bernoulli masks."""
    return [min(counts) / count for count in counts]


def labeled_loss(logits: list[Vector], labels: list[int], counts: list[int], drawn: Vector) -> float:
    """Eq. 1; a mask is 1 where the number drawn for it, uniform in [0, 1), lies below the parameter."""
    total = 0.0
    for row, label, number in zip(logits, labels, drawn, strict=True):
        if number < chances(counts)[label]:
            total += cross_entropy(row, label)
    return total / len(labels)


def unlabeled_loss(
    weak: list[Vector], strong: list[list[Vector]], counts: list[int], drawn: Vector, threshold: float, done: float
) -> float:
    """Eq. 3 and 4: soft targets q, and one mask for all strong views of an image. Its parameter has gone ``done`` of
    the way from 1 to N_L / N_k."""
    total = 0.0
    for place, row in enumerate(weak):
        target = softmax(row)
        label = target.index(max(target))
        parameter = 1 - done * (1 - chances(counts)[label])
        if max(target) >= threshold and drawn[place] < parameter:
            for view in strong:
                predicted = softmax(view[place])
                total -= sum(share * math.log(guess) for share, guess in zip(target, predicted, strict=True))
    return total / len(weak)
