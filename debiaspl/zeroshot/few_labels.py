"""A few labels and a zero-shot model: images that the student discards take the model's label, where that is sure."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from safetensors.torch import save as to_bytes
from torch import Tensor

from debiaspl.algorithms.taught import TaughtFixMatch
from debiaspl.data import UNLABELED, ImageSet
from debiaspl.encoders import EncoderNetwork, cached_features, load_encoder
from debiaspl.files import write_bytes, write_text
from debiaspl.training import Choice, Recipe
from debiaspl.training.frozen import FEATURES, views_of
from debiaspl.training.outcome import about
from debiaspl.vectors import fit_head
from debiaspl.zeroshot.pixels import sized
from debiaspl.zeroshot.predictions import labels_csv, most_likely

CONFIDENCE = 0.4
"""What the authors' scripts ask of the zero-shot model here; lower than for labels that training begins with."""


def train_taught(recipe: Recipe, images: ImageSet, labels: Tensor, taught: Tensor, out: Path) -> Tensor:
    """Train it on a frozen encoder and write ``model.safetensors`` and ``predictions.csv``; probabilities, (N, C).

    ``images`` have the classes in their order; ``recipe`` names the encoder and the settings.
    """
    network = recipe.network.build("network", num_classes=images.num_classes, channels=3)
    assert isinstance(network, EncoderNetwork)
    network.encoder = load_encoder(network.source, image_size=network.encoder.image_size)
    own = sized(images, recipe.image_size)
    found = cached_features(network.encoder, own, out.resolve().parent / FEATURES, views_of(len(own)))
    read = torch.ones(len(images), dtype=torch.bool)
    read[list(found.skipped)] = False
    fitted = fit_head(
        torch.cat((found.plain[None], found.weak))[:, read],
        labels[read],
        images.num_classes,
        strong=found.strong[:, read] if len(found.strong) else None,
        correction=recipe.correction.build("correction", num_classes=images.num_classes),
        algorithm=partial(TaughtFixMatch, taught[read]),
        threshold=recipe.algorithm.settings["threshold"],
        steps=recipe.steps,
        seed=recipe.seed,
    )
    network.head.load_state_dict(fitted.head.state_dict())
    probabilities = fitted.probabilities(found.plain)
    weights = {name: value.contiguous() for name, value in network.state_dict().items()}
    write_bytes(out / "model.safetensors", to_bytes(weights, metadata=about(recipe, own)))
    write_text(out / "predictions.csv", labels_csv(most_likely(images.ids, images.classes, probabilities)))
    return probabilities


def taught_by(recipe: Recipe, table: Path, confidence: float) -> Recipe:
    """The same for a network that is trained: its recipe, told by the table of the zero-shot model's predictions."""
    settings = {**recipe.algorithm.settings, "table": str(table.resolve()), "sure": confidence}
    return replace(recipe, name=f"{recipe.name}-taught", algorithm=Choice("taught", settings))


def taught_labels(probabilities: Tensor, confidence: float = CONFIDENCE) -> Tensor:
    """The zero-shot label of each image where it is sure enough, -1 elsewhere."""
    sure, label = probabilities.max(-1)
    return torch.where(sure >= confidence, label, UNLABELED)
