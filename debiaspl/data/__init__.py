"""Data sets: images and labels as tensors."""

from debiaspl.data.feed import Feed as Feed, IndexStream as IndexStream, feed as feed
from debiaspl.data.images import UNLABELED as UNLABELED, ImageSet as ImageSet, TrainTest as TrainTest
from debiaspl.data.known import load as load
from debiaspl.data.lazy import Drawn as Drawn, LazyImages as LazyImages, in_order as in_order, loaded as loaded
from debiaspl.data.open import open_data as open_data, with_test_set as with_test_set
from debiaspl.data.splits import (
    FewLabels as FewLabels,
    LongTail as LongTail,
    Mismatch as Mismatch,
    Split as Split,
    Splitter as Splitter,
    TwoTails as TwoTails,
    hold_out_labels as hold_out_labels,
)
from debiaspl.data.task import (
    PROTOCOLS as PROTOCOLS,
    GivenLabels as GivenLabels,
    Hints as Hints,
    NoLabels as NoLabels,
    Task as Task,
    digest as digest,
)
from debiaspl.data.text import DataError as DataError
