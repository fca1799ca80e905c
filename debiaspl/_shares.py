"""How far class counts are from the shares they should have. The ratio of the largest to the smallest class is reported
only if both are large enough: if a class has no label, the ratio would only repeat the size of the largest."""

from collections.abc import Mapping, Sequence
from typing import Any

ALMOST_NONE = 0.1
"""Share of the expected labels below which a class is reported to have almost none."""
LEAST_COUNT = 10
"""Smallest count for which a ratio is reported."""
UNLIKE = 3
TRUE, EVEN = "true shares", "even shares"


def distance(shares: Sequence[float], reference: Sequence[float] | None = None) -> float:
    """Total variation distance, 0 to 1: the share of labels that would have to change class.

    Args:
        shares: counts or shares of the classes; not all 0.
        reference: the true counts or shares; uniform by default.
    """
    expected = [1.0] * len(shares) if reference is None else reference
    total, whole = sum(shares), sum(expected)
    return sum(abs(one / total - other / whole) for one, other in zip(shares, expected, strict=True)) / 2


def unlike(labels: Sequence[float], predicted: Sequence[float]) -> bool:
    """Whether labels are spread over the classes so unlike the predictions that they do not measure the accuracy on all
    images: of one class they hold ``UNLIKE`` times as much as of another."""
    if not labels or not all(labels) or not sum(predicted):
        return False
    shares = [max(said, 1) / given for given, said in zip(labels, predicted, strict=True)]
    return max(shares) >= UNLIKE * min(shares)


def almost_none(counts: Sequence[float], reference: Sequence[float] | None = None) -> int:
    """Number of classes with less than a tenth of the labels expected from the reference."""
    expected = [1.0] * len(counts) if reference is None else reference
    total, whole = sum(counts), sum(expected)
    pairs = zip(counts, expected, strict=True)
    return sum(share > 0 and count * whole < ALMOST_NONE * share * total for count, share in pairs)


def ratio(counts: Sequence[float]) -> float | None:
    """Largest count divided by the smallest; None if the smallest is below 10."""
    least = min(counts)
    return max(counts) / least if least >= LEAST_COUNT else None


def reference_name(reference: object) -> str:
    return EVEN if reference is None else TRUE


def pseudo_measures(results: Mapping[str, Any]) -> dict[str, Any]:
    """``distance``, ``almost_none`` and ``reference`` of a run's pseudo-labels, from their counts; empty if there are
    none. Results of earlier versions do not contain the true classes, so they are compared with uniform shares."""
    counts, true = results.get("pseudo_labels"), results.get("true_counts")
    if not counts or not any(counts):
        return {}
    return {
        "distance": distance(counts, true),
        "almost_none": almost_none(counts, true),
        "reference": reference_name(true),
    }
