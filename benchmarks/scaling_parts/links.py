"""How long a message takes, over which link."""

import math
from dataclasses import dataclass

from scaling_parts.origin import assumed


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


def once_round(gpus: int, link: Link) -> float:
    """Seconds of the hops from the first to the last GPU of a ring."""
    nodes = max(1, gpus // assumed("node"))
    between = nodes if nodes > 1 else 0
    return (gpus - 1 - between) * 1e-6 * assumed("hop_in") + between * link.hop


def latency(gpus: int, link: Link, tree: bool = True) -> float:
    """Seconds before the first byte counts: NCCL's trees need log2 of the nodes, a flat ring all of them."""
    if gpus == 1:
        return 0.0
    inside, nodes = min(gpus, assumed("node")), max(1, gpus // assumed("node"))
    up = (inside - 1) * 1e-6 * assumed("hop_in") + math.log2(nodes) * link.hop
    return 1e-6 * assumed("call") + 2 * (up if tree else once_round(gpus, link))


def all_reduce(size: float, gpus: int, link: Link) -> float:
    """Seconds: the bytes of a ring at the rate of its narrowest part, the hops of a tree."""
    return on_the_wire(size, gpus) / _rate(gpus, link) + latency(gpus, link) if gpus > 1 else 0.0


def all_gather(size: float, gpus: int, link: Link) -> float:
    """Seconds until every GPU has ``size`` bytes of each: a ring, once round; there is no tree for it."""
    if gpus == 1:
        return 0.0
    return (gpus - 1) * size / _rate(gpus, link) + 1e-6 * assumed("call") + once_round(gpus, link)


def _rate(gpus: int, link: Link) -> float:
    nvlink = 1e9 * assumed("nvlink")
    return nvlink if gpus <= assumed("node") else min(nvlink, link.rate)
