"""SimPro (Du, Han and Huang, 2024) with plain loops, as the released code computes it, a step at a time."""

import math

from tests.reference.paper import Vector, softmax


def adjusted(logits: Vector, shares: Vector, tau: float) -> Vector:
    """What the Bayes classifier of classes that occur with these shares sees."""
    return [value + math.log(share**tau + 1e-12) for value, share in zip(logits, shares, strict=True)]


def labels(weak: list[Vector], prior: Vector, tau: float) -> list[Vector]:
    return [softmax(adjusted(row, prior, tau)) for row in weak]


def moved(
    weak: list[Vector],
    prior: Vector,
    joint: Vector,
    known: Vector,
    tau: float,
    momentum: float,
    least: float,
    mu: float,
) -> tuple[Vector, Vector]:
    """phi_u and phi after a batch: from confident soft labels, and from those together with the labeled images, of
    which there is one for every mu unlabeled ones."""
    kept = [row for row in labels(weak, prior, tau) if max(row) >= least]
    if not kept:
        return prior, joint
    sums = [sum(row[number] for row in kept) for number in range(len(prior))]
    labeled = [share * len(weak) / mu for share in known]
    both = [one + other for one, other in zip(labeled, sums, strict=True)]

    def follow(old: Vector, seen: Vector) -> Vector:
        return [momentum * was + (1 - momentum) * now / sum(seen) for was, now in zip(old, seen, strict=True)]

    return follow(prior, sums), follow(joint, both)
