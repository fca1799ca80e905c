"""CoMatch (Li, Xiong and Hoi, 2021) with plain loops over Python floats."""

import math

from tests.reference.paper import Vector, softmax


def normalised(vector: Vector) -> Vector:
    length = math.sqrt(sum(value**2 for value in vector))
    return [value / length for value in vector]


def dot(one: Vector, other: Vector) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def smoothed(
    own: Vector, embedding: Vector, memory: list[tuple[Vector, Vector]], alpha: float, temperature: float
) -> Vector:
    """q = alpha p + (1 - alpha) sum_k a_k p_k; the memory holds pairs of embedding and probabilities."""
    affinity = softmax([dot(embedding, other) / temperature for other, _ in memory])
    label = []
    for number, value in enumerate(own):
        recalled = sum(weight * known[number] for weight, (_, known) in zip(affinity, memory, strict=True))
        label.append(alpha * value + (1 - alpha) * recalled)
    return label


def soft_loss(labels: list[Vector], strong: list[Vector], threshold: float) -> float:
    """Cross-entropy with the soft labels that are confident, over the whole batch."""
    total = 0.0
    for label, logits in zip(labels, strong, strict=True):
        if max(label) >= threshold:
            total -= sum(share * math.log(value) for share, value in zip(label, softmax(logits), strict=True))
    return total / len(labels)


def pseudo_label_graph(labels: list[Vector], threshold: float) -> list[Vector]:
    graph = []
    for row, label in enumerate(labels):
        edges = []
        for column, other in enumerate(labels):
            similarity = dot(label, other)
            edges.append(1.0 if row == column else similarity if similarity >= threshold else 0.0)
        graph.append(edges)
    return graph


def contrast(
    first: list[Vector], second: list[Vector], labels: list[Vector], temperature: float, threshold: float
) -> float:
    total = 0.0
    for edges, embedding in zip(pseudo_label_graph(labels, threshold), first, strict=True):
        powers = [math.exp(dot(embedding, other) / temperature) for other in second]
        for edge, power in zip(edges, powers, strict=True):
            total -= edge / sum(edges) * math.log(power / sum(powers))
    return total / len(first)
