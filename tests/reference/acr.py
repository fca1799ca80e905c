"""ACR (Wei and Gan, 2023) with plain loops."""

import math

from tests.reference.paper import Vector, cross_entropy, softmax


def distance(first: Vector, second: Vector) -> float:
    """The mean of the KL divergences both ways."""
    one = sum(p * math.log(p / q) for p, q in zip(first, second, strict=True))
    other = sum(q * math.log(q / p) for p, q in zip(first, second, strict=True))
    return 0.5 * one + 0.5 * other


def adapted(estimate: Vector, labeled: Vector, largest: float) -> float:
    """tau_t; the classes are sorted, the most frequent first."""
    anchors = labeled, [1 / len(labeled)] * len(labeled), labeled[::-1]
    powers = [math.exp(distance(estimate, anchor)) for anchor in anchors]
    return largest * powers[0] / sum(powers)


def adjusted(logits: Vector, shares: Vector, tau: float) -> Vector:
    return [value + tau * math.log(share) for value, share in zip(logits, shares, strict=True)]


def unlabeled_loss(weak: list[Vector], second: list[Vector], strong: list[Vector], threshold: float) -> float:
    """Labels from adjusted logits ``weak``, used where they or those of ``second`` reach the threshold."""
    total = 0.0
    for row, other, view in zip(weak, second, strong, strict=True):
        label = softmax(row)
        if max(label) >= threshold or max(softmax(other)) >= threshold:
            total += cross_entropy(view, label.index(max(label)))
    return total / len(weak)


def moved(estimate: Vector, balanced: list[Vector], threshold: float, momentum: float) -> Vector:
    """The estimate after a batch: from the confident labels of the balanced classifier."""
    labels = [softmax(row) for row in balanced]
    kept = [row.index(max(row)) for row in labels if max(row) >= threshold]
    return [
        momentum * old + (1 - momentum) * kept.count(number) / len(kept) if kept else old
        for number, old in enumerate(estimate)
    ]
