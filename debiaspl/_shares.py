"""How far the classes of labels are from the shares they should have. A ratio of the largest class to the smallest is
told only where both are counted well: with a class that has none it would be the size of the largest alone."""

from collections.abc import Mapping, Sequence
from typing import Any

ALMOST_NONE = 0.1
"""Of the labels that a class should have: with less it is said to have almost none."""
LEAST_COUNT = 10
"""Labels of the smallest class from which on a ratio is told."""
TRUE, EVEN = "true shares", "even shares"


def distance(shares: Sequence[float], reference: Sequence[float] | None = None) -> float:
    """Total variation distance, 0 to 1: the part of the labels that would need another class.

    Args:
        shares: counts or shares of the classes; not all 0.
        reference: the true counts or shares; even ones unless given.
    """
    expected = [1.0] * len(shares) if reference is None else reference
    total, whole = sum(shares), sum(expected)
    return sum(abs(one / total - other / whole) for one, other in zip(shares, expected, strict=True)) / 2


def almost_none(counts: Sequence[float], reference: Sequence[float] | None = None) -> int:
    """Classes with less than a tenth of the labels that they would have by the reference."""
    expected = [1.0] * len(counts) if reference is None else reference
    total, whole = sum(counts), sum(expected)
    pairs = zip(counts, expected, strict=True)
    return sum(share > 0 and count * whole < ALMOST_NONE * share * total for count, share in pairs)


def ratio(counts: Sequence[float]) -> float | None:
    """The largest count over the smallest; None where the smallest is below 10."""
    least = min(counts)
    return max(counts) / least if least >= LEAST_COUNT else None


def reference_name(reference: object) -> str:
    return EVEN if reference is None else TRUE


def pseudo_measures(results: Mapping[str, Any]) -> dict[str, Any]:
    """``distance``, ``almost_none`` and ``reference`` of a run's pseudo-labels, from their counts; nothing where there
    were none. Results of earlier versions do not contain the true classes: theirs are compared with even shares."""
    counts, true = results.get("pseudo_labels"), results.get("true_counts")
    if not counts or not any(counts):
        return {}
    return {
        "distance": distance(counts, true),
        "almost_none": almost_none(counts, true),
        "reference": reference_name(true),
    }
