"""Self-supervised losses with plain loops over Python floats, from the papers."""

import math

from tests.reference.comatch import dot
from tests.reference.paper import Vector, softmax


def find(query: Vector, keys: list[Vector], right: int, temperature: float) -> float:
    """InfoNCE of one query: minus the log of the share that the right one of the keys has."""
    return -math.log(softmax([dot(query, key) / temperature for key in keys])[right])


def moco(
    queries: tuple[list[Vector], list[Vector]],
    keys: tuple[list[Vector], list[Vector]],
    memory: list[Vector],
    temperature: float,
) -> float:
    """Symmetric: query i of either view looks for key i of the other, among that view's keys and the memory."""
    total, count = 0.0, 0
    for own, other in ((0, 1), (1, 0)):
        for place, query in enumerate(queries[own]):
            total += find(query, keys[other] + memory, place, temperature)
            count += 1
    return total / count


def simclr(first: list[Vector], second: list[Vector], temperature: float) -> float:
    """NT-Xent: of the 2 N - 1 other views, view i's positive is the other view of its image."""
    views, total = first + second, 0.0
    for place, view in enumerate(views):
        others = [other for number, other in enumerate(views) if number != place]
        partner = (place + len(first)) % len(views)
        total += find(view, others, partner - (partner > place), temperature)
    return total / len(views)


def sinkhorn(similarity: list[Vector], temperature: float, rounds: int) -> list[Vector]:
    """Algorithm 1 of SwAV: Q = exp(scores / epsilon), columns and rows scaled in turn; rows that sum to 1."""
    code = [[math.exp(value / temperature) for value in row] for row in similarity]
    images, prototypes = len(code), len(code[0])
    for _ in range(rounds):
        for column in range(prototypes):
            mass = sum(row[column] for row in code)
            for row in code:
                row[column] /= mass * prototypes
        for number, row in enumerate(code):
            code[number] = [value / sum(row) / images for value in row]
    return [[value * images for value in row] for row in code]


def swav(
    views: list[list[Vector]],
    temperature: float,
    code_temperature: float,
    rounds: int,
    queues: tuple[list[Vector], list[Vector]] = ([], []),
) -> float:
    """Similarities of views to prototypes; the first two views have codes, which every other view predicts.
    Similarities of earlier views, in the queue, are balanced with them."""
    terms = []
    for number in (0, 1):
        codes = sinkhorn(views[number] + queues[number], code_temperature, rounds)[: len(views[number])]
        for other, view in enumerate(views):
            if other != number:
                for code, row in zip(codes, view, strict=True):
                    shares = softmax([value / temperature for value in row])
                    terms.append(-sum(part * math.log(share) for part, share in zip(code, shares, strict=True)))
    return sum(terms) / len(terms)
