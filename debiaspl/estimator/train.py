"""A network for images, trained in memory by the same step that makes runs."""

import re
from dataclasses import dataclass

import torch
from torch import Tensor

from debiaspl.data import ImageSet, Task
from debiaspl.debias import Debiaser
from debiaspl.models import Network
from debiaspl.training import Choice, Recipe
from debiaspl.training.loop import fit

STEPS = 600


@dataclass(frozen=True, eq=False)
class Trained:
    network: Network
    """In eval mode, on the CPU."""
    prior: Tensor


def choice_of(network: str) -> Choice:
    """``auto``, ``small``, or a wide ResNet such as ``wrn-28-2``."""
    wide = re.fullmatch(r"wrn-(\d+)-(\d+)", network)
    if wide:
        return Choice("wrn", {"depth": int(wide[1]), "width": int(wide[2]), "norm_momentum": 0.1})
    if network in ("auto", "small"):
        return Choice("small")
    raise ValueError(
        f"network is {network!r}, expected 'auto', 'small' or a wide ResNet such as 'wrn-28-2' for images."
    )


def recipe_of(
    network: str, strength: float, momentum: float, threshold: float, flip: bool, steps: int, seed: int
) -> Recipe:
    """Settings that suit small images and a CPU."""
    return Recipe(
        name="estimator",
        network=choice_of(network),
        algorithm=Choice("fixmatch", {"threshold": threshold, "joint": False}),
        correction=Choice("debiaser", {"strength": strength, "momentum": momentum}),
        flip=flip,
        seed=seed,
        steps=steps,
        labeled_batch=32,
        unlabeled_batch=96,
        learning_rate=0.2,
        average_decay=max(0.0, 1 - 6 / steps),  # over the last sixth of the training, however short that is
        average_statistics=True,
    )


def train_network(pixels: Tensor, codes: Tensor, num_classes: int, recipe: Recipe, device: torch.device) -> Trained:
    """Every image also serves as an unlabeled one, as in FixMatch."""
    everything = ImageSet(pixels, codes, tuple(map(str, range(num_classes))))
    labeled = everything.select((codes >= 0).nonzero().flatten())
    step = fit(recipe, Task(labeled, everything.without_labels(), test=labeled), device)
    # A network of its own: the weights of the trained one are views of one memory, which pickle would store for each.
    network: Network = recipe.network.build("network", num_classes=num_classes, channels=pixels.shape[1])
    network.load_state_dict(step.finished().state_dict())
    correction = step.algorithm.correction
    assert isinstance(correction, Debiaser)
    return Trained(network.eval().requires_grad_(False), correction.prior.cpu())
