"""Which images are labeled: the protocols of the literature, with the same indices on every machine.

All draws use NumPy's legacy ``RandomState``, whose streams never change: ``default_rng`` and torch may change theirs
between versions, and with them every fold of every table.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, from_numpy

from debiaspl.debias.correction import within

Indices = NDArray[np.int64]


class Split(NamedTuple):
    """Positions of the labeled and of the unlabeled images, ascending."""

    labeled: Tensor
    unlabeled: Tensor


class Splitter(Protocol):
    """Decides which images of a labeled set keep their label, and which images are unlabeled ones."""

    def split(self, labels: Tensor, seed: int) -> Split: ...


@dataclass(frozen=True)
class FewLabels:
    """The same number of labels for every class; all other images are unlabeled. By default, as for FixMatch and its
    successors, labeled images are also unlabeled ones."""

    per_class: int = 4
    """Labels per class."""
    labeled_also_unlabeled: bool = True
    """Whether labeled images are also used as unlabeled ones."""

    def split(self, labels: Tensor, seed: int) -> Split:
        classes = _positions(labels)
        for number, positions in enumerate(classes):
            if not 1 <= self.per_class <= len(positions):
                found = f"per_class is {self.per_class}, but class {number} has {len(positions)} images"
                raise ValueError(f"{found}; expected 1 to {min(map(len, classes))}.")
        return _split(_drawn(classes, [self.per_class] * len(classes), seed), classes, self.labeled_also_unlabeled)


@dataclass(frozen=True)
class LabelShare:
    """A labeled share of every class; all other images are unlabeled: the rule of the authors' code for ImageNet."""

    share: float = 0.01
    """Labeled share of each class, rounded, but at least one image."""
    labeled_also_unlabeled: bool = False
    """Whether labeled images are also used as unlabeled ones."""

    def split(self, labels: Tensor, seed: int) -> Split:
        classes, share = _positions(labels), within("share", self.share, "(0, 1)")
        numbers = [max(round(share * len(positions)), 1) for positions in classes]
        return _split(_drawn(classes, numbers, seed), classes, self.labeled_also_unlabeled)


@dataclass(frozen=True)
class LongTail:
    """Class sizes that decrease exponentially, and a labeled share of each class.

    Class c keeps ``int(n * gamma ** (-c / (C - 1)))`` images, where n is the size of the smallest class. Of those,
    ``ceil(labeled_fraction * kept)`` are labeled, and the others are unlabeled. In CReST, which introduced this
    protocol, labeled images are also unlabeled ones; in DebiasPL they are not.
    """

    gamma: float = 100.0
    """Size of the largest class over that of the smallest."""
    labeled_fraction: float = 0.1
    """Labeled share of each class."""
    labeled_also_unlabeled: bool = False
    """Whether labeled images are also used as unlabeled ones."""

    def split(self, labels: Tensor, seed: int) -> Split:
        labeled, rest = _long_tail_parts(labels, self.gamma, self.labeled_fraction, seed)
        return _split(labeled, labeled + rest, self.labeled_also_unlabeled)


@dataclass(frozen=True)
class Mismatch:
    """Labels from a long tail, and unlabeled images that are balanced (the same number of every class, as many as the
    class with the fewest images left has) or from the same tail."""

    gamma: float = 200.0
    """For the labels: size of the largest class over that of the smallest."""
    labeled_fraction: float = 0.1
    """Labeled share of each class of the tail."""
    unlabeled: str = "balanced"
    """``balanced`` or ``long-tail``."""

    def split(self, labels: Tensor, seed: int) -> Split:
        if self.unlabeled not in ("long-tail", "balanced"):
            raise ValueError(f"unlabeled is {self.unlabeled!r}, expected 'long-tail' or 'balanced'.")
        labeled, rest = _long_tail_parts(labels, self.gamma, self.labeled_fraction, seed)
        if self.unlabeled == "long-tail":
            return _split(labeled, labeled + rest, False)
        left = [np.setdiff1d(positions, known) for positions, known in zip(_positions(labels), labeled, strict=True)]
        return _split(labeled, _drawn(left, [min(map(len, left))] * len(left), seed), True)


@dataclass(frozen=True)
class TwoTails:
    """The N1/M1 protocol: separate long tails for labels and unlabeled images.

    Class c has ``int(N1 * gamma ** (-c / (C - 1)))`` labels. Of the M1 unlabeled images, it has as many by the same
    rule (``consistent``), all M1 (``uniform``), or those of the opposite class (``reversed``). M1 does not include
    labeled images: DASO, ABC and SimPro leave them out; ACR, CCL, CDMAD, CoSSL and DARP's FixMatch add them.
    """

    labeled_max: int = 500
    """Number of labels of the largest class (N1)."""
    unlabeled_max: int = 4000
    """Number of unlabeled images of the largest class (M1)."""
    gamma: float = 100.0
    """Size of the largest class over that of the smallest."""
    unlabeled: str = "consistent"
    """``consistent``, ``uniform`` or ``reversed``."""
    labeled_also_unlabeled: bool = False
    """Whether labeled images are also used as unlabeled ones, in addition to the M1."""
    unlabeled_gamma: float = 0.0
    """For unlabeled images: size of the largest class over that of the smallest; 0: gamma."""

    def split(self, labels: Tensor, seed: int) -> Split:
        classes = _positions(labels)
        labeled_sizes = _tail(self.labeled_max, self.gamma, len(classes))
        unlabeled_sizes = _tail(self.unlabeled_max, self.unlabeled_gamma or self.gamma, len(classes))
        if self.unlabeled == "uniform":
            unlabeled_sizes = [self.unlabeled_max] * len(classes)
        elif self.unlabeled == "reversed":
            unlabeled_sizes = unlabeled_sizes[::-1]
        elif self.unlabeled != "consistent":
            raise ValueError(f"unlabeled is {self.unlabeled!r}, expected 'consistent', 'uniform' or 'reversed'.")
        sizes = [first + second for first, second in zip(labeled_sizes, unlabeled_sizes, strict=True)]
        for number, positions in enumerate(classes):
            if sizes[number] > len(positions):
                needed = f"{labeled_sizes[number]} labeled and {unlabeled_sizes[number]} unlabeled ones are needed"
                found = f"class {number} has {len(positions)} images, but {needed}"
                raise ValueError(f"{found}. Lower labeled_max or unlabeled_max.")
        kept = _drawn(classes, sizes, seed)
        labeled = [each[:number] for each, number in zip(kept, labeled_sizes, strict=True)]
        return _split(labeled, kept, self.labeled_also_unlabeled)


def hold_out_labels(labels: Tensor, split: Split, fraction: float, seed: int) -> tuple[Split, Tensor]:
    """The split with fewer labels, and the positions of those held out for validation: this share of each class,
    rounded, but never the last label. Their place among the unlabeled images does not change."""
    within("fraction", fraction, "(0, 1)")
    known, positions = labels.cpu().numpy(), split.labeled.cpu().numpy()
    classes = [positions[known[positions] == number] for number in np.unique(known[positions])]
    numbers = [min(round(fraction * len(each)), len(each) - 1) for each in classes]
    validation = np.sort(np.concatenate(_drawn(classes, numbers, seed)))
    if len(validation) == 0:
        found = f"{len(positions)} labels leave none for validation at a fraction of {fraction}"
        raise ValueError(f"{found}: every class needs two. Label more images, or use no validation set.")
    return Split(from_numpy(np.setdiff1d(positions, validation)), split.unlabeled), from_numpy(validation)


def _long_tail_parts(
    labels: Tensor, gamma: float, labeled_fraction: float, seed: int
) -> tuple[list[Indices], list[Indices]]:
    """For each class, the labeled images and the others that it keeps."""
    within("labeled_fraction", labeled_fraction, "(0, 1]")
    classes = _positions(labels)
    sizes = _tail(min(map(len, classes)), gamma, len(classes))
    kept = _drawn(classes, sizes, seed)
    # Rounded first, because 0.1 * 30 is 3.0000000000000004, whose ceiling is 4.
    numbers = [math.ceil(round(labeled_fraction * size, 9)) for size in sizes]
    parts = list(zip(kept, numbers, strict=True))
    return [each[:number] for each, number in parts], [each[number:] for each, number in parts]


def _tail(largest: int, gamma: float, classes: int) -> list[int]:
    """Class sizes that decrease from ``largest`` to ``largest / gamma``."""
    within("gamma", gamma, "[1, inf)")
    sizes = [int(largest * gamma ** (-number / (classes - 1))) for number in range(classes)]
    if 0 in sizes:
        found = f"gamma is {gamma}, which leaves class {sizes.index(0)} without an image"
        raise ValueError(f"{found}: the largest has {largest}. Expected a gamma of at most {largest}.")
    return sizes


def _drawn(classes: list[Indices], numbers: list[int], seed: int) -> list[Indices]:
    """So many images of each class, in random order."""
    random = np.random.RandomState(seed)
    return [random.permutation(positions)[:number] for positions, number in zip(classes, numbers, strict=True)]


def _positions(labels: Tensor) -> list[Indices]:
    """Positions of the images of each class."""
    known = labels.cpu().numpy()
    if known.min() < 0:
        raise ValueError(f"{(known < 0).sum()} images have no label, but a protocol that hides labels needs them all.")
    return [np.flatnonzero(known == number) for number in range(known.max() + 1)]


def _split(labeled: list[Indices], kept: list[Indices], labeled_also_unlabeled: bool) -> Split:
    known, unlabeled = np.concatenate(labeled), np.concatenate(kept)
    if not labeled_also_unlabeled:
        unlabeled = np.setdiff1d(unlabeled, known)
    if len(unlabeled) == 0:
        raise ValueError("every image is labeled, so there are no unlabeled images to learn from. Label fewer of them.")
    return Split(from_numpy(np.sort(known)), from_numpy(np.sort(unlabeled)))
