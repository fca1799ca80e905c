"""A Debiaser with a target, with plain loops: losses take out the shares of what they learn from, labels take in those
of the images."""

import math

from tests.reference.paper import Vector, softmax


def shifted(logits: Vector, shares: Vector, strength: float) -> Vector:
    return [value + strength * math.log(share) for value, share in zip(logits, shares, strict=True)]


def target(estimate: Vector, labels: int, few: float = 5.0) -> Vector:
    """The estimate counts as many times as there are labels a class, equal shares ``few`` times."""
    classes = len(estimate)
    weight = (labels / classes) / (labels / classes + few)
    return [weight * share + (1 - weight) / classes for share in estimate]


def moved(shares: Vector, weak: list[Vector], aim: Vector, strength: float, momentum: float, least: float) -> Vector:
    """The running shares of hard labels that are confident enough, after a batch; the same if there is none."""
    counts = [0] * len(shares)
    for row in weak:
        probabilities = softmax(shifted(row, aim, strength))
        if max(probabilities) >= least:
            counts[probabilities.index(max(probabilities))] += 1
    if not sum(counts):
        return shares
    pairs = zip(shares, counts, strict=True)
    return [momentum * share + (1 - momentum) * count / sum(counts) for share, count in pairs]


def margin(kept: Vector) -> Vector:
    """The logarithms that the unlabeled loss sees: a share counts at least a hundredth of an equal one."""
    return [math.log(max(share, 0.01 / len(kept))) for share in kept]
