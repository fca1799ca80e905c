"""AdaMatch (Berthelot et al., 2022) with plain loops over Python floats."""

import math

from tests.reference.paper import Vector, softmax


def between(together: list[Vector], alone: list[Vector], shares: list[Vector]) -> list[Vector]:
    """lambda Z' + (1 - lambda) Z'', a lambda for every logit."""
    return [
        [share * one + (1 - share) * other for one, other, share in zip(*rows, strict=True)]
        for rows in zip(together, alone, shares, strict=True)
    ]


def relative_threshold(labeled: list[Vector], threshold: float) -> float:
    return threshold * sum(max(softmax(logits)) for logits in labeled) / len(labeled)


def moved_target(target: Vector, labeled: list[Vector], decay: float) -> Vector:
    """The average of the mean predictions on labeled images, once it has taken this batch in."""
    found = [softmax(logits) for logits in labeled]
    means = [sum(column) / len(found) for column in zip(*found, strict=True)]
    return [decay * old + (1 - decay) * mean for old, mean in zip(target, means, strict=True)]


def aligned(weak: list[Vector], target: Vector, prior: Vector) -> list[Vector]:
    """norm(q E[labeled] / E[unlabeled])."""
    rows = []
    for logits in weak:
        row = [q * wanted / seen for q, wanted, seen in zip(softmax(logits), target, prior, strict=True)]
        rows.append([value / sum(row) for value in row])
    return rows


def growth(progress: float) -> float:
    """mu(t)."""
    return 1 / 2 - math.cos(min(math.pi, 2 * math.pi * progress)) / 2
