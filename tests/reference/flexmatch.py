"""FlexMatch (Zhang et al., 2021) with plain loops, written from the paper's formulas."""

from tests.reference.paper import Vector


def thresholds(latest: list[int], classes: int, threshold: float, warm_up: bool) -> Vector:
    """T(c) = M(beta(c)) tau, from the latest confident label of every unlabeled image (-1: none yet)."""
    learned = [sum(label == number for label in latest) for number in range(classes)]  # sigma
    most = max(learned)
    if warm_up:
        most = max(most, len(latest) - sum(learned))
    beta = [count / most if most else 0.0 for count in learned]
    return [threshold * value / (2 - value) for value in beta]


def remembered(latest: list[int], positions: list[int], labeling: list[Vector], threshold: float) -> list[int]:
    """The latest labels after a batch: one image after another, those at or above tau replace what was."""
    latest = list(latest)
    for position, probabilities in zip(positions, labeling, strict=True):
        if max(probabilities) >= threshold:
            latest[position] = probabilities.index(max(probabilities))
    return latest


def unlabeled_loss(labeling: list[Vector], losses: list[Vector], of_class: Vector) -> float:
    """``losses[b][c]``: what image b would cost with label c. The mean over the whole batch."""
    total = 0.0
    for probabilities, costs in zip(labeling, losses, strict=True):
        label = probabilities.index(max(probabilities))
        if probabilities[label] >= of_class[label]:
            total += costs[label]
    return total / len(labeling)
