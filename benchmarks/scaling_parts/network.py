"""One step on many equally fast GPUs: what the ranks tell each other, in bytes, as debiaspl sends it, and how long a
message takes over which link."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.scaling_parts.origin import assumed
from benchmarks.scaling_parts.work import Architecture, Work

SENT = 2
"""Bytes for the gradient of a weight: bfloat16 on a GPU, as the weight itself."""


@dataclass(frozen=True)
class Link:
    """What joins nodes; inside a node it is NVLink."""

    name: str
    rate: float
    """Bytes a second out of a node, and as many into it."""
    hop: float
    """Seconds."""


def links() -> tuple[Link, ...]:
    infiniband, hop = 1e9 * assumed("infiniband"), 1e-6 * assumed("hop_infiniband")
    return (
        Link("8 x 400 Gb/s InfiniBand", 8 * infiniband, hop),
        Link("1 x 400 Gb/s InfiniBand", infiniband, hop),
        Link("1 x 100 Gb/s Ethernet", 1e9 * assumed("ethernet"), 1e-6 * assumed("hop_ethernet")),
    )


def on_the_wire(size: float, gpus: int) -> float:
    """Bytes that each GPU sends, and receives, for a ring all-reduce."""
    return 2 * (gpus - 1) / gpus * size


def latency(gpus: int, link: Link) -> float:
    """Seconds before the first byte counts: NCCL's trees need log2 of the nodes."""
    if gpus == 1:
        return 0.0
    inside, nodes = min(gpus, assumed("node")), max(1, gpus // assumed("node"))
    up = (inside - 1) * 1e-6 * assumed("hop_in") + math.log2(nodes) * link.hop
    return 1e-6 * assumed("call") + 2 * up


def all_reduce(size: float, gpus: int, link: Link) -> float:
    """Seconds: the bytes of a ring at the rate of its narrowest part, the hops of a tree."""
    return on_the_wire(size, gpus) / _rate(gpus, link) + latency(gpus, link) if gpus > 1 else 0.0


def _rate(gpus: int, link: Link) -> float:
    nvlink = 1e9 * assumed("nvlink")
    return nvlink if gpus <= assumed("node") else min(nvlink, link.rate)


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


def step_seconds(work: Work, gpus: int, link: Link) -> float:
    """Messages of gradients run beside the backward pass; the step waits for all others."""
    network = work.network
    backward = work.seconds * work.backward_flop / work.flop
    clock = work.seconds - backward + all_reduce(prior_bytes(network), gpus, link)
    if work.cld:
        clock += all_reduce(group_bytes(work), gpus, link)
    clock += all_reduce(statistics_bytes(network), gpus, link)
    free = clock
    for size, share in buckets(network):
        free = max(free, clock + backward * share) + all_reduce(size, gpus, link)
    return max(clock + backward, free)


def first_below(work: Work, link: Link, goal: float = 0.9) -> int | None:
    """The first number of GPUs, doubling up to 1,024, below this efficiency with the same batch on each."""
    return next((2**k for k in range(11) if work.seconds / step_seconds(work, 2**k, link) < goal), None)
