"""Data sets: images and labels as tensors."""

from debiaspl.data.errors import DataError
from debiaspl.data.feed import Drawn, Feed, feed, in_order, loaded
from debiaspl.data.formats.definition import TrainTest
from debiaspl.data.given import GivenLabels
from debiaspl.data.images import UNLABELED, ImageSet
from debiaspl.data.known import load
from debiaspl.data.lazy import LazyImages
from debiaspl.data.open import open_data, with_test_set
from debiaspl.data.splits import Split, few_labels, hold_out_labels, long_tail, mismatch, two_tails
from debiaspl.data.stream import IndexStream
from debiaspl.data.task import PROTOCOLS, FewLabels, Hints, LongTail, Mismatch, Splitter, Task, TwoTails, digest
from debiaspl.data.unlabeled import NoLabels
from debiaspl.data.vectors import Vectors

__all__ = [
    "PROTOCOLS",
    "UNLABELED",
    "DataError",
    "Drawn",
    "Feed",
    "FewLabels",
    "GivenLabels",
    "Hints",
    "ImageSet",
    "IndexStream",
    "LazyImages",
    "LongTail",
    "Mismatch",
    "NoLabels",
    "Split",
    "Splitter",
    "Task",
    "TrainTest",
    "TwoTails",
    "Vectors",
    "digest",
    "feed",
    "few_labels",
    "hold_out_labels",
    "in_order",
    "load",
    "loaded",
    "long_tail",
    "mismatch",
    "open_data",
    "two_tails",
    "with_test_set",
]
