"""Data sets: images and labels as tensors."""

from debiaspl.data.feed import Feed, IndexStream, feed
from debiaspl.data.images import UNLABELED, ImageSet, TrainTest
from debiaspl.data.known import load
from debiaspl.data.lazy import Drawn, LazyImages, in_order, loaded
from debiaspl.data.open import open_data, with_test_set
from debiaspl.data.splits import FewLabels, LongTail, Mismatch, Split, Splitter, TwoTails, hold_out_labels
from debiaspl.data.task import PROTOCOLS, GivenLabels, Hints, NoLabels, Task, digest
from debiaspl.data.text import DataError
