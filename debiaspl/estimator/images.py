"""For images: converts arrays and trains a network in memory, with the same training step as runs."""

import re
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from debiaspl.data import ImageSet, Task
from debiaspl.debias import Debiaser
from debiaspl.models import Network
from debiaspl.training import Choice, Recipe
from debiaspl.training.step import fit

STEPS = 600


class Pictures:
    """Converts arrays of images, in scikit-learn's layout, to uint8 (N, C, H, W) by the range of those in fit: uint8
    does not change; other numbers are scaled from the smallest to the largest."""

    def __init__(self, images: NDArray[Any]) -> None:
        if images.ndim > 4 or (images.ndim == 4 and images.shape[3] not in (1, 3)):
            channels_first = images.ndim == 4 and images.shape[1] in (1, 3)
            hint = " Channels come last: X.transpose(0, 2, 3, 1)." if channels_first else ""
            kinds = "features (N, D), or images (N, H, W), (N, H, W, 1) or (N, H, W, 3)"
            raise ValueError(f"X has shape {images.shape}, expected {kinds}.{hint}")
        low, high = (0.0, 255.0) if images.dtype == np.uint8 else (float(images.min()), float(images.max()))
        if images.dtype.kind == "f" and not high - low <= float(np.finfo(images.dtype).max):
            raise ValueError(f"images in X run from {low:g} to {high:g}, too wide a range. Scale them, say, to 0..1.")
        self.shape, self.low, self.high = images.shape[1:], low, high

    def __call__(self, images: NDArray[Any]) -> Tensor:
        if images.shape[1:] != self.shape:
            raise ValueError(f"images in X have shape {images.shape[1:]}, expected {self.shape}, as in fit.")
        if images.dtype != np.uint8 or (self.low, self.high) != (0.0, 255.0):
            span = (self.high - self.low) or 1.0
            images = np.rint(np.clip((images - self.low) * (255 / span), 0, 255)).astype(np.uint8)
        pixels = torch.from_numpy(np.ascontiguousarray(images))
        return (pixels.unsqueeze(-1) if images.ndim == 3 else pixels).permute(0, 3, 1, 2).contiguous()


def recipe_of(
    network: str, strength: float, momentum: float, threshold: float, flip: bool, steps: int, seed: int
) -> Recipe:
    """A recipe for small images and a CPU, with a ``small`` network or a wide ResNet such as ``wrn-28-2``."""
    wide = re.fullmatch(r"wrn-(\d+)-(\d+)", network)
    if not wide and network not in ("auto", "small"):
        raise ValueError(f"network is {network!r}, expected 'auto', 'small' or a wide ResNet such as 'wrn-28-2'.")
    shape = {"depth": int(wide[1]), "width": int(wide[2]), "norm_momentum": 0.1} if wide else {}
    return Recipe(
        name="estimator",
        network=Choice("wrn" if wide else "small", shape),
        algorithm=Choice("fixmatch", {"threshold": threshold, "joint": False}),
        correction=Choice("debiaser", {"strength": strength, "momentum": momentum}),
        flip=flip,
        seed=seed,
        steps=steps,
        labeled_batch=32,
        unlabeled_batch=96,
        learning_rate=0.2,
        average_decay=max(0.0, 1 - 6 / steps),  # over the last sixth of the training
        average_statistics=True,
    )


def train_network(
    pixels: Tensor, codes: Tensor, num_classes: int, recipe: Recipe, device: torch.device
) -> tuple[Network, Tensor]:
    """A network in eval mode on the CPU, and its prior. Every image is also an unlabeled one, as in FixMatch."""
    everything = ImageSet(pixels, codes, tuple(map(str, range(num_classes))))
    labeled = everything.select((codes >= 0).nonzero().flatten())
    step = fit(recipe, Task(labeled, everything.without_labels(), test=labeled), device)
    # A new network: the weights of the trained one are views of one tensor, which pickle would store once for each.
    network: Network = recipe.network.build("network", num_classes=num_classes, channels=pixels.shape[1])
    network.load_state_dict(step.finished().state_dict())
    correction = step.algorithm.correction
    assert isinstance(correction, Debiaser)
    return network.eval().requires_grad_(False), correction.prior.cpu()
