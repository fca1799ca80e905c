"""Data sets: images and labels as tensors."""

from debiaspl.data.errors import DataError
from debiaspl.data.feed import Drawn, Feed, feed, in_order, loaded
from debiaspl.data.formats.definition import TrainTest
from debiaspl.data.given import GivenLabels, NoLabels
from debiaspl.data.images import UNLABELED, ImageSet
from debiaspl.data.known import load
from debiaspl.data.lazy import LazyImages
from debiaspl.data.open import open_data, with_test_set
from debiaspl.data.splits import FewLabels, LongTail, Mismatch, Split, Splitter, TwoTails, hold_out_labels
from debiaspl.data.stream import IndexStream
from debiaspl.data.task import PROTOCOLS, Hints, Task, digest

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
    "digest",
    "feed",
    "hold_out_labels",
    "in_order",
    "load",
    "loaded",
    "open_data",
    "with_test_set",
]
