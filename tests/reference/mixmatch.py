"""MixMatch's formulas with plain loops over Python floats, written from its text alone."""

import math

from tests.reference.paper import Vector, debiased, moved_prior, softmax


def sharpened(probabilities: Vector, temperature: float) -> Vector:
    """Eq. 7: p_i^(1/T) over their sum."""
    powers = [value ** (1 / temperature) for value in probabilities]
    return [power / sum(powers) for power in powers]


def mixture(rows: list[Vector], partners: list[int], shares: Vector) -> list[Vector]:
    """Eq. 10 and 11: lambda' x1 + (1 - lambda') x2, with lambda' = max(lambda, 1 - lambda) (Eq. 9) given."""
    return [
        [share * one + (1 - share) * other for one, other in zip(row, rows[partner], strict=True)]
        for row, partner, share in zip(rows, partners, shares, strict=True)
    ]


def linear(weight: list[Vector], image: Vector) -> Vector:
    """A classifier that can be followed by hand."""
    return [sum(a * b for a, b in zip(row, image, strict=True)) for row in weight]


def one_hot(label: int, classes: int) -> Vector:
    return [1.0 if number == label else 0.0 for number in range(classes)]


def soft_cross_entropy(probabilities: Vector, target: Vector) -> float:
    return -sum(share * math.log(value) for share, value in zip(target, probabilities, strict=True))


def guesses(views: list[list[Vector]], prior: Vector, strength: float, temperature: float) -> list[Vector]:
    """Eq. 6 and 7: the mean of the views' (corrected) probabilities, sharpened; ``views`` are logits."""
    found = []
    for logits in zip(*views, strict=True):
        each = [debiased(row, prior, strength) for row in logits]
        found.append(sharpened([sum(column) / len(each) for column in zip(*each, strict=True)], temperature))
    return found


def mean_logits(views: list[list[Vector]]) -> list[Vector]:
    return [[sum(column) / len(column) for column in zip(*logits, strict=True)] for logits in zip(*views, strict=True)]


def losses(
    weight: list[Vector],
    labeled: list[Vector],
    labels: list[int],
    views: list[list[Vector]],
    partners: list[int],
    shares: Vector,
    prior: Vector,
    momentum: float,
    strength: float,
    temperature: float,
) -> tuple[float, float, Vector]:
    """Eq. 3 and 4, and the prior after the batch: cross-entropy of the labeled mixtures with their mixed labels; the
    squared error, over images and classes, of the others, whose logits carry the margin of the new prior."""
    classes = len(weight)
    logits_weak = [[linear(weight, image) for image in view] for view in views]
    guess = guesses(logits_weak, prior, strength, temperature)
    new = moved_prior(prior, mean_logits(logits_weak), momentum)

    images = labeled + [image for view in views for image in view]
    targets = [one_hot(label, classes) for label in labels] + guess * len(views)
    mixed, mixed_targets = mixture(images, partners, shares), mixture(targets, partners, shares)

    known, unknown = 0.0, 0.0
    for number, (image, target) in enumerate(zip(mixed, mixed_targets, strict=True)):
        logits = linear(weight, image)
        if number < len(labeled):
            known += soft_cross_entropy(softmax(logits), target) / len(labeled)
        else:
            predicted = debiased(logits, new, -strength)
            squared = sum((one - other) ** 2 for one, other in zip(predicted, target, strict=True))
            unknown += squared / classes / (len(mixed) - len(labeled))
    return known, unknown, new
