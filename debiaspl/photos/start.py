"""Features of a folder of photos, learned without labels: which settings are chosen, and what is measured."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from debiaspl.data import Task
from debiaspl.encoders import Encoder
from debiaspl.encoders.text import has_text_side
from debiaspl.models import TrainedNetwork, trained_network
from debiaspl.models.start import first_weights
from debiaspl.photos.check import Check, check_for
from debiaspl.photos.choose import choose, is_large
from debiaspl.photos.run import START, read_photos
from debiaspl.photos.survey import Photos
from debiaspl.recipes.start import LARGEST_SIDE, start_for
from debiaspl.training import Choice, Recipe, Run
from debiaspl.training.evaluate import Ending, Predict, on_the_test_set
from debiaspl.training.loop import RunOptions, train_as
from debiaspl.training.method import with_method
from debiaspl.training.parts import find
from debiaspl.training.settings import parse_settings, split_assignments

AUTOMATIC_FROM = {"cuda": 10_000}
"""With this many photos ``debiaspl train PHOTOS`` learns features first, by kind of device; never on other devices. On
a CPU it would take longer than all the rest. Measured with 10,800 images of EuroSAT: docs/start.md."""


def start_name(folder: Path) -> str:
    """The name of the start of a folder of photos."""
    return f"{folder.resolve().name}-pretrain"


def choose_start(photos: Photos, device: str) -> Recipe:
    """A start for these photos on this machine. Labels are only used at the end, to measure the features: the class
    means of most of them are tested on the others."""
    base = start_for(len(photos.labels), device)
    least = find("network", base.network.name).least_side
    side, check = max(min(photos.side, LARGEST_SIDE.get(device, LARGEST_SIDE["cuda"])), least), _check(photos)
    given: dict[str, Any] = {**photos.protocol, "labeled_also_unlabeled": True}
    given |= {"folds": check.folds, "fold": 0} if check.folds else {}
    return replace(
        base,
        name=start_name(photos.folder),
        about=f"{len(photos.labels):,} photos: features without labels",
        data=str(photos.folder),
        protocol=Choice("given", given) if photos.classes else Choice("no-labels"),
        image_size=side,
        stream=is_large(photos, side),
    )


def train_start(photos: Photos, recipe: Recipe, out: Path, options: RunOptions) -> dict[str, Any]:
    """Train a start into ``out``; returns its results."""
    ended = Run.at(out, recipe, options.resume).results()
    images = None if ended else read_photos(recipe)
    return train_as(replace(options, end=partial(_end, _check(photos))), recipe, out, images)


def starts_by_itself(photos: Photos, device: str) -> bool:
    """Whether there are enough photos without a label to learn features first."""
    return photos.unlabeled > 0 and len(photos.labels) >= AUTOMATIC_FROM.get(device, len(photos.labels) + 1)


def automatic_start(photos: Photos, device: str) -> Recipe:
    """The start that ``debiaspl train PHOTOS`` trains itself. It uses no labels, so that it is the same for all
    folds."""
    return replace(choose_start(photos, device), protocol=Choice("no-labels"))


def choose_with_start(
    photos: Photos,
    device: str,
    encoder: tuple[str, Encoder] | None,
    settings: Sequence[str],
    out: Path | None,
    resume: bool = False,
    method: str | None = None,
) -> tuple[Recipe, Recipe | None]:
    """A recipe for these photos with the user's method and settings, and the start to train for it below ``out``, if
    any. A start that the user names decides the network and the image size, unless these are set too."""
    if encoder is not None and has_text_side(encoder[0]):
        # From few labels, a classifier that begins with the class names is far better than one that does not: Lin et
        # al., Multimodality helps unimodality, 2023. What the user sets comes later, and counts.
        settings = ["first_classifier=text", *settings]

    def of_user(chosen: Recipe) -> Recipe:
        if method is not None:
            name = re.sub(r"[^\w.+-]+", "-", f"{chosen.name}-{method}")
            chosen = replace(with_method(chosen, method, load_files=True), name=name)
        return parse_settings(chosen, settings, load_files=True)

    texts = split_assignments(settings)
    named = texts.get("start")
    if named and encoder is not None:
        raise ValueError(
            f"the network can begin with the encoder {encoder[0]} or with the start {named}, and both are given. "
            "Leave out --encoder, or --set start."
        )
    if named is not None:
        begun = Run(out or Path("runs") / photos.folder.resolve().name) if resume else None
        if not named:
            return of_user(choose(photos, device)), None
        recipe = of_user(choose(photos, device, None, _trained(named, begun)))
        if begun is None or not begun.config_path.exists():
            _refuse_unfit(recipe)
        return recipe, None
    # A frozen encoder is the default on every device; a trained one has settings of its own.
    alone = of_user(choose(photos, device, encoder, frozen=texts.get("frozen", "").lower() not in ("false", "0", "no")))
    if alone.algorithm.name == "supervised" and alone.first_classifier == "graph" and "first_classifier" not in texts:
        alone = replace(alone, first_classifier="random")  # the graph would have looked at the other photos
    learns_labels = find("algorithm", alone.algorithm.name).learns_labels
    if encoder is not None or not learns_labels or not starts_by_itself(photos, device):
        return alone, None
    start = automatic_start(photos, device)
    trained = TrainedNetwork(start.network.name, start.network.settings, 3, start.image_size)
    recipe = of_user(choose(photos, device, None, trained))
    recipe = replace(recipe, start=str((out or Path("runs") / recipe.name) / START))
    # The user may have set another network, or what images look like.
    same = {name: getattr(recipe, name) for name in ("network", "image_size", "stream", "flip", "seed")}
    return recipe, replace(start, **same)


def _trained(start: str, begun: Run | None) -> TrainedNetwork | None:
    """The network of a start. If its folder is gone, a run that is resumed uses its own network."""
    try:
        return trained_network(start)
    except ValueError:
        if begun is None or not begun.config_path.exists():
            raise
        recipe = begun.recipe()
        return TrainedNetwork(recipe.network.name, recipe.network.settings, 3, recipe.image_size)


def _refuse_unfit(recipe: Recipe) -> None:
    """Raise where the start has trained another network, before a run folder is begun."""
    with torch.random.fork_rng(devices=[]):
        network = recipe.network.build("network", num_classes=2, channels=3)
    first_weights(recipe.start, network.state_dict())


def _check(photos: Photos) -> Check:
    return check_for(photos) if photos.classes else Check(0, False, 0)


def _end(check: Check, predict: Predict, task: Task) -> Ending:
    found = on_the_test_set(predict, task)
    if not check.folds:
        return found
    more = {"check": {"kind": "held-out", "folds": check.folds, "labels": len(task.test)}}
    return replace(found, evaluated="the averaged weights after the last step, on held-out labels", more=more)
