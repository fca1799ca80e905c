"""Images and labels as tensors."""

from debiaspl.data.errors import DataError
from debiaspl.data.feed import Drawn, Feed, feed, in_order
from debiaspl.data.formats.definition import TrainTest
from debiaspl.data.given import GivenLabels
from debiaspl.data.images import UNLABELED, ImageSet
from debiaspl.data.known import load
from debiaspl.data.lazy import LazyImages
from debiaspl.data.open import open_data
from debiaspl.data.splits import Split, few_labels, hold_out_labels, long_tail, mismatch, two_tails
from debiaspl.data.stream import IndexStream
from debiaspl.data.task import PROTOCOLS, FewLabels, LongTail, Mismatch, Splitter, Task, TwoTails, digest

__all__ = [
    "PROTOCOLS",
    "UNLABELED",
    "DataError",
    "Drawn",
    "Feed",
    "FewLabels",
    "GivenLabels",
    "ImageSet",
    "IndexStream",
    "LazyImages",
    "LongTail",
    "Mismatch",
    "Split",
    "Splitter",
    "Task",
    "TrainTest",
    "TwoTails",
    "digest",
    "feed",
    "few_labels",
    "hold_out_labels",
    "in_order",
    "load",
    "long_tail",
    "mismatch",
    "open_data",
    "two_tails",
]
