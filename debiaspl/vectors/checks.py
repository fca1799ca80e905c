"""What vectors and labels must be, in words for who has others."""

import torch
from torch import Tensor

from debiaspl.data import UNLABELED
from debiaspl.vectors.scaling import CHUNK


def checked_features(features: Tensor, name: str = "features") -> Tensor:
    """As (V, N, D)."""
    if not isinstance(features, Tensor) or not features.is_floating_point():
        found = f"dtype {features.dtype}" if isinstance(features, Tensor) else type(features).__name__
        raise TypeError(f"{name} have {found}, expected a tensor of floating-point numbers: {name}.float().")
    if features.ndim not in (2, 3) or 0 in features.shape:
        raise ValueError(
            f"{name} have shape {tuple(features.shape)}, expected (N, D), a row per image, or (V, N, D), V views of "
            "each image; at least one of each."
        )
    flat = features.reshape(-1, features.shape[-1])
    bad = 0
    for part in torch.split(flat, CHUNK):
        # A sum is finite unless something in it is not; only then are the rows looked at one by one.
        if not bool(part.sum().isfinite()):
            bad += int((~part.isfinite().all(-1)).sum())
    if bad:
        raise ValueError(
            f"{bad} of {len(flat)} rows of {name} hold NaN or infinite numbers, expected finite ones. Leave these "
            "images out, or see what made them: a file that could not be read, a half-precision overflow."
        )
    return features if features.ndim == 3 else features.unsqueeze(0)


def check_labels(labels: Tensor, rows: int, num_classes: int) -> None:
    if not isinstance(labels, Tensor) or labels.dtype != torch.int64 or labels.shape != (rows,):
        found = f"shape {tuple(labels.shape)} and dtype {labels.dtype}" if isinstance(labels, Tensor) else repr(labels)
        raise ValueError(
            f"labels have {found}, expected int64 ({rows},): one class number per row of features, "
            f"{UNLABELED} for none."
        )
    low, high = int(labels.min()), int(labels.max())
    if low < UNLABELED or high >= num_classes:
        raise ValueError(
            f"labels run from {low} to {high}, expected {UNLABELED} (no label) to {num_classes - 1}: "
            f"there are {num_classes} classes."
        )
    found_classes = torch.bincount(labels[labels >= 0], minlength=num_classes).nonzero().flatten().tolist()
    if len(found_classes) < 2:
        there = f"only one class, {found_classes[0]}, has labels" if found_classes else "no row has a label"
        raise ValueError(f"{there}, expected labels of at least two classes. Label a few images of every class first.")


def check_strong(strong: Tensor, features: Tensor) -> None:
    """Strong views are of the same images, and come from the same encoder."""
    if strong.shape[1:] != features.shape[1:]:
        raise ValueError(
            f"strong views have {strong.shape[1]} rows of width {strong.shape[2]}, features {features.shape[1]} of "
            f"width {features.shape[2]}; expected the same images in the same order, through the same encoder."
        )


def checked_steps(steps: int | None, rows: int) -> int:
    """As asked for or, if nobody asked, enough to see each row a few times, and few enough to take seconds."""
    if steps is None:
        return min(max(rows // 50, 300), 800)
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise ValueError(f"steps is {steps!r}, expected a whole number of at least 1, or None for a fitting one.")
    return steps
