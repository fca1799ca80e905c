"""Distances between shares of classes, from their definitions, with plain loops and fractions."""

from collections.abc import Sequence
from fractions import Fraction


def total_variation(counts: Sequence[int], reference: Sequence[int]) -> Fraction:
    """The largest difference of the probability of any set of classes: the sum over classes that have too many."""
    own = [Fraction(count, sum(counts)) for count in counts]
    other = [Fraction(count, sum(reference)) for count in reference]
    return sum((one - two for one, two in zip(own, other, strict=True) if one > two), Fraction(0))


def nearly_empty(counts: Sequence[int], reference: Sequence[int]) -> int:
    found = 0
    for count, expected in zip(counts, reference, strict=True):
        if expected and 10 * count < Fraction(expected, sum(reference)) * sum(counts):
            found += 1
    return found
