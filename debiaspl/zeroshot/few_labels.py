"""A few labels and a zero-shot model: images that the student discards take the model's label, where that is sure."""

from pathlib import Path

import torch
from safetensors.torch import save as to_bytes
from torch import Tensor

from debiaspl.algorithms.taught import TaughtFixMatch
from debiaspl.data import UNLABELED, ImageSet
from debiaspl.debias import Debiaser
from debiaspl.encoders import EncoderNetwork, cached_features, load_encoder
from debiaspl.training import Recipe, RunError
from debiaspl.training.files import write_bytes, write_text
from debiaspl.training.frozen import FEATURES, views_of
from debiaspl.training.outcome import about
from debiaspl.vectors.checks import check_labels, checked_features, checked_steps
from debiaspl.vectors.fit import FittedHead
from debiaspl.vectors.loop import Schedule, run
from debiaspl.vectors.network import LinearNetwork
from debiaspl.vectors.scaling import Scaling
from debiaspl.vectors.views import VectorViews
from debiaspl.zeroshot.pixels import sized
from debiaspl.zeroshot.predictions import labels_csv, most_likely

CONFIDENCE = 0.4
"""What the authors' scripts ask of the zero-shot model here; lower than for labels that training begins with."""


def fit_taught(
    features: Tensor,
    labels: Tensor,
    taught: Tensor,
    num_classes: int,
    *,
    strong: Tensor | None = None,
    strength: float = 0.5,
    momentum: float = 0.99,
    threshold: float = 0.95,
    steps: int | None = None,
    seed: int = 0,
) -> FittedHead:
    """``debiaspl.vectors.fit_head`` with ``TaughtFixMatch``: ``taught`` are zero-shot labels, (N,), -1 for none."""
    weak = checked_features(features)
    check_labels(labels, weak.shape[1], num_classes)
    if taught.shape != labels.shape or taught.dtype != torch.int64:
        raise ValueError(f"taught has shape {tuple(taught.shape)}, expected int64 {tuple(labels.shape)}: one a row.")
    generator = torch.Generator().manual_seed(seed)
    views = VectorViews(weak, strong, Scaling.of(weak), hidden=0.25, noise=0.0, generator=generator)
    schedule = Schedule(checked_steps(steps, weak.shape[1]), 64, 448, 1.0, 1e-4, seed)
    correction = Debiaser(num_classes, strength, momentum)
    algorithm = TaughtFixMatch(taught, correction, threshold, joint=False)
    student = LinearNetwork(weak.shape[-1], num_classes)
    history = run(student, algorithm.train(), views, labels, schedule)
    return FittedHead(views.scaling.folded_into(student.head), correction.prior, history)


def train_taught(recipe: Recipe, images: ImageSet, labels: Tensor, taught: Tensor, out: Path) -> Tensor:
    """Train it on a frozen encoder and write ``model.safetensors`` and ``predictions.csv``; probabilities, (N, C).

    ``images`` have the classes in their order; ``recipe`` names the encoder and the settings.
    """
    network = recipe.network.build("network", num_classes=images.num_classes, channels=3)
    if not isinstance(network, EncoderNetwork) or not network.frozen:
        raise RunError("a few labels beside a zero-shot model are learned on a frozen encoder: leave out --fine-tune.")
    network.encoder = load_encoder(network.source, image_size=network.encoder.image_size)
    own = sized(images, recipe.image_size)
    found = cached_features(network.encoder, own, out.resolve().parent / FEATURES, views_of(len(own)))
    read = torch.ones(len(images), dtype=torch.bool)
    read[list(found.skipped)] = False
    fitted = fit_taught(
        torch.cat((found.plain[None], found.weak))[:, read],
        labels[read],
        taught[read],
        images.num_classes,
        strong=found.strong[:, read] if len(found.strong) else None,
        steps=recipe.steps,
        seed=recipe.seed,
        threshold=recipe.algorithm.settings["threshold"],
        **recipe.correction.settings,
    )
    network.head.load_state_dict(fitted.head.state_dict())
    probabilities = fitted.probabilities(found.plain)
    weights = {name: value.contiguous() for name, value in network.state_dict().items()}
    write_bytes(out / "model.safetensors", to_bytes(weights, metadata=about(recipe, own)))
    write_text(out / "predictions.csv", labels_csv(most_likely(images.ids, images.classes, probabilities)))
    return probabilities


def taught_labels(probabilities: Tensor, confidence: float = CONFIDENCE) -> Tensor:
    """The zero-shot label of each image where it is sure enough, -1 elsewhere."""
    sure, label = probabilities.max(-1)
    return torch.where(sure >= confidence, label, UNLABELED)
