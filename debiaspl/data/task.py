"""A task: what a run learns from and is measured with."""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from debiaspl.data.images import ImageSet
from debiaspl.data.known import load
from debiaspl.data.splits import Split, few_labels, long_tail


class Splitter(Protocol):
    """Decides which images of a labeled set keep their label."""

    def split(self, labels: Tensor, seed: int) -> Split: ...


@dataclass(frozen=True)
class FewLabels:
    """So many labels of every class; all images are unlabeled ones too."""

    per_class: int = 4
    """Labels per class."""

    def split(self, labels: Tensor, seed: int) -> Split:
        return few_labels(labels, self.per_class, seed)


@dataclass(frozen=True)
class LongTail:
    """Class sizes that fall exponentially, and a labeled share of each class."""

    gamma: float = 100.0
    """Images of the largest class over those of the smallest."""
    labeled_fraction: float = 0.1
    """Labeled share of each class."""

    def split(self, labels: Tensor, seed: int) -> Split:
        return long_tail(labels, self.gamma, self.labeled_fraction, seed)


PROTOCOLS: dict[str, type[FewLabels] | type[LongTail]] = {"few-labels": FewLabels, "long-tail": LongTail}


@dataclass(frozen=True, eq=False)
class Task:
    """Labeled images, images whose labels are hidden, and the images a result is measured on."""

    labeled: ImageSet
    unlabeled: ImageSet
    test: ImageSet

    @classmethod
    def known(cls, name: str, protocol: Splitter, seed: int) -> "Task":
        """A set known by name, split by a protocol."""
        whole = load(name)
        split = protocol.split(whole.train.labels, seed)
        return cls(
            labeled=whole.train.select(split.labeled),
            unlabeled=whole.train.select(split.unlabeled).without_labels(),
            test=whole.test,
        )

    def to(self, device: torch.device) -> "Task":
        return Task(self.labeled.to(device), self.unlabeled.to(device), self.test.to(device))
