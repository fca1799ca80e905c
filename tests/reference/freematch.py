"""FreeMatch (Wang et al., 2023) with plain loops, written from the paper's formulas."""

import math
from typing import NamedTuple

from tests.reference.paper import Vector, softmax


class Averages(NamedTuple):
    """What is followed from step to step: tau, p-tilde and h-tilde."""

    threshold: float
    marginal: Vector
    histogram: Vector


def first(classes: int) -> Averages:
    return Averages(1 / classes, [1 / classes] * classes, [1 / classes] * classes)


def moved(old: Averages, labeling: list[Vector], decay: float) -> Averages:
    """lambda times what was, and 1 - lambda times the mean over the batch."""
    size, classes = len(labeling), range(len(old.marginal))
    labels = [probabilities.index(max(probabilities)) for probabilities in labeling]

    def follow(before: float, now: float) -> float:
        return decay * before + (1 - decay) * now

    return Averages(
        follow(old.threshold, sum(max(probabilities) for probabilities in labeling) / size),
        [follow(old.marginal[c], sum(probabilities[c] for probabilities in labeling) / size) for c in classes],
        [follow(old.histogram[c], labels.count(c) / size) for c in classes],
    )


def thresholds(averages: Averages) -> Vector:
    """tau(c) = p-tilde(c) / max p-tilde * tau."""
    return [averages.threshold * share / max(averages.marginal) for share in averages.marginal]


def fairness(averages: Averages, strong: list[Vector], kept: list[bool]) -> float:
    """Eq. 11 over the kept strong views, as logits; classes that none of them is given to are left out."""
    views = [softmax(logits) for logits, keep in zip(strong, kept, strict=True) if keep]
    if not views:
        return 0.0
    labels = [view.index(max(view)) for view in views]
    ratios = [share / count for share, count in zip(averages.marginal, averages.histogram, strict=True)]
    wanted = [ratio / sum(ratios) for ratio in ratios]
    found = {}
    for number in sorted(set(labels)):
        p_bar = sum(view[number] for view in views) / len(views)
        h_bar = labels.count(number) / len(views)
        found[number] = p_bar / h_bar
    cross_entropy = 0.0
    for number, ratio in found.items():
        cross_entropy -= wanted[number] * math.log(ratio / sum(found.values()))
    return -cross_entropy
