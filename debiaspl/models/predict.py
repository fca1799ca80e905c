"""What a network says of a set of images: the one way through a set, for whoever wants to know."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from debiaspl.data import ImageSet, in_order
from debiaspl.models.network import Network
from debiaspl.models.scaling import scale

BATCH = 500
"""Images that a network sees at once. Ranks take whole batches in turn: in a batch of another size a picture might have
other last bits."""


class Seen(NamedTuple):
    """Of one batch, on the device of the network."""

    positions: Tensor
    """Which images these are, on the CPU; without those that cannot be read."""
    features: Tensor
    """(N, D)."""
    probabilities: Tensor
    """float32, (N, C)."""
    skipped: dict[int, str]
    """Position -> why an image of this batch cannot be read."""


@torch.no_grad()
def predict_set(
    network: Network, images: ImageSet, batch: int = BATCH, first: int = 0, every: int = 1, workers: int | None = None
) -> Iterator[Seen]:
    """All images once, in their order, by a network in eval mode, in float32.

    For one of several that share them: of all batches, number ``first`` and then each so many further on. ``workers``
    are the threads that read images from files.
    """
    where = next(network.parameters(), images.labels).device
    for drawn in in_order(images, batch, first, every, workers):
        if len(drawn.positions):
            features = network.embed(scale(drawn.pictures[0].to(where)))
            probabilities = network.head(features).float().softmax(-1)
        else:
            features = torch.empty((0, network.num_features), device=where)
            probabilities = torch.empty((0, network.head.out_features), device=where)
        yield Seen(drawn.positions, features, probabilities, drawn.skipped)
