"""A frozen encoder on images: each is encoded once, and what follows needs only the table of features."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from debiaspl.data import DataError, ImageSet, Task
from debiaspl.data.images import same_images
from debiaspl.data.text import shown
from debiaspl.encoders import Encoder, features_of, load_encoder
from debiaspl.encoders.efficientnet import NAME
from debiaspl.encoders.feature_folder import FEATURES
from debiaspl.encoders.text import refuse_without_text, text_classifier
from debiaspl.features.fit import Begin, Fitted, fit_recipe
from debiaspl.features.saved import save_fit
from debiaspl.features.table import CHUNK, FeatureTable
from debiaspl.training.build import check
from debiaspl.training.classifier import COOP, NAMED, TEXT, named_classifier, text_head
from debiaspl.training.evaluate import Ending, Evaluation, timing
from debiaspl.training.log import ProgressLine
from debiaspl.training.process import Interrupted, RunError, stop_requests
from debiaspl.training.recipe import Recipe
from debiaspl.training.run import Run
from debiaspl.training.tasks import task_of

HIDE = "hide"


@dataclass(frozen=True, eq=False)
class EncodedImages:
    """The images that could be read, with their features."""

    images: ImageSet
    table: FeatureTable
    skipped: dict[str, str]
    """Files that could not be read, with the reason."""
    lengths: tuple[float, float]
    """Mean lengths of the features, relative to their mean and to 0."""


def is_frozen(recipe: Recipe) -> bool:
    return recipe.network.name == "encoder" and bool(recipe.network.settings.get("frozen"))


def refuse_for_frozen(recipe: Recipe, images: ImageSet) -> None:
    """Raise for what would have no effect, or cannot work, with a frozen encoder; nothing is computed."""
    if recipe.start:
        raise RunError(
            f"start is {recipe.start}, but a frozen encoder keeps its own weights, so the start would not be used. "
            "Leave it out, or train the encoder: --set frozen=false."
        )
    if recipe.strong.name != HIDE:
        raise ValueError(
            f"strong is {recipe.strong.name}, which changes images, but a frozen encoder sees each image once, as it "
            "is. Use strong=hide, which hides some of the features; or train the encoder: --set frozen=false."
        )
    if recipe.validation or recipe.evaluate_every:
        name = "validation" if recipe.validation else "evaluate_every"
        raise ValueError(f"{name} is {getattr(recipe, name)}, but the labels are cross-checked. Use {name}=0.")
    if recipe.first_classifier in NAMED:
        refuse_without_text(str(recipe.network.settings["source"]), learned=recipe.first_classifier == COOP)
    blank = ImageSet(torch.zeros(len(images), 1), images.labels, images.classes, images.ids)
    labeled = blank.select((images.labels >= 0).nonzero().flatten())
    check(recipe, Task(labeled, blank.without_labels(), labeled))


def encode_images(images: ImageSet, encoder: Encoder, folder: Path, name: str, resume_command: str) -> EncodedImages:
    """Encode each image once; features that are already in the folder are not computed again. Ctrl-C stops after a
    batch, and what is done is kept."""
    line = ProgressLine(f"{name}, features:", 0, len(images), unit="image")
    with line, stop_requests() as stop_requested:

        def watch(done: int, total: int) -> None:
            line.show(done, {"losses": {}})
            if asked := stop_requested():
                kept = f"the features of {done:,} of {total:,} images are kept"
                raise Interrupted(f"Stopped; {kept}. Resume with: {resume_command}", asked)

        values, skipped = features_of(images, encoder, folder, watch)
    read = torch.tensor([number for number in range(len(images)) if number not in skipped], dtype=torch.int64)
    bad = {images.ids[number]: why for number, why in skipped.items()}
    if not len(read):
        raise DataError(f"none of {len(images):,} images can be read: {shown([f'{n} ({w})' for n, w in bad.items()])}.")
    readable = images.select(read) if bad else images
    _refuse_lost(images, readable)
    if bad:  # in place: a copy might not fit in memory
        values, every = values[: len(read)], values
        for rows, part in zip(torch.split(values, CHUNK), torch.split(read, CHUNK), strict=True):
            rows.copy_(every[part])
    table, parts = FeatureTable(values, unit=True, device=torch.device("cpu")), torch.split(values, CHUNK)
    lengths = [sum(float((part - mean).norm(dim=-1).sum()) for part in parts) for mean in (table.scaling.mean, 0)]
    return EncodedImages(readable, table, bad, (lengths[0] / len(values), lengths[1] / len(values)))


def class_name_weights(recipe: Recipe, encoded: EncodedImages, classes: Sequence[str]) -> Begin | None:
    """What makes the first classifier from the class names and the labels, if the recipe begins with it."""
    if recipe.first_classifier not in NAMED:
        return None
    scaling, (centred, length) = encoded.table.scaling, encoded.lengths
    source, is_fixed = str(recipe.network.settings["source"]), recipe.first_classifier == TEXT
    fixed = text_classifier(source, classes) if is_fixed else None

    def begin(labels: Tensor) -> dict[str, Tensor]:
        known = (labels >= 0).nonzero().flatten()
        text = fixed or named_classifier(recipe, classes, lambda: (encoded.table.features[known], labels[known]))
        weight, bias = text_head(text, scaling.mean, centred / float(scaling.gain), length)
        return {"head.weight": weight, "head.bias": bias}

    return begin


def _refuse_lost(images: ImageSet, readable: ImageSet) -> None:
    lost = set(images.labels.tolist()) - set(readable.labels.tolist()) - {-1}
    if lost:
        names = ", ".join(images.classes[label] for label in sorted(lost))
        raise DataError(f"no labeled image of {names} can be read. Every class needs one. Replace these files.")


def unmeasured(images: ImageSet, fitted: Fitted, table: FeatureTable) -> Evaluation:
    """Predictions of every image, without labels: where it was learned from, a prediction is not a measurement."""
    confidence, label = fitted.predict(table.features)
    none = torch.full_like(images.labels, -1)
    return Evaluation(replace(images, labels=none, truth=none), label, confidence)


def train_encoded(
    recipe: Recipe,
    out: Path,
    resume: bool = False,
    root: Path | str | None = None,
    resume_command: str = "the same call with resume=True",
    features: Path | None = None,
    encoder: Encoder | None = None,
) -> dict[str, Any]:
    """``train`` for a recipe with a frozen encoder, on data with a test set: a run folder, whose results are returned.
    ``features`` is the folder where they are kept, by default beside the run; ``encoder`` has its weights already."""
    run, began = Run.at(out, recipe, resume), time.monotonic()
    if (ended := run.results()) is not None:
        return ended
    task = task_of(replace(recipe, stream=True), root=root)
    images = task.every_image()
    refuse_for_frozen(recipe, images)
    settings, kept = recipe.network.settings, features or out.resolve().parent / FEATURES
    size = settings["architecture"]["image_size"] if "architecture" in settings else None
    encoder = encoder or load_encoder(settings.get("source", NAME), image_size=size)
    with run.begin(recipe):
        encoded = encode_images(images, encoder, kept, recipe.name, resume_command)
        images = encoded.images
        begin = class_name_weights(recipe, encoded, images.classes)
        named = None if begin is None else begin(images.labels)
        fitted = fit_recipe(recipe, encoded.table, images.labels, images.classes, images.ids, begin=named)
        ending = _on_the_test_set(task.test, encoded, fitted, encoder, kept)
        took = {"timing": timing(time.monotonic() - began, torch.device("cpu"))}
        return save_fit(run, recipe, fitted, encoder, images, replace(ending, more=took))


def _on_the_test_set(test: ImageSet, encoded: EncodedImages, fitted: Fitted, encoder: Encoder, folder: Path) -> Ending:
    rows = {name: row for row, name in enumerate(encoded.images.ids)}
    if set(test.ids) <= {*rows, *encoded.skipped} and same_images(test, encoded.images):
        read = torch.tensor([place for place, name in enumerate(test.ids) if name in rows], dtype=torch.int64)
        skipped = {name: why for name, why in encoded.skipped.items() if name in test.ids}
        own = [rows[test.ids[place]] for place in read.tolist()]
        confidence, label = fitted.predict(encoded.table.features[own])
    else:
        values, bad = features_of(test, encoder, folder / "test")
        read = torch.tensor([place for place in range(len(test)) if place not in bad], dtype=torch.int64)
        skipped = {test.ids[place]: why for place, why in bad.items()}
        confidence, label = fitted.predict(values[read])
    found = Evaluation(test.select(read), label, confidence, skipped)
    text = "the fitted classifier, on the test set"
    return Ending(found.confusion, text, found.to_csv(), frozenset({*skipped, *encoded.skipped}))
