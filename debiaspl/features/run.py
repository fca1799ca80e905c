"""A frozen encoder on images: each is encoded once, a table of features is fitted, and a run folder is written."""

import time
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from debiaspl.data import ImageSet, Task
from debiaspl.data.lazy import without_bad
from debiaspl.encoders import Encoder, EncoderNetwork, features_of, load_encoder
from debiaspl.encoders.efficientnet import NAME
from debiaspl.encoders.feature_folder import FEATURES
from debiaspl.encoders.text import text_side
from debiaspl.features.fit import LINEAR, Begin, Fitted, TableTask, enough_steps, fit_recipe
from debiaspl.features.table import CHUNK, FeatureTable
from debiaspl.training.build import check
from debiaspl.training.classifier import COOP, NAMED, TEXT, named_classifier, text_head
from debiaspl.training.evaluate import Ending, Evaluation, about, basic_results, timing
from debiaspl.training.log import ProgressLine
from debiaspl.training.process import Interrupted, RunError, stop_requests
from debiaspl.training.recipe import Choice, Recipe
from debiaspl.training.run import Run
from debiaspl.training.tasks import task_of

HIDE = "hide"


@dataclass(frozen=True, eq=False)
class EncodedImages:
    """The images that could be read, with their features."""

    encoder: Encoder
    images: ImageSet
    table: FeatureTable
    skipped: dict[str, str]
    """Files that could not be read, with the reason."""

    def model(self, fitted: Fitted) -> EncoderNetwork:
        """The fit as a network for images."""
        return EncoderNetwork.of(self.encoder, fitted.network)


def frozen(base: Recipe, images: int, encoder: Encoder) -> Recipe:
    """``base`` on top of this encoder. A linear classifier of fixed features is less confident than a network that
    learns its features: choose a threshold below 0.95."""
    names = ("strong", "flip", "unlabeled_batch", "learning_rate", "arc", "weight_decay", "average_decay")
    same: dict[str, Any] = {name: getattr(LINEAR, name) for name in names}
    settings = {"source": encoder.source, "architecture": encoder.architecture, "frozen": True}
    return replace(base, network=Choice("encoder", settings), steps=enough_steps(images), **same)


def is_frozen(recipe: Recipe) -> bool:
    return recipe.network.name == "encoder" and bool(recipe.network.settings.get("frozen"))


def refuse_for_frozen(recipe: Recipe, images: ImageSet) -> None:
    """Raise for what would have no effect, or cannot work, with a frozen encoder; nothing is computed."""
    if recipe.start:
        what = f"start is {recipe.start}, but a frozen encoder keeps its own weights"
        raise RunError(f"{what}. Leave it out, or train the encoder: --set frozen=false.")
    if recipe.strong.name != HIDE:
        what = f"strong is {recipe.strong.name}, but a frozen encoder sees each image once, as it is"
        raise ValueError(f"{what}. Use strong=hide, or train the encoder: --set frozen=false.")
    if recipe.validation or recipe.evaluate_every:
        name = "validation" if recipe.validation else "evaluate_every"
        raise ValueError(f"{name} is {getattr(recipe, name)}, but the labels are cross-checked. Use {name}=0.")
    if recipe.first_classifier in NAMED:
        text_side(str(recipe.network.settings["source"]), learned=recipe.first_classifier == COOP)
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
    kept, bad = without_bad(images, skipped)
    if bad:
        read = torch.tensor([number for number in range(len(images)) if number not in skipped])
        # In place: a copy might not fit in memory.
        for rows, part in zip(torch.split(values[: len(read)], CHUNK), torch.split(read, CHUNK), strict=True):
            rows.copy_(values[part])
        values = values[: len(read)]
    return EncodedImages(encoder, kept, FeatureTable(values, unit=True, device=torch.device("cpu")), bad)


def class_name_weights(recipe: Recipe, encoded: EncodedImages) -> Begin | None:
    """What makes the first classifier from the class names and the labels, if the recipe begins with it."""
    if recipe.first_classifier not in NAMED:
        return None
    features, scaling, classes = encoded.table.features, encoded.table.scaling, encoded.images.classes
    parts = torch.split(features, CHUNK)
    centred, length = (
        sum(float((part - origin).norm(dim=-1).sum()) for part in parts) / len(features) for origin in (scaling.mean, 0)
    )
    source = str(recipe.network.settings["source"])
    fixed = text_side(source).classifier(classes) if recipe.first_classifier == TEXT else None

    @lru_cache(1)  # the methods of a fold have the same labels
    def begin(labels: Tensor) -> dict[str, Tensor]:
        known = (labels >= 0).nonzero().flatten()
        text = fixed or named_classifier(recipe, classes, lambda: (features[known], labels[known]))
        weight, bias = text_head(text, scaling.mean, centred / float(scaling.gain), length)
        return {"head.weight": weight, "head.bias": bias}

    return begin


def unmeasured(encoded: EncodedImages, fitted: Fitted) -> Evaluation:
    """Predictions of every image, without labels: where it was learned from, a prediction is not a measurement."""
    confidence, label = fitted.predict(encoded.table.features)
    none = torch.full_like(encoded.images.labels, -1)
    return Evaluation(replace(encoded.images, labels=none, truth=none), label, confidence)


def save_fit(run: Run, recipe: Recipe, encoded: EncodedImages, fitted: Fitted, ending: Ending) -> dict[str, Any]:
    """Write the model, ``predictions.csv`` and ``results.json``, and return the results. The run has begun."""
    images, network = encoded.images, encoded.model(fitted)
    unlabeled = int((images.labels < 0).sum())
    results = basic_results(recipe, "frozen encoder", ending, images.counts(), unlabeled) | fitted.facts | ending.more
    if skipped := {*ending.skipped, *encoded.skipped}:
        results["skipped"] = sorted(skipped)
    facts = about(recipe, images)
    if (shares := results.get("shares")) is not None:
        known = {name: shares[name] for name in ("estimate", "error", "weight", "counts", "optimise")}
        known["temperature"] = fitted.temperature
        facts["shares"] = known
    run.finish(network.state_dict(), facts, ending.predictions, results)
    return results


def train_encoded(
    recipe: Recipe,
    out: Path,
    resume: bool = False,
    resume_command: str = "the same call with resume=True",
    features: Path | None = None,
    encoder: Encoder | None = None,
) -> dict[str, Any]:
    """``train`` for a recipe with a frozen encoder, on data with a test set: a run folder, whose results are returned.
    ``features`` is the folder where they are kept, by default beside the run; ``encoder`` has its weights already."""
    run, began = Run.at(out, recipe, resume), time.monotonic()
    if (ended := run.results()) is not None:
        return ended
    data = task_of(replace(recipe, stream=True))
    images = data.every_image()
    refuse_for_frozen(recipe, images)
    settings, kept = recipe.network.settings, features or out.resolve().parent / FEATURES
    size = settings["architecture"]["image_size"] if "architecture" in settings else None
    encoder = encoder or load_encoder(settings.get("source", NAME), image_size=size)
    with run.begin(recipe):
        encoded = encode_images(images, encoder, kept, recipe.name, resume_command)
        images = encoded.images
        task = TableTask(images.labels, images.classes, images.ids, begin=class_name_weights(recipe, encoded))
        fitted = fit_recipe(recipe, encoded.table, task)
        ending = _on_the_test_set(data.test, encoded, fitted, kept)
        took = {"timing": timing(time.monotonic() - began, torch.device("cpu"))}
        return save_fit(run, recipe, encoded, fitted, replace(ending, more=took))


def _on_the_test_set(test: ImageSet, encoded: EncodedImages, fitted: Fitted, features: Path) -> Ending:
    values, bad = features_of(test, encoded.encoder, features)
    skipped = {test.ids[number]: why for number, why in bad.items()}
    read = [place for place in range(len(test)) if place not in bad]
    confidence, label = fitted.predict(values[read])
    found = Evaluation(test.select(read), label, confidence, skipped)
    return Ending(found.confusion, "the fitted classifier, on the test set", found.to_csv(), frozenset(skipped))
