"""The student: trained with the teacher's confident labels and all other images, as a normal run."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from debiaspl.data import UNLABELED, DataError, Hints, ImageSet, Task, loaded
from debiaspl.data.csv_text import cell
from debiaspl.deploy.labeled import TEACHER
from debiaspl.encoders import load_encoder
from debiaspl.encoders.efficientnet import NAME as LITE0
from debiaspl.models import MODELS
from debiaspl.recipes.frozen import frozen
from debiaspl.training import Choice, Recipe
from debiaspl.training.results import Ending, Predict
from debiaspl.training.settings import parse_settings
from debiaspl.zeroshot.photos import lite0_size, sized
from debiaspl.zeroshot.predictions import Predictions, labels_csv

HINTED = 0.4
"""Minimum confidence of a zero-shot model beside a few labels, from the authors' scripts; lower than for the initial
labels of a training without any."""

GIVEN = {
    "data": "a student learns from the photos",
    "protocol": "its labels are those of the teacher, or of --labels",
    "name": "the students have names of their own",
    "correction": "there is one student without a correction and one with the Debiaser",
}
"""Settings that are no choice, and why."""


@dataclass(frozen=True)
class Student:
    """Which network is trained, and how."""

    name: str = LITE0
    """``small``, ``wrn-28-2`` or ``resnet9``, trained from random weights; or an encoder: efficientnet-lite0, a vision
    model of the hub, or a folder of one."""
    fine_tune: bool = False
    """Train the encoder too, with EMAN; otherwise it is frozen, and its features are computed once."""
    steps: int | None = None
    """Training steps; by default chosen from the number of images."""
    image_size: int = 0
    """Side of its images; 0: chosen automatically."""
    threshold: float = 0.95
    """Pseudo-labels less confident than this are not used."""
    strength: float = 0.5
    """How much of the bias DebiasPL removes."""
    momentum: float = 0.99
    """Momentum of the prior's moving average."""
    seed: int = 0
    settings: tuple[str, ...] = ()
    """Further changes of the recipe, such as ``"learning_rate=0.01"``; those of the correction are for DebiasPL."""

    def __post_init__(self) -> None:
        if self.name.startswith("wrn-") and not re.fullmatch(r"wrn(-\d+){1,2}", self.name):
            raise ValueError(f"the student is {self.name!r}, expected wrn-DEPTH-WIDTH, such as wrn-28-2.")
        for setting in self.settings:
            name = setting.partition("=")[0]
            if name in GIVEN:
                raise ValueError(f"--set {setting} would have no effect: {GIVEN[name]}. Leave it out.")

    @property
    def is_encoder(self) -> bool:
        return self.name not in ("small", "resnet9", "wrn") and not self.name.startswith("wrn-")

    @property
    def is_frozen(self) -> bool:
        return self.is_encoder and not self.fine_tune

    def recipes(self, photos: Path, table: Path, images: int, side: int) -> dict[str, Recipe]:
        """A recipe for each method; they only differ in the correction. ``side`` is that of the photos, and ``table``
        contains the training labels."""
        size, network = self._network(side)
        shared = Recipe(
            "zeroshot",
            data=str(photos),
            image_size=size,
            stream=self.is_encoder,
            protocol=Choice("given", {"table": str(table)}),
            network=network,
            algorithm=Choice("fixmatch", {"threshold": self.threshold, "joint": False}),
            seed=self.seed,
        )
        shared = replace(self._scheduled(shared, images), correction=self._debiaser())
        changed = parse_settings(shared, self.settings, load_files=True)
        if changed.steps != shared.steps and not any(one.startswith("log_every") for one in self.settings):
            changed = replace(changed, log_every=max(changed.steps // 20, 1))
        return {
            "FixMatch": replace(changed, name="zeroshot-fixmatch", correction=Choice("none")),
            "DebiasPL": replace(changed, name="zeroshot-debiaspl"),
        }

    def _debiaser(self) -> Choice:
        return Choice("debiaser", {"strength": self.strength, "momentum": self.momentum})

    def _network(self, side: int) -> tuple[int, Choice]:
        if not self.is_encoder:
            name, *sizes = self.name.split("-")
            # EMAN's statistics lag twice; with a norm momentum of 0.001 they would lag too far.
            settings: dict[str, Any] = {"norm_momentum": 0.1} if name == "wrn" else {}
            settings |= {key: int(value) for key, value in zip(("depth", "width"), sizes, strict=False)}
            return self.image_size or max(min(side, 64), MODELS[name].least_side), Choice(name, settings)
        encoder = load_encoder(self.name, weights=False, image_size=lite0_size(side) if self.name == LITE0 else None)
        settings = {"source": self.name, "architecture": encoder.architecture, "frozen": not self.fine_tune}
        return self.image_size or encoder.image_size, Choice("encoder", settings)

    def _scheduled(self, recipe: Recipe, images: int) -> Recipe:
        if self.is_frozen:
            settings = recipe.network.settings
            recipe = frozen(recipe, images, settings["source"], settings["architecture"])
            steps = self.steps or recipe.steps
            # Labels are first propagated over the graph of the photos: results/zeroshot/verdict.json.
            return replace(recipe, steps=steps, log_every=max(steps // 20, 1), first_classifier="graph")
        steps = self.steps or (2**14 if torch.cuda.is_available() else 1000)
        recipe = replace(recipe, steps=steps, average_statistics=True, teacher="average", log_every=max(steps // 20, 1))
        if self.fine_tune:
            return replace(recipe, learning_rate=0.003, weight_decay=1e-4, unlabeled_batch=320)
        return recipe


def taught_by(recipe: Recipe, confidence: float) -> Recipe:
    """The same recipe for a student that uses the teacher's label, with at least this confidence, where it is itself
    not confident."""
    settings = {**recipe.algorithm.settings, "sure": confidence}
    return replace(recipe, name=f"{recipe.name}-taught", algorithm=Choice("taught", settings))


def student_images(recipe: Recipe, images: ImageSet, predictions: Predictions) -> ImageSet:
    """The images that the teacher could read, in the size of this recipe's network."""
    read = set(predictions.ids)
    own = sized(images.select([number for number, name in enumerate(images.ids) if name in read]), recipe.image_size)
    return own if recipe.stream else loaded(own)[0]


def student_task(own: ImageSet, labels: Tensor, predictions: Predictions) -> Task:
    """The task of a student: these images, its training labels, and the teacher's predictions for the others.

    ``labels`` has one entry for each of the teacher's predictions, -1 for none. A class without a label cannot be
    learned, so the student does not have it.
    """
    place = {name: number for number, name in enumerate(predictions.ids)}
    told = labels[[place[name] for name in own.ids]]
    learned = sorted(set(told.tolist()) - {UNLABELED})
    if len(learned) < 2:
        raise DataError("fewer than two classes have a readable image with a label. A student needs two or more.")
    number = torch.full((len(predictions.classes) + 1,), UNLABELED)  # the last is that of -1
    number[learned] = torch.arange(len(learned))
    classes = tuple(predictions.classes[label] for label in learned)
    task = Task.of_given(ImageSet(own.images, number[told], classes, own.ids))
    hinted = [place[name] for name in task.unlabeled.ids]
    label = number[predictions.label[hinted]]
    return replace(task, hints=Hints(label, predictions.confidence[hinted] * (label >= 0)))


def labels_table(predictions: Predictions, labels: Tensor) -> str:
    """``file_name,label`` of the student's training labels, for people to read. It is UTF-8, without images whose names
    are not."""
    lines = ["file_name,label"]
    for name, label in zip(predictions.ids, labels.tolist(), strict=True):
        if label >= 0 and not any("\ud800" <= letter <= "\udfff" for letter in name):
            lines.append(f"{cell(name)},{cell(predictions.classes[label])}")
    return "".join(f"{line}\n" for line in lines)


def on_every_image(whose: str, predict: Predict, task: Task) -> Ending:
    """Predictions of all images. The true labels are not known: what is counted is how often the student agrees with
    its training labels, those of its ``teacher`` or of a ``person``."""
    found = predict(task.every_image())
    given, classes = found.images.labels.cpu(), found.images.num_classes
    own = given >= 0
    cells = torch.bincount(given[own] * classes + found.label[own], minlength=classes**2)
    rows = zip(found.images.ids, found.label.tolist(), found.confidence.tolist(), strict=True)
    text = labels_csv((name, found.images.classes[label], confidence) for name, label, confidence in rows)
    taught = whose == TEACHER
    what = "the labels of its teacher, which are not the truth" if taught else "the labels it was trained with"
    return Ending(
        cells.reshape(classes, classes).tolist(),
        f"the averaged weights after the last step, against {what}",
        text,
        frozenset(found.skipped),
        {"check": {"kind": whose if taught else "none", "folds": 0, "labels": int(own.sum())}},
    )
