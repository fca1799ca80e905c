"""Images and labels as tensors."""

from debiaspl.data.images import UNLABELED, ImageSet
from debiaspl.data.known import load
from debiaspl.data.splits import Split, few_labels, held_out, long_tail
from debiaspl.data.stream import IndexStream
from debiaspl.data.task import PROTOCOLS, FewLabels, LongTail, Splitter, Task

__all__ = [
    "PROTOCOLS",
    "UNLABELED",
    "FewLabels",
    "ImageSet",
    "IndexStream",
    "LongTail",
    "Split",
    "Splitter",
    "Task",
    "few_labels",
    "held_out",
    "load",
    "long_tail",
]
