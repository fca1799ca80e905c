"""What suits the classifier of a frozen encoder: seconds on a CPU, once its features are there."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from debiaspl.training import Choice, Recipe
from debiaspl.training.vectors import LINEAR, enough_steps

VIEWED = 2000
"""In sets of up to so many images, strong views are computed by the encoder, of pictures. In larger ones they are made
of the features: five times as fast."""


def frozen(base: Recipe, images: int, source: str, architecture: Mapping[str, Any]) -> Recipe:
    """``base`` on top of this encoder. A linear classifier of fixed features is less sure of itself than a network that
    learns its own: choose a threshold below 0.95."""
    steps = enough_steps(images)
    return replace(
        base,
        network=Choice("encoder", {"source": source, "architecture": architecture, "frozen": True}),
        strong=Choice("fixmatch" if images <= VIEWED else "hide"),
        flip=images <= VIEWED,
        steps=steps,
        learning_rate=LINEAR.learning_rate,
        arc=LINEAR.arc,
        weight_decay=LINEAR.weight_decay,
        average_decay=LINEAR.average_decay,
        log_every=max(steps // 20, 1),
        checkpoint_every=100,
    )
