"""How many labels each class has, as the corrections that must be told take it."""

from collections.abc import Sequence

import torch
from torch import Tensor


def checked_counts(class_counts: Sequence[int]) -> Tensor:
    """The counts, (C,), in float32. A class without a label has no logarithm and no margin."""
    counts = torch.tensor([float(count) for count in class_counts], dtype=torch.float64)
    if len(counts) < 2:
        raise ValueError(f"class_counts is {tuple(class_counts)}, expected the number of labels of at least 2 classes.")
    empty = [number for number, count in enumerate(counts.tolist()) if not 1 <= count < float("inf")]
    if empty:
        raise ValueError(
            f"class_counts is {tuple(class_counts)}, expected at least 1 label of every class; see "
            f"{'classes' if len(empty) > 1 else 'class'} {', '.join(map(str, empty))}. Label an image of each, or use "
            "a correction that asks for no counts, such as debiaser."
        )
    return counts.float()
