"""How long training on photos will take: a few real steps, or images of the encoder, are timed."""

import time
from dataclasses import replace

import torch

from debiaspl.data import ImageSet, Task
from debiaspl.encoders import Encoder
from debiaspl.encoders.feature_folder import BATCH
from debiaspl.models import scale
from debiaspl.photos.check import Check
from debiaspl.photos.survey import Photos
from debiaspl.training import Recipe
from debiaspl.training.step import Step

IMAGES = 64
"""Random images of the timed steps."""


def estimate(recipe: Recipe, photos: Photos, check: Check, device: str, eager: bool = False) -> float:
    """The estimated seconds of all runs of a network together."""
    runs = 1 + (check.folds if check.all_in_turn else 0)
    batch = recipe.labeled_batch, recipe.unlabeled_batch
    # A run of the baseline sees the labeled images alone.
    baseline = 0.0 if recipe.algorithm.name == "supervised" else batch[0] / (batch[0] + 2 * batch[1])
    # A start may not exist yet, and does not change the time of a step.
    recipe = replace(recipe, start="", first_classifier="random")
    return runs * (1 + baseline) * recipe.steps * _seconds_a_step(recipe, _random(recipe, photos), device, eager)


def estimate_start(recipe: Recipe, device: str, eager: bool = False) -> float:
    """The estimated seconds of features that are learned without labels."""
    return recipe.steps * _seconds_a_step(recipe, _random(recipe), device, eager)


@torch.inference_mode()
def seconds_an_image(encoder: Encoder, side: int) -> float:
    """The seconds in which the encoder computes the features of one image."""
    device = next(encoder.parameters()).device
    pictures = torch.zeros((BATCH[device.type], 3, side, side), dtype=torch.uint8, device=device)
    seconds = []
    for _ in range(2):  # the first is slower
        started = time.perf_counter()
        encoder.embed(scale(pictures)).sum().item()
        seconds.append(time.perf_counter() - started)
    return min(seconds) / len(pictures)


def in_words(seconds: float) -> str:
    if seconds < 90:
        return f"{max(round(seconds / 10) * 10, 10)} seconds"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} minutes"
    return f"{seconds / 3600:.1f} hours"


def _random(recipe: Recipe, photos: Photos | None = None) -> Task:
    """A task like the whole one, of a few random images."""
    side = max(recipe.image_size, 1)
    pixels = torch.randint(256, (IMAGES, 3, side, side), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    classes = () if photos is None else photos.classes
    labels = torch.arange(IMAGES) % len(classes) if classes else torch.full((IMAGES,), -1)
    images = ImageSet(pixels, labels, classes)
    return Task(images, images.without_labels(), images) if classes else Task.of_unlabeled(images)


def _seconds_a_step(recipe: Recipe, task: Task, device: str, eager: bool) -> float:
    """Seconds of a step, without the first few, which prepare things; on a GPU they record, unless ``eager``."""
    step = Step(replace(recipe, steps=max(recipe.steps, 100)), task, torch.device(device), record=not eager)
    for number in range(3):
        step(number)
    timed = 20 if device == "cuda" else 2
    _wait(device)
    started = time.perf_counter()
    for number in range(3, 3 + timed):
        step(number)
    _wait(device)
    return (time.perf_counter() - started) / timed


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def cores(device: str) -> str:
    """The machine, in words."""
    if device != "cpu":
        return "this GPU"
    count = torch.get_num_threads()
    return f"these {count} cores" if count > 1 else "one core"
