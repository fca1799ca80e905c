"""Labels spread over a graph, with plain loops and a dense matrix."""

import math

Rows = list[list[float]]


def units(vectors: Rows) -> Rows:
    """Seen from their mean, of length 1."""
    mean = [sum(column) / len(vectors) for column in zip(*vectors, strict=True)]
    centred = [[value - own for value, own in zip(row, mean, strict=True)] for row in vectors]
    return [[value / math.sqrt(sum(other**2 for other in row)) for value in row] for row in centred]


def neighbours(vectors: Rows, count: int) -> list[list[tuple[int, float]]]:
    """The nearest others of each, with their cosine, the nearest first."""
    own = units(vectors)
    found = []
    for place, row in enumerate(own):
        cosines = [
            (other, sum(a * b for a, b in zip(row, own[other], strict=True)))
            for other in range(len(own))
            if other != place
        ]
        found.append(sorted(cosines, key=lambda pair: -pair[1])[:count])
    return found


def spread(vectors: Rows, labels: list[int], classes: int, count: int, power: float, alpha: float) -> Rows:
    """F = Y + alpha S F, repeated until nothing changes; the labels of each class in Y sum to one."""
    size = len(vectors)
    weight = [[0.0] * size for _ in range(size)]
    for place, near in enumerate(neighbours(vectors, count)):
        for other, cosine in near:
            weight[place][other] += max(cosine, 0.0) ** power
            weight[other][place] += max(cosine, 0.0) ** power
    degree = [sum(row) for row in weight]
    given = [[(label == number) / max(labels.count(number), 1) for number in range(classes)] for label in labels]
    found = given
    for _ in range(400):
        found = [
            [
                given[place][number]
                + alpha
                * sum(
                    weight[place][other] / math.sqrt(degree[place] * degree[other]) * found[other][number]
                    for other in range(size)
                    if weight[place][other]
                )
                for number in range(classes)
            ]
            for place in range(size)
        ]
    return [[value / sum(row) for value in row] if sum(row) > 0 else [1 / classes] * classes for row in found]


def ridge(rows: Rows, labels: list[int], classes: int, decay: float) -> Rows:
    """Gradient descent on the weighted squared error: (classes, width)."""
    used = [place for place, label in enumerate(labels) if label >= 0]
    present = len({labels[place] for place in used})
    weights = [[0.0] * len(rows[0]) for _ in range(classes)]
    for _ in range(4000):
        slope = [[decay * len(used) * value for value in row] for row in weights]
        for place in used:
            share = len(used) / (present * labels.count(labels[place]))
            for number in range(classes):
                made = sum(a * b for a, b in zip(weights[number], rows[place], strict=True))
                error = made - ((labels[place] == number) - 1 / classes)
                for column, value in enumerate(rows[place]):
                    slope[number][column] += share * error * value
        weights = [
            [value - 0.05 * own for value, own in zip(row, down, strict=True)]
            for row, down in zip(weights, slope, strict=True)
        ]
    return weights
