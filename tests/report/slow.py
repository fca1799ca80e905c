"""The audit's numbers once more, with plain loops and from their definitions."""

import math
from collections import Counter
from collections.abc import Sequence


def counts(labels: Sequence[int], classes: int) -> list[int]:
    found = Counter(labels)
    return [found[number] for number in range(classes)]


def imbalance_ratio(numbers: Sequence[int]) -> float | None:
    return max(numbers) / min(numbers) if min(numbers) >= 10 else None


def effective_classes(numbers: Sequence[int]) -> float:
    total = sum(numbers)
    return math.exp(-sum(n / total * math.log(n / total) for n in numbers if n))


def precision(truth: Sequence[int], labels: Sequence[int], number: int) -> float | None:
    called = [t for t, label in zip(truth, labels, strict=True) if label == number and t >= 0]
    return sum(t == number for t in called) / len(called) if called else None


def recall(truth: Sequence[int], labels: Sequence[int], number: int) -> float | None:
    own = [label for t, label in zip(truth, labels, strict=True) if t == number]
    return sum(label == number for label in own) / len(own) if own else None


def confusion(truth: Sequence[int], labels: Sequence[int], classes: int) -> list[list[int]]:
    matrix = [[0] * classes for _ in range(classes)]
    for t, label in zip(truth, labels, strict=True):
        if t >= 0:
            matrix[t][label] += 1
    return matrix


def softmax(logits: Sequence[float]) -> list[float]:
    high = max(logits)
    powers = [math.exp(value - high) for value in logits]
    total = sum(powers)
    return [power / total for power in powers]


def debiased_labels(logits: Sequence[Sequence[float]], strength: float) -> list[int]:
    """Eq. 3 of the paper, with the mean of the raw probabilities as the prior."""
    probabilities = [softmax(row) for row in logits]
    prior = [sum(column) / len(column) for column in zip(*probabilities, strict=True)]
    labels = []
    for row in logits:
        corrected = [value - strength * math.log(p) for value, p in zip(row, prior, strict=True)]
        labels.append(corrected.index(max(corrected)))
    return labels


def calibration_error(confidence: Sequence[float], right: Sequence[bool], bins: int = 10) -> float:
    error = 0.0
    for number in range(bins):
        low, high = number / bins, (number + 1) / bins
        own = [place for place, c in enumerate(confidence) if low <= c < high or (c == 1 and number == bins - 1)]
        if own:
            gap = sum(right[place] for place in own) - sum(confidence[place] for place in own)
            error += abs(gap) / len(confidence)
    return error
