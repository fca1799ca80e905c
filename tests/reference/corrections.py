"""The formulas of the other corrections with plain loops over Python floats, each written from its own paper."""

import math

from tests.reference.paper import Vector, cross_entropy, softmax


def shares(counts: list[int]) -> Vector:
    return [count / sum(counts) for count in counts]


def aligned(logits: Vector, target: Vector, running: Vector) -> Vector:
    """Berthelot et al.: Normalize(q * p(y) / p-tilde(y))."""
    product = [q * p / r for q, p, r in zip(softmax(logits), target, running, strict=True)]
    return [value / sum(product) for value in product]


def adjusted_loss(logits: Vector, label: int, counts: list[int], tau: float) -> float:
    """Menon et al., logit adjusted softmax cross-entropy: log(1 + sum over y' of (pi_y' / pi_y)^tau e^(f_y' - f_y))."""
    pi, total = shares(counts), 1.0
    for other, value in enumerate(logits):
        if other != label:
            total += (pi[other] / pi[label]) ** tau * math.exp(value - logits[label])
    return math.log(total)


def adjusted_decision(logits: Vector, counts: list[int], tau: float) -> int:
    """Menon et al., post hoc: the largest exp(f_y) / pi_y^tau."""
    scores = [math.exp(value) / share**tau for value, share in zip(logits, shares(counts), strict=True)]
    return scores.index(max(scores))


def ldam_margins(counts: list[int], largest: float) -> Vector:
    """Cao et al.: Delta_j = C / n_j^(1/4), with the C that makes the largest one what is asked for."""
    constant = largest * min(counts) ** 0.25
    return [constant / count**0.25 for count in counts]


def ldam_loss(logits: Vector, label: int, counts: list[int], largest: float, scale: float) -> float:
    """Cao et al.: the margin is taken from the label's own logit."""
    lowered = list(logits)
    lowered[label] -= ldam_margins(counts, largest)[label]
    return cross_entropy([scale * value for value in lowered], label)


def effective_weights(counts: list[int], beta: float) -> Vector:
    """Cui et al., as LDAM-DRW uses them: (1 - beta) / (1 - beta^n); the mean over all labels is 1."""
    raw = [(1 - beta) / (1 - beta**count) for count in counts]
    mean = sum(weight * count for weight, count in zip(raw, counts, strict=True)) / sum(counts)
    return [weight / mean for weight in raw]


def dot(first: Vector, second: Vector) -> float:
    return sum(a * b for a, b in zip(first, second, strict=True))


def length(vector: Vector) -> float:
    return math.sqrt(dot(vector, vector))


def tau_normalised(weight: Vector, tau: float) -> Vector:
    """Kang et al.: w / |w|^tau."""
    return [value / length(weight) ** tau for value in weight]


def chosen_tau(weights: list[Vector], images: list[Vector], labels: list[int]) -> float:
    """Kang et al., selected on a validation set: of 0, 0.1, ..., 1 the first with the best mean recall."""
    best, chosen = -1.0, 0.0
    for number in range(11):
        tau, recalls = number / 10, []
        rows = [tau_normalised(weight, tau) for weight in weights]
        for label in sorted(set(labels)):
            own = [image for image, true in zip(images, labels, strict=True) if true == label]
            scores = [[dot(row, image) for row in rows] for image in own]
            recalls.append(sum(row.index(max(row)) == label for row in scores) / len(own))
        if sum(recalls) / len(recalls) > best + 1e-9:
            best, chosen = sum(recalls) / len(recalls), tau
    return chosen


def total_direct_effect(weight: Vector, features: Vector, mean: Vector, alpha: float) -> float:
    """Tang et al., one head, its temperature 1 and its gamma 0:
    w x / (|w| |x|) - alpha cos(x, d) w d / |w|, where d = mean / |mean|."""
    direction = [value / length(mean) for value in mean]
    cosine = dot(features, direction) / length(features)
    effect = dot(weight, features) / (length(weight) * length(features))
    return effect - alpha * cosine * dot(weight, direction) / length(weight)


def cut(vector: Vector, parts: int) -> list[Vector]:
    size = len(vector) // parts
    return [vector[start : start + size] for start in range(0, len(vector), size)]


def multi_head(
    weight: Vector, features: Vector, mean: Vector, heads: int, scale: float, slack: float, alpha: float
) -> float:
    """Tang et al.: scale / K * sum over heads of (w x - alpha |x| cos(x, d) w d) / ((|w| + slack) |x|)."""
    total = 0.0
    for w, x, m in zip(cut(weight, heads), cut(features, heads), cut(mean, heads), strict=True):
        direction = [value / length(m) for value in m]
        effect = dot(w, x) / length(x) - alpha * dot(x, direction) / length(x) * dot(w, direction)
        total += effect / (length(w) + slack)
    return scale / heads * total
