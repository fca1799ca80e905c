"""Settings for the classifier of a frozen encoder, which trains in seconds on a CPU once the features are computed."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from debiaspl.features.fit import LINEAR, enough_steps
from debiaspl.training import Choice, Recipe

VIEWED = 2000
"""Up to this many images, strong views are computed by the encoder from the images. For larger sets they are made from
the features, which is five times as fast."""


def frozen(base: Recipe, images: int, source: str, architecture: Mapping[str, Any]) -> Recipe:
    """``base`` on top of this encoder. A linear classifier of fixed features is less confident than a network that
    learns its features: choose a threshold below 0.95."""
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
