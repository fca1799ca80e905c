"""A frozen encoder: the images of a task become vectors once; then the run is like any other."""

from pathlib import Path

import torch

from debiaspl.data import ImageSet, Task, Vectors
from debiaspl.encoders import Encoded, EncoderNetwork, encode
from debiaspl.encoders.cache import CHUNK, is_stored
from debiaspl.encoders.efficientnet import NAME
from debiaspl.encoders.text import refuse_without_text
from debiaspl.training.build import check
from debiaspl.training.errors import Interrupted, RunError
from debiaspl.training.first_classifier import TEXT
from debiaspl.training.group import Group
from debiaspl.training.log import ProgressLine
from debiaspl.training.recipe import Recipe
from debiaspl.training.signals import stop_requests

FEATURES = ".features"
"""Folder beside a run in which features are stored."""
BY_HIDING = "hide"


def is_frozen(recipe: Recipe) -> bool:
    return recipe.network.name == "encoder" and bool(recipe.network.settings.get("frozen"))


def check_frozen(recipe: Recipe, task: Task) -> None:
    """Raise for settings that make no sense with vectors, before anything is computed or written."""
    if recipe.start:
        raise RunError(
            f"start is {recipe.start}, but a frozen encoder keeps its own weights, so the start would not be used. "
            "Leave it out, or train the encoder: --set frozen=false."
        )
    if recipe.first_classifier == TEXT:
        refuse_without_text(str(recipe.network.settings.get("source", NAME)))
    views = 1 if recipe.strong.name == BY_HIDING else 2

    def blank(images: ImageSet) -> ImageSet:
        vectors = Vectors(torch.zeros(len(images), views, 1), views - 1)
        return ImageSet(vectors, images.labels, images.classes, images.ids, images.truth)

    check(recipe, task.with_sets(blank))


def encoded(recipe: Recipe, task: Task, device: torch.device, folder: Path, group: Group, go_on: str) -> Encoded:
    """The task as vectors; features that are already in the folder are not computed again."""
    network = _network(recipe, task).to(device)
    # The same views for every seed, so that they are computed once; everything else depends on the seed.
    change = None if recipe.strong.name == BY_HIDING else recipe.strong.build("strong")
    line = ProgressLine(f"{recipe.name}, features:", 0, len(task.every_image()), unit="image")
    heard = f"Stopping after the next {CHUNK} images. Ctrl-C again stops immediately; --resume continues."
    with line, stop_requests(heard=heard, again=group.count > 1) as stop_requested:

        def watch(done: int, total: int) -> None:
            if group.first:
                line.show(done, {"losses": {}})
            if is_stored(done, total) and (asked := stop_requested()):
                raise Interrupted(
                    f"Stopped; the features of {done:,} of {total:,} images are kept. Resume with: {go_on}", asked
                )

        return encode(task, network, folder, change, recipe.flip, watch, group)


def _network(recipe: Recipe, task: Task) -> EncoderNetwork:
    images = task.labeled
    with torch.random.fork_rng(devices=[]):
        network = recipe.network.build("network", num_classes=images.num_classes, channels=images.channels)
    assert isinstance(network, EncoderNetwork)
    network.load_pretrained()
    return network.eval()
