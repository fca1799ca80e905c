"""Settings for the classifier of a frozen encoder, which is fitted in seconds once the images are encoded."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from debiaspl.features.fit import LINEAR, enough_steps
from debiaspl.training import Choice, Recipe


def frozen(base: Recipe, images: int, source: str, architecture: Mapping[str, Any]) -> Recipe:
    """``base`` on top of this encoder. A linear classifier of fixed features is less confident than a network that
    learns its features: choose a threshold below 0.95."""
    names = ("strong", "flip", "unlabeled_batch", "learning_rate", "arc", "weight_decay", "average_decay")
    same: dict[str, Any] = {name: getattr(LINEAR, name) for name in names}
    network = Choice("encoder", {"source": source, "architecture": architecture, "frozen": True})
    return replace(base, network=network, steps=enough_steps(images), **same)
