"""Training on top of an encoder that stays as it is: features once, then a classifier of them in seconds.

What a machine without a GPU can do. The run folder is like any other, and its model is the whole network.
"""

import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from debiaspl.data import UNLABELED, ImageSet, Task
from debiaspl.encoders import EncoderNetwork, Features, Views, cached_features, load_encoder
from debiaspl.encoders.cache import CHUNK
from debiaspl.training.ending import End
from debiaspl.training.errors import Interrupted, RunError
from debiaspl.training.evaluate import Evaluation
from debiaspl.training.log import Log, ProgressLine
from debiaspl.training.monitor import imbalance
from debiaspl.training.outcome import about, measured, timing
from debiaspl.training.parts import find
from debiaspl.training.recipe import Recipe
from debiaspl.training.run import Run
from debiaspl.training.signals import stop_requests
from debiaspl.vectors import LEARNED, FittedHead, fit_head

WEAK, STRONG = 2, 2
"""Views of each image, beside the image itself,"""
VIEWED = 2000
"""in sets of up to so many images. In larger ones strong views are made of the features: five times as fast."""
FEATURES = ".features"


def is_frozen(recipe: Recipe) -> bool:
    return recipe.network.name == "encoder" and bool(recipe.network.settings.get("frozen"))


def views_of(images: int, flip: bool = True) -> Views:
    """The views that are computed of a set of so many images."""
    return Views(WEAK, STRONG, flip) if images <= VIEWED else Views(flip=flip)


def train_frozen(
    recipe: Recipe,
    run: Run,
    task: Task,
    device: torch.device,
    go_on: str,
    end: End,
    kept: Path | None = None,
    part: str = "",
) -> dict[str, Any]:
    """Train the classifier of a frozen encoder into the run's folder, and return what its results.json holds.

    Features lie in ``kept``, or else beside the run: another run with more labels finds them there. ``part`` is for the
    progress line, where this is one of several runs.
    """
    if recipe.algorithm.name not in LEARNED:
        raise RunError(
            f"a frozen encoder learns with {' or '.join(LEARNED)}, found {recipe.algorithm.name}. To train it with "
            "that algorithm, fine-tune it: --set frozen=false."
        )
    started = time.monotonic()
    images = every_image(task)
    line = ProgressLine(f"{recipe.name}, features:", 0, len(images), unit="image")
    heard = f"Stopping when the next {CHUNK} images are done. Ctrl-C again leaves at once; --resume goes on."
    with run.begin(recipe), stop_requests(heard=heard) as stop_requested:

        def watch(done: int, total: int) -> None:
            line.show(done, {"losses": {}})
            heed(done, total)

        def heed(done: int, total: int) -> None:
            if asked := stop_requested():
                raise Interrupted(
                    f"Stopped; the features of {done:,} of {total:,} images are kept. Go on with: {go_on}", asked
                )

        network = _network(recipe, task).to(device)
        # The same views for every seed, so that they are computed once: a seed decides all else.
        views = views_of(len(images), recipe.flip)
        place = kept or run.folder.resolve().parent / FEATURES
        with line:
            features = cached_features(network.encoder, images, place, views, watch)
            line.say(f"{recipe.name}, classifier: {recipe.steps:,} steps", *([part] if part else []))
            fitted = _fit(recipe, task, images, features, device)
        heed(len(images), len(images))
        network.head.load_state_dict(fitted.head.state_dict())
        found = _Found(images, fitted.probabilities(features.plain), features.skipped)
        seconds = time.monotonic() - started
        _write_log(run, _told(recipe, fitted.history), seconds)
        ending = end(found, task)
        results = measured(recipe, task, "frozen encoder", found, ending, run.log())
        results |= {"timing": timing(time.monotonic() - started, device)}
        run.finish(network.state_dict(), about(recipe, task.labeled), ending.predictions, results)
    return results


def every_image(task: Task) -> ImageSet:
    """All images of a task once, by name: an order that does not change when more of them are labeled."""
    both = task.labeled.joined(task.unlabeled)
    first = {name: position for position, name in reversed(list(enumerate(both.ids)))}
    return both.select([first[name] for name in sorted(first)])


def _network(recipe: Recipe, task: Task) -> EncoderNetwork:
    images = task.labeled
    with torch.random.fork_rng(devices=[]):
        network = recipe.network.build("network", num_classes=images.num_classes, channels=images.channels)
    assert isinstance(network, EncoderNetwork)
    network.encoder = load_encoder(network.source, image_size=network.encoder.image_size)
    return network.eval()


def _fit(recipe: Recipe, task: Task, images: ImageSet, features: Features, device: torch.device) -> FittedHead:
    labels = _labels(images, task.labeled)
    read = torch.ones(len(images), dtype=torch.bool)
    read[list(features.skipped)] = False
    lost = set(labels[~read].tolist()) - set(labels[read].tolist()) - {UNLABELED}
    if lost:
        names = ", ".join(images.classes[label] for label in sorted(lost))
        raise RunError(f"no labeled image of {names} can be read. Every class needs one; replace these files.")
    known = {"num_classes": images.num_classes, "class_counts": tuple(task.labeled.counts())}
    makes_labels = find("algorithm", recipe.algorithm.name).makes_pseudo_labels
    settings = recipe.algorithm.settings
    return fit_head(
        torch.cat((features.plain[None], features.weak))[:, read],
        labels[read],
        images.num_classes,
        strong=features.strong[:, read] if len(features.strong) else None,
        correction=recipe.correction.build("correction", num_features=features.plain.shape[1], **known),
        threshold=settings.get("threshold", 0.95),
        steps=recipe.steps,
        seed=recipe.seed,
        device=device,
        unlabeled_weight=settings.get("unlabeled_weight", 1.0) if makes_labels else 0.0,
        labeled_batch=recipe.labeled_batch,
        # Nothing is learned from them: one will do.
        unlabeled_batch=recipe.unlabeled_batch if makes_labels else 1,
        learning_rate=recipe.learning_rate,
        weight_decay=recipe.weight_decay,
    )


def _labels(images: ImageSet, labeled: ImageSet) -> Tensor:
    """The labels to train with, image by image."""
    known = dict(zip(labeled.ids, labeled.labels.tolist(), strict=True))
    return torch.tensor([known.get(name, UNLABELED) for name in images.ids])


class _Found:
    """Predictions that have been made already, for any part of the images."""

    def __init__(self, images: ImageSet, probabilities: Tensor, skipped: dict[int, str]) -> None:
        self.place = {name: position for position, name in enumerate(images.ids)}
        self.probabilities = probabilities
        self.skipped = {images.ids[position]: reason for position, reason in skipped.items()}

    def __call__(self, images: ImageSet) -> Evaluation:
        read = [position for position, name in enumerate(images.ids) if name not in self.skipped]
        skipped = {name: self.skipped[name] for name in images.ids if name in self.skipped}
        part = images if len(read) == len(images) else images.select(read)
        confidence, label = self.probabilities[[self.place[name] for name in part.ids]].max(-1)
        return Evaluation(part, label, confidence, skipped)


def _told(recipe: Recipe, history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What happened; of labels that an algorithm does not make, nothing is told."""
    if find("algorithm", recipe.algorithm.name).makes_pseudo_labels:
        return history
    return [{"step": line["step"], "losses": {"labeled": line["losses"]["labeled"]}} for line in history]


def _write_log(run: Run, history: list[dict[str, Any]], seconds: float) -> None:
    with Log(run.log_path) as log:
        for line in history:
            told = {"imbalance": imbalance(line["prior"], least=1e-6)} if "prior" in line else {}
            log.write(line | told | {"seconds": round(seconds * line["step"] / history[-1]["step"], 3)})
