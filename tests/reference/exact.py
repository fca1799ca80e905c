"""The exact interval of a share by bisection of sums."""

import math


def at_least(right: int, total: int, share: float) -> float:
    return sum(math.comb(total, one) * share**one * (1 - share) ** (total - one) for one in range(right, total + 1))


def exact_interval(right: int, total: int, level: float) -> tuple[float, float]:
    """The shares at which so many or more, and so many or fewer, have the probability of a tail."""
    tail = (1 - level) / 2
    low = bisected(lambda share: at_least(right, total, share) < tail) if right else 0.0
    high = bisected(lambda share: 1 - at_least(right + 1, total, share) > tail) if right < total else 1.0
    return low, high


def bisected(below) -> float:
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return low
