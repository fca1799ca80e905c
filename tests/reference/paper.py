"""The paper's formulas with plain loops over Python floats, written from its text alone. Slow, and meant to be."""

import math

Vector = list[float]
Views = list[Vector]


def softmax(logits: Vector) -> Vector:
    largest = max(logits)
    powers = [math.exp(value - largest) for value in logits]
    return [power / sum(powers) for power in powers]


def cross_entropy(logits: Vector, label: int) -> float:
    return -math.log(softmax(logits)[label])


def debiased(logits: Vector, prior: Vector, strength: float) -> Vector:
    """Eq. 3: f - lambda log p-hat, then softmax."""
    return softmax([value - strength * math.log(share) for value, share in zip(logits, prior, strict=True)])


def moved_prior(prior: Vector, batch: list[Vector], momentum: float) -> Vector:
    """Eq. 4: the mean over the batch of the raw probabilities, class by class."""
    raw = [softmax(logits) for logits in batch]
    new = []
    for number, old in enumerate(prior):
        mean = sum(probabilities[number] for probabilities in raw) / len(raw)
        new.append(momentum * old + (1 - momentum) * mean)
    return new


def marginal_loss(logits: Vector, label: int, prior: Vector, strength: float) -> float:
    """Eq. 5: with margins Delta_j = lambda log(1 / p-hat_j)."""
    shifted = [value - strength * math.log(1 / share) for value, share in zip(logits, prior, strict=True)]
    numerator = math.exp(shifted[label])
    rest = sum(math.exp(value) for number, value in enumerate(shifted) if number != label)
    return -math.log(numerator / (numerator + rest))


def unlabeled_loss(
    weak: list[Vector], strong: list[Vector], old: Vector, new: Vector, strength: float, threshold: float
) -> float:
    """Eq. 1 with Eq. 3 and Eq. 5: labels from the old prior, margins from the new, the mean over the whole batch."""
    total = 0.0
    for logits_weak, logits_strong in zip(weak, strong, strict=True):
        probabilities = debiased(logits_weak, old, strength)
        if max(probabilities) >= threshold:
            total += marginal_loss(logits_strong, probabilities.index(max(probabilities)), new, strength)
    return total / len(weak)


def multi_view_loss(
    weak: list[Views], strong: list[Views], old: Vector, momentum: float, strength: float, threshold: float
) -> tuple[float, Vector]:
    """Three label sets (the mean of the logits, each weak view) x two strong views; and the prior after the batch."""
    mean = [[sum(pair) / 2 for pair in zip(first, second, strict=True)] for first, second in zip(*weak, strict=True)]
    new = moved_prior(old, mean, momentum)
    terms = [unlabeled_loss(labels, view, old, new, strength, threshold) for labels in (mean, *weak) for view in strong]
    return sum(terms) / 6, new


def paired_views_loss(
    weak: list[Views], strong: list[Views], old: Vector, momentum: float, strength: float, threshold: float
) -> tuple[float, Vector]:
    """Each strong view with the labels of one weak view; and the prior after the batch, from all weak views."""
    new = moved_prior(old, [logits for view in weak for logits in view], momentum)
    terms = [
        unlabeled_loss(labels, view, old, new, strength, threshold) for labels, view in zip(weak, strong, strict=True)
    ]
    return sum(terms) / len(terms), new


def cld_loss(weak: list[Vector], strong: list[Vector], temperature: float) -> float:
    """Groups by the most likely class; centroids; each strong view is classified against them."""
    groups: dict[int, list[Vector]] = {}
    for probabilities in weak:
        groups.setdefault(probabilities.index(max(probabilities)), []).append(probabilities)
    centroids = {
        group: [sum(column) / len(members) for column in zip(*members, strict=True)]
        for group, members in groups.items()
    }
    names = sorted(centroids)
    total = 0.0
    for probabilities, view in zip(weak, strong, strict=True):
        similarity = [sum(a * b for a, b in zip(view, centroids[name], strict=True)) / temperature for name in names]
        total += cross_entropy(similarity, names.index(probabilities.index(max(probabilities))))
    return total / len(weak)


def averaged(values: Vector, decay: float) -> float:
    """A moving average that starts at the first value and takes in the others one by one."""
    average = values[0]
    for value in values[1:]:
        average = decay * average + (1 - decay) * value
    return average
