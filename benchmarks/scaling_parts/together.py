"""One step on many GPUs, all of them equally fast."""

from scaling_parts.links import Link, all_gather, all_reduce
from scaling_parts.messages import (
    SENT,
    backward_norms,
    buckets,
    forward_norms,
    group_bytes,
    prior_bytes,
    statistics_bytes,
)
from scaling_parts.work import Work


def step_seconds(
    work: Work, gpus: int, link: Link, overlap: bool, synchronised: bool = False, of_weights: int = SENT
) -> float:
    """With overlap, messages of gradients run beside the backward pass; the step waits for all others."""
    network = work.network
    backward = work.seconds * work.backward_flop / work.flop
    clock = work.seconds - backward + all_reduce(prior_bytes(network), gpus, link)
    if work.cld:
        clock += all_reduce(group_bytes(work), gpus, link)
    if synchronised:
        clock += sum(all_gather(size, gpus, link) for size in forward_norms(work))
        clock += sum(all_reduce(size, gpus, link) for size in backward_norms(work))
    else:
        clock += all_reduce(statistics_bytes(network), gpus, link)
    if not overlap:
        return clock + backward + all_reduce(network.gradient_bytes(of_weights), gpus, link)
    free = clock
    for size, share in buckets(network, of_weights):
        free = max(free, clock + backward * share) + all_reduce(size, gpus, link)
    return max(clock + backward, free)


def efficiency(
    work: Work, gpus: int, link: Link, overlap: bool, synchronised: bool = False, of_weights: int = SENT
) -> float:
    """With the same batch on every GPU: the step alone over the step together."""
    return work.seconds / step_seconds(work, gpus, link, overlap, synchronised, of_weights)


def first_below(work: Work, link: Link, goal: float = 0.9) -> int | None:
    """The first number of GPUs, doubling up to 1,024, that falls short of the goal with overlap."""
    return next((2**k for k in range(11) if efficiency(work, 2**k, link, True) < goal), None)
