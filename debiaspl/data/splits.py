"""Which images are labeled: the protocols of the literature, the same indices on every machine.

All draws come from NumPy's legacy ``RandomState``, whose streams are frozen for good: ``default_rng`` and torch may
change theirs between versions, and with them every fold of every table.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, from_numpy

Indices = NDArray[np.int64]


class Split(NamedTuple):
    """Positions of the labeled and of the unlabeled images, ascending."""

    labeled: Tensor
    unlabeled: Tensor


def few_labels(labels: Tensor, per_class: int, seed: int, labeled_also_unlabeled: bool = True) -> Split:
    """``per_class`` labels of every class; every other image is unlabeled.

    The literature's default is that labeled images also serve as unlabeled ones (FixMatch and its successors).
    """
    classes = _positions(labels)
    for number, positions in enumerate(classes):
        if not 1 <= per_class <= len(positions):
            raise ValueError(
                f"per_class is {per_class}, but class {number} has {len(positions)} images; "
                f"expected 1 to {min(map(len, classes))}."
            )
    random = np.random.RandomState(seed)
    labeled = [random.permutation(positions)[:per_class] for positions in classes]
    everything = np.arange(len(labels), dtype=np.int64)
    return _split(np.concatenate(labeled), everything, labeled_also_unlabeled)


def long_tail(
    labels: Tensor, gamma: float, labeled_fraction: float, seed: int, labeled_also_unlabeled: bool = False
) -> Split:
    """Class c keeps ``int(n * gamma ** (-c / (C - 1)))`` images, n the size of the smallest class; of those,
    ``ceil(labeled_fraction * kept)`` are labeled. The others are unlabeled: here the literature's default (CReST,
    DebiasPL) is that labeled images do not serve as unlabeled ones.
    """
    if not gamma >= 1:
        raise ValueError(f"gamma is {gamma}, expected at least 1: the largest class over the smallest.")
    if not 0 < labeled_fraction <= 1:
        raise ValueError(f"labeled_fraction is {labeled_fraction}, expected a share in (0, 1].")
    classes = _positions(labels)
    largest = min(map(len, classes))
    random = np.random.RandomState(seed)
    labeled, kept = [], []
    for number, positions in enumerate(classes):
        size = int(largest * gamma ** (-number / (len(classes) - 1)))
        if size < 1:
            raise ValueError(
                f"gamma is {gamma}, which leaves class {number} without an image: the smallest class of the full set "
                f"has {largest}. Expected a gamma of at most {largest}."
            )
        chosen = random.permutation(positions)[:size]
        kept.append(chosen)
        # Rounded first: 0.1 * 30 is 3.0000000000000004, whose ceiling would be 4.
        labeled.append(chosen[: math.ceil(round(labeled_fraction * size, 9))])
    return _split(np.concatenate(labeled), np.concatenate(kept), labeled_also_unlabeled)


def held_out(labels: Tensor, per_class: int, seed: int) -> tuple[Tensor, Tensor]:
    """The others, and ``per_class`` images of every class that are held out as a balanced test set."""
    classes = _positions(labels)
    if per_class >= min(map(len, classes)):
        raise ValueError(
            f"per_class is {per_class}, but the smallest class has {min(map(len, classes))} images, "
            "and at least one of each class must stay for training."
        )
    random = np.random.RandomState(seed)
    test = np.sort(np.concatenate([random.permutation(positions)[:per_class] for positions in classes]))
    return from_numpy(np.setdiff1d(np.arange(len(labels), dtype=np.int64), test)), from_numpy(test)


def _positions(labels: Tensor) -> list[Indices]:
    """Positions of the images of each class."""
    known = labels.cpu().numpy()
    if known.min() < 0:
        raise ValueError(f"{(known < 0).sum()} images have no label; a protocol that hides labels needs all of them.")
    return [np.flatnonzero(known == number).astype(np.int64) for number in range(known.max() + 1)]


def _split(labeled: Indices, kept: Indices, labeled_also_unlabeled: bool) -> Split:
    unlabeled = kept if labeled_also_unlabeled else np.setdiff1d(kept, labeled)
    if len(unlabeled) == 0:
        raise ValueError("every image is labeled: nothing is left to learn from without labels. Label fewer of them.")
    return Split(from_numpy(np.sort(labeled)), from_numpy(np.sort(unlabeled)))
