"""How long training on photos will take: a few real steps are timed."""

import hashlib
import json
import os
import time
from dataclasses import replace
from pathlib import Path

import torch

from debiaspl.augment import RandAugment, Weak
from debiaspl.data import GivenLabels, ImageSet, NoLabels, Task, Vectors, loaded
from debiaspl.data.listing import list_images
from debiaspl.encoders import Encoder
from debiaspl.encoders.encode import STRONG, WEAK
from debiaspl.models import scale
from debiaspl.photos.check import Check
from debiaspl.photos.survey import Photos
from debiaspl.training import Recipe
from debiaspl.training.frozen import BY_HIDING, FEATURES, is_frozen
from debiaspl.training.step import Step

AROUND = 2.0
"""Seconds to load the encoder and the features and to write a run, on top of its steps."""
FEW = 32
"""Labeled and unlabeled images of the timed steps."""


def estimate(
    recipe: Recipe,
    photos: Photos,
    check: Check,
    device: str,
    encoder: Encoder | None = None,
    eager: bool = False,
    kept: bool = False,
) -> float:
    """The estimated seconds of all runs together; ``kept``: the features of a frozen encoder exist already."""
    runs = 1 + (check.folds if check.all_in_turn else 0)
    batch = recipe.labeled_batch, recipe.unlabeled_batch
    # A run of the baseline sees the labeled images alone.
    baseline = 0.0 if recipe.algorithm.name == "supervised" else batch[0] / (batch[0] + 2 * batch[1])
    if encoder is not None and is_frozen(recipe):
        each = 1 if recipe.strong.name == BY_HIDING else 1 + WEAK + STRONG
        views = len(photos.labels) * each
        task = _vectors(encoder.num_features, len(photos.classes), each)
        graph = 1 if baseline else 0  # the graph model takes as long as the run itself
        fits = runs * (1 + graph + baseline) * recipe.steps * _seconds_a_step(recipe, task, torch.device(device), eager)
        features = 0.0 if kept else views * _seconds_a_view(recipe, encoder)
        return features + fits + (3 if graph else 1) * runs * AROUND
    return runs * (1 + baseline) * recipe.steps * _seconds_a_step(recipe, _few(recipe), torch.device(device), eager)


def mark_of_features(recipe: Recipe, device: str, run: Path) -> Path:
    """A file that exists if a run beside this one has computed the features of these files, by names, sizes and times.
    It is only for the estimate; the features themselves are found by the contents of the photos."""
    root = Path(recipe.data).expanduser()
    facts = [(name, stat.st_size, stat.st_mtime_ns) for name in list_images(root).files if (stat := _stat(root / name))]
    whole = recipe.to_json()
    views = [whole[name] for name in ("image_size", "strong", "flip", "network")]
    told = json.dumps([str(root.resolve()), views, device, facts], sort_keys=True)
    digest = hashlib.sha256(told.encode()).hexdigest()
    return run.resolve().parent / FEATURES / f"{digest}.seen"


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def estimate_start(recipe: Recipe, device: str, eager: bool = False, task: Task | None = None) -> float:
    """The estimated seconds of a start; of photos, or of a ``task`` if given."""
    return recipe.steps * _seconds_a_step(recipe, task or _few(recipe), torch.device(device), eager)


def in_words(seconds: float) -> str:
    if seconds < 90:
        return f"{max(round(seconds / 10) * 10, 10)} seconds"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} minutes"
    return f"{seconds / 3600:.1f} hours"


@torch.inference_mode()
def _seconds_a_view(recipe: Recipe, encoder: Encoder) -> float:
    pictures = torch.zeros((16, 3, recipe.image_size, recipe.image_size), dtype=torch.uint8)
    weak, strong, generator = Weak(), RandAugment.fixmatch(), torch.Generator().manual_seed(0)
    seconds = []
    for _ in range(3):  # the first is slower
        started = time.perf_counter()
        encoder.embed(scale(strong(weak(pictures, generator), generator)))
        seconds.append(time.perf_counter() - started)
    return min(seconds) / len(pictures)


def _vectors(width: int, classes: int, views: int) -> Task:
    """A task like the whole one, of a few vectors."""
    values = torch.randn((512, views, width), generator=torch.Generator().manual_seed(0))
    strong = STRONG if views > 1 else 0
    labels, names = torch.arange(512) % classes, tuple(map(str, range(classes)))
    images = ImageSet(Vectors(values, strong), labels, names)
    return Task(images, images.without_labels(), images)


def _seconds_a_step(recipe: Recipe, task: Task, device: torch.device, eager: bool) -> float:
    """Seconds of a step, without the first few, which prepare things; on a GPU they record, unless ``eager``."""
    step = Step(replace(recipe, steps=max(recipe.steps, 100)), task, device, record=not eager)
    for number in range(3):
        step(number)
    timed = 20 if device.type == "cuda" or task.labeled.is_encoded else 2
    _wait(device)
    started = time.perf_counter()
    for number in range(3, 3 + timed):
        step(number)
    _wait(device)
    return (time.perf_counter() - started) / timed


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def _few(recipe: Recipe) -> Task:
    """A task like the whole one, of a few of its photos."""
    if recipe.protocol.name == "no-labels":
        every = NoLabels().read(recipe.data, recipe.image_size, stream=True)
        return Task.of_unlabeled(loaded(every.select(range(min(2 * FEW, len(every)))))[0])
    protocol = GivenLabels(**{**recipe.protocol.settings, "folds": 0, "fold": 0})
    whole = protocol.read(recipe.data, recipe.image_size, stream=True)
    known, rest = (part.nonzero().flatten() for part in (whole.labels >= 0, whole.labels < 0))
    few, _ = loaded(whole.select(torch.cat((known[:FEW], rest[:FEW]))))
    return Task.of_given(few, protocol, recipe.seed)


def cores(device: str) -> str:
    """The machine, in words."""
    if device != "cpu":
        return "this GPU"
    count = torch.get_num_threads()
    return f"these {count} cores" if count > 1 else "one core"
