"""Agreement of labels, with plain loops: Cohen (1960), and mutual information (Shannon, 1948)."""

import math


def kappa(one: list[int], other: list[int]) -> float:
    """(observed - expected) / (1 - expected); every pair of images counts for what is expected."""
    observed = sum(a == b for a, b in zip(one, other, strict=True)) / len(one)
    expected = sum(a == b for a in one for b in other) / len(one) ** 2
    return (observed - expected) / (1 - expected)


def mutual_information(one: list[int], other: list[int]) -> float:
    """Sum of p(a, b) log(p(a, b) / p(a) p(b)), in nats."""
    total, found = len(one), 0.0
    for a in set(one):
        for b in set(other):
            both = sum(x == a and y == b for x, y in zip(one, other, strict=True)) / total
            if both:
                found += both * math.log(both / (one.count(a) / total * other.count(b) / total))
    return found


def decidedness(rows: list[list[float]]) -> float:
    """Mean over images of the divergence of a row from the mean row, over log C."""
    count = len(rows[0])
    mean = [sum(row[c] for row in rows) / len(rows) for c in range(count)]
    divergence = [sum(p * math.log(p / m) for p, m in zip(row, mean, strict=True) if p) for row in rows]
    return sum(divergence) / len(rows) / math.log(count)
