"""ReMixMatch's formulas with plain loops over Python floats, written from its text alone."""

from tests.reference.mixmatch import linear, mixture, one_hot, sharpened, soft_cross_entropy
from tests.reference.paper import Vector, cross_entropy, debiased, moved_prior, softmax

Grid = list[list[float]]


def turned(image: Grid, quarters: int) -> Grid:
    """A quarter to the left: the last column becomes the first row."""
    for _ in range(quarters):
        image = [[row[column] for row in image] for column in reversed(range(len(image[0])))]
    return image


def losses(
    weight: list[Vector],
    labeled: list[Vector],
    labels: list[int],
    weak: list[Vector],
    strong: list[list[Vector]],
    partners: list[int],
    shares: Vector,
    prior: Vector,
    momentum: float,
    strength: float,
    temperature: float,
) -> tuple[float, float, float, Vector]:
    """Algorithm 1 and Eq. 3 without its rotations: labeled and unlabeled mixtures, the first strong view unmixed; and
    the prior after the batch. ``weak`` and ``strong`` are images, flat."""
    logits_weak = [linear(weight, image) for image in weak]
    guess = [sharpened(debiased(row, prior, strength), temperature) for row in logits_weak]
    new = moved_prior(prior, logits_weak, momentum)

    images = labeled + [image for view in (*strong, weak) for image in view]
    targets = [one_hot(label, len(weight)) for label in labels] + guess * (len(strong) + 1)
    mixed = mixture(images, partners, shares)
    mixed_targets = mixture(targets, partners, shares)

    known, unknown = 0.0, 0.0
    for number, (image, target) in enumerate(zip(mixed, mixed_targets, strict=True)):
        logits = linear(weight, image)
        if number < len(labeled):
            known += soft_cross_entropy(softmax(logits), target) / len(labeled)
        else:
            loss = soft_cross_entropy(debiased(logits, new, -strength), target)
            unknown += loss / (len(mixed) - len(labeled))
    first = 0.0
    for image, target in zip(strong[0], guess, strict=True):
        first += soft_cross_entropy(debiased(linear(weight, image), new, -strength), target) / len(weak)
    return known, unknown, first, new


def rotation_loss(logits: list[Vector], quarters: list[int]) -> float:
    return sum(cross_entropy(row, quarter) for row, quarter in zip(logits, quarters, strict=True)) / len(logits)
