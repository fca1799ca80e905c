"""Predictions of a network for a set of images: the only loop over a set in the package."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from debiaspl.data import ImageSet, in_order
from debiaspl.models.network import Network, scale

BATCH = 500
"""Images per batch. Ranks take whole batches in turn: in a batch of another size, an image's result might differ in the
last bits."""


class Seen(NamedTuple):
    """Results for one batch, on the device of the network."""

    positions: Tensor
    """Indices of these images, on the CPU, without those that cannot be read."""
    features: Tensor
    """(N, D)."""
    probabilities: Tensor
    """float32, (N, C)."""
    skipped: dict[int, str]
    """Index -> why an image of this batch cannot be read."""


@torch.no_grad()
def predict_set(
    network: Network, images: ImageSet, batch: int = BATCH, first: int = 0, every: int = 1
) -> Iterator[Seen]:
    """Predict all images once, in order, with a network in eval mode, in float32. To share the work: only batch number
    ``first`` and every ``every``-th one after it."""
    where = next(network.parameters(), images.labels).device
    for drawn in in_order(images, batch, first, every):
        if len(drawn.positions):
            features = network.embed(scale(drawn.pictures[0].to(where)))
            probabilities = network.head(features).float().softmax(-1)
        else:
            features = torch.empty((0, network.num_features), device=where)
            probabilities = torch.empty((0, network.head.out_features), device=where)
        yield Seen(drawn.positions, features, probabilities, drawn.skipped)
