"""What the ranks tell each other in a step, in bytes, as debiaspl/training and debiaspl/debias send it."""

from collections.abc import Iterator

from scaling_parts.count import Architecture
from scaling_parts.links import on_the_wire
from scaling_parts.origin import assumed
from scaling_parts.work import Work

SENT = 2
"""Bytes for the gradient of a weight: bfloat16 on a GPU, as the weight itself."""


def prior_bytes(network: Architecture) -> int:
    """Sums of all classes, rows, spoilt batches: ``RunningPrior``."""
    return 4 * (network.classes + 2)


def statistics_bytes(network: Architecture) -> int:
    """Batch norm's running statistics, averaged over ranks when they have moved, unless norms are synchronised:
    ``Update``."""
    return 4 * network.statistics


def group_bytes(work: Work) -> int:
    """Sums and sizes of CLD's groups, one for every class."""
    classes = work.network.classes
    return 4 * classes * (classes + 1) if work.cld else 0


def forward_norms(work: Work) -> list[int]:
    """Synchronised batch norm: mean and variance of every norm, in every pass that is normalised by its batch."""
    return [8 * channels for channels in work.network.norms] * (2 if work.student_labels else 1)


def backward_norms(work: Work) -> list[int]:
    """Two sums of every norm."""
    return [8 * channels for channels in work.network.norms]


def norm_bytes(work: Work, gpus: int) -> float:
    """What a GPU receives for synchronised norms: the forward part is gathered from all, the backward part summed."""
    return (gpus - 1) * sum(forward_norms(work)) + on_the_wire(sum(backward_norms(work)), gpus)


def buckets(network: Architecture, of_weights: int = SENT) -> Iterator[tuple[int, float]]:
    """Bytes of each message of gradients, last layer first, and the share of the backward work when it can start.

    DistributedDataParallel puts gradients of different precision into different buckets.
    """
    caps = {4: assumed("first_bucket") * 2**20, of_weights: assumed("first_bucket") * 2**20}
    sizes = dict.fromkeys(caps, 0)
    macs = 0
    for layer in reversed(network.layers):
        macs += layer.macs
        sizes[4] += 4 * layer.vectors
        sizes[of_weights] += of_weights * layer.weights
        for kind, size in sizes.items():
            if size >= caps[kind]:
                yield size, macs / network.macs
                caps[kind], sizes[kind] = assumed("bucket") * 2**20, 0
    for size in sizes.values():
        if size:
            yield size, 1.0
