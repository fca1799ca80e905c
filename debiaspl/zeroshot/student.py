"""Students: trained with the teacher's confident labels, or with a few given ones, and all other images.

With a frozen encoder they are classifiers of one table of features, fitted in memory, and the selected one becomes a
run folder. Networks that learn their features, and fine-tuned encoders, are a run each.
"""

import re
import shutil
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from debiaspl.data import UNLABELED, DataError, Hints, ImageSet, Task, loaded
from debiaspl.deploy.labeled import TEACHER
from debiaspl.encoders import Encoder, features_of, load_encoder
from debiaspl.encoders.efficientnet import NAME as LITE0
from debiaspl.features import FeatureTable, Fitted, fit_recipe
from debiaspl.features.saved import save_fit
from debiaspl.models import MODELS
from debiaspl.predictions import read_predictions
from debiaspl.recipes.frozen import frozen
from debiaspl.training import Choice, Recipe
from debiaspl.training.evaluate import Evaluation
from debiaspl.training.loop import RunOptions, train_as
from debiaspl.training.results import Ending, Predict
from debiaspl.training.run import Run
from debiaspl.training.settings import parse_settings
from debiaspl.zeroshot.photos import lite0_size, sized
from debiaspl.zeroshot.predictions import Predictions, labels_csv
from debiaspl.zeroshot.teacher import EncodingTeacher, Progress, Teacher

HINTED = 0.4
"""Minimum confidence of a zero-shot model beside a few labels, from the authors' scripts; lower than for the initial
labels of a training without any."""
FIXMATCH, DEBIASPL, TAUGHT = "fixmatch", "debiaspl", "taught"
"""Names of the students, and of their run folders."""
CHECKS = "check"
"""Folder of the runs that are checked with given labels."""
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
    settings: tuple[str, ...] = ()
    """Changes of the recipe, such as ``"steps=500"``; those of the correction are for DebiasPL."""

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

    def encoder(self, side: int, teacher: Teacher) -> Encoder | None:
        """Its encoder: that of the teacher, if it is the same; None for a network that is trained from random weights.
        ``side`` is that of the photos."""
        if not self.is_encoder:
            return None
        size = lite0_size(side) if self.name == LITE0 else None
        if self.is_frozen and isinstance(teacher, EncodingTeacher) and teacher.source == self.name:
            return teacher.encoder
        return load_encoder(self.name, weights=self.is_frozen, image_size=size)

    def recipes(
        self, photos: Path, table: Path, images: int, side: int, encoder: Encoder | None, confidence: float
    ) -> dict[str, Recipe]:
        """The recipe of each student. The first two only differ in the correction; the third uses the teacher's label,
        with at least this confidence, where it is itself not confident. ``table`` contains the training labels."""
        size, network = self._network(side, encoder)
        shared = Recipe(
            "zeroshot",
            data=str(photos),
            image_size=size,
            stream=self.is_encoder,
            protocol=Choice("given", {"table": str(table)}),
            network=network,
            algorithm=Choice("fixmatch", {"threshold": 0.95, "joint": False}),
            correction=Choice("debiaser", {"strength": 0.5, "momentum": 0.99}),
        )
        debiaspl = parse_settings(self._scheduled(shared, images), self.settings, load_files=True)
        taught = Choice("taught", {**debiaspl.algorithm.settings, "sure": confidence})
        return {
            FIXMATCH: replace(debiaspl, name=f"zeroshot-{FIXMATCH}", correction=Choice("none")),
            DEBIASPL: replace(debiaspl, name=f"zeroshot-{DEBIASPL}"),
            TAUGHT: replace(debiaspl, name=f"zeroshot-{TAUGHT}", algorithm=taught),
        }

    def _network(self, side: int, encoder: Encoder | None) -> tuple[int, Choice]:
        if encoder is not None:
            settings = {"source": self.name, "architecture": encoder.architecture, "frozen": not self.fine_tune}
            return encoder.image_size, Choice("encoder", settings)
        name, *sizes = self.name.split("-")
        # EMAN's statistics lag twice; with a norm momentum of 0.001 they would lag too far.
        settings = {"norm_momentum": 0.1} if name == "wrn" else {}
        settings |= {key: int(value) for key, value in zip(("depth", "width"), sizes, strict=False)}
        return max(min(side, 64), MODELS[name].least_side), Choice(name, settings)

    def _scheduled(self, recipe: Recipe, images: int) -> Recipe:
        if self.is_frozen:
            settings = recipe.network.settings
            recipe = frozen(recipe, images, settings["source"], settings["architecture"])
            # Labels are first propagated over the graph of the photos: results/zeroshot/verdict.json.
            hide = Choice("hide")  # strong views are made from the features
            return replace(recipe, strong=hide, flip=False, first_classifier="graph")
        steps = 2**14 if torch.cuda.is_available() else 1000
        recipe = replace(recipe, steps=steps, average_statistics=True, teacher="average", log_every=steps // 20)
        if self.fine_tune:
            return replace(recipe, learning_rate=0.003, weight_decay=1e-4, unlabeled_batch=320)
        return recipe


class Students(Protocol):
    """Trains students of the same images, one after the other. Each returns its label of every image; the teacher's for
    an image that it could not read."""

    runs: list[Path]
    """Run folders, one or several."""

    def train(self, name: str, recipe: Recipe, labels: Tensor) -> Tensor:
        """Train with these labels."""

    def train_fold(self, name: str, recipe: Recipe, fold: int, labels: Tensor) -> Tensor:
        """The same for a check, of which no model is kept."""

    def finish(self, name: str) -> Path:
        """The run folder of the student that is selected."""


class FrozenStudents:
    """Classifiers of the features of one encoder, fitted in memory."""

    def __init__(
        self,
        out: Path,
        encoder: Encoder,
        images: ImageSet,
        predictions: Predictions,
        whose: str,
        features: Path,
        progress: Progress,
    ) -> None:
        self.out, self.encoder, self.predictions, self.whose = out, encoder, predictions, whose
        self.runs = [out]
        own = sized(_readable(images, predictions), encoder.image_size)
        values, skipped = features_of(own, encoder, features, partial(progress, f"{encoder.name} looks"))
        self.skipped = frozenset(own.ids[position] for position in skipped)
        self.rows = torch.tensor([position for position in range(len(own)) if position not in skipped])
        self.images, self.values = own.select(self.rows), values[self.rows]
        self.table = FeatureTable(self.values, unit=True, device=next(encoder.parameters()).device)
        self.trained: dict[str, tuple[Recipe, Fitted, ImageSet]] = {}

    def train(self, name: str, recipe: Recipe, labels: Tensor) -> Tensor:
        images, hints = learnable(self.images, labels[self.rows], self.predictions, self.rows)
        fitted = fit_recipe(recipe, self.table, images.labels, images.classes, images.ids, hints)
        self.trained[name] = recipe, fitted, images
        label = self.predictions.label.clone()
        numbers = torch.tensor([self.predictions.classes.index(one) for one in images.classes])
        label[self.rows] = numbers[fitted.probabilities(self.values).argmax(-1)]
        return label

    def train_fold(self, name: str, recipe: Recipe, fold: int, labels: Tensor) -> Tensor:
        return self.train(f"{name}-fold{fold}", recipe, labels)

    def finish(self, name: str) -> Path:
        recipe, fitted, images = self.trained[name]
        confidence, label = fitted.probabilities(self.values).max(-1)
        found = Evaluation(images, label, confidence, dict.fromkeys(self.skipped, ""))
        run = Run(self.out)
        run.config_path.unlink(missing_ok=True)  # an earlier one is replaced, with all results
        with run.begin(recipe):
            save_fit(run, recipe, fitted, self.encoder, images, ending_of(self.whose, found))
        return self.out


class TrainedStudents:
    """Networks that are trained on the images, each in a run folder; ``total`` of them, for the progress line."""

    def __init__(
        self,
        out: Path,
        recipe: Recipe,
        images: ImageSet,
        predictions: Predictions,
        whose: str,
        options: RunOptions,
        total: int,
    ) -> None:
        def end(predict: Predict, task: Task) -> Ending:
            return ending_of(whose, predict(task.every_image()))

        self.out, self.predictions, self.options = out, predictions, replace(options, end=end)
        self.runs: list[Path] = []
        self.begun, self.total = 0, total
        own = sized(_readable(images, predictions), recipe.image_size)
        self.images = own if recipe.stream else loaded(own)[0]
        place = {name: number for number, name in enumerate(predictions.ids)}
        self.rows = torch.tensor([place[name] for name in self.images.ids])

    def train(self, name: str, recipe: Recipe, labels: Tensor) -> Tensor:
        self.runs.append(self.out / name)
        return self._train(self.out / name, recipe, labels)

    def train_fold(self, name: str, recipe: Recipe, fold: int, labels: Tensor) -> Tensor:
        folder = self.out / CHECKS / f"{name}-fold{fold}"
        label = self._train(folder, replace(recipe, name=f"{recipe.name}-fold{fold}"), labels)
        # Models of folds are not needed, and may be large.
        (folder / "model.safetensors").unlink(missing_ok=True)
        shutil.rmtree(folder / "checkpoint", ignore_errors=True)
        return label

    def _train(self, folder: Path, recipe: Recipe, labels: Tensor) -> Tensor:
        images, hints = learnable(self.images, labels[self.rows], self.predictions, self.rows)
        task = Task.of_given(images)
        place = {name: number for number, name in enumerate(images.ids)}
        rows = torch.tensor([place[name] for name in task.unlabeled.ids])
        task = replace(task, hints=Hints(hints.label[rows], hints.confidence[rows]))
        self.begun += 1
        part = f"run {self.begun} of {self.total} ({folder.name})"
        train_as(replace(self.options, part=part), recipe, folder, task)
        found = read_predictions(folder / "predictions.csv", classes=self.predictions.classes)
        own = dict(zip(found.file_names or (), found.label.tolist(), strict=True))
        pairs = zip(self.predictions.ids, self.predictions.label.tolist(), strict=True)
        return torch.tensor([own.get(file, label) for file, label in pairs])

    def finish(self, name: str) -> Path:
        return self.out / name


def _readable(images: ImageSet, predictions: Predictions) -> ImageSet:
    """The images that the teacher could read."""
    read = set(predictions.ids)
    return images.select([number for number, name in enumerate(images.ids) if name in read])


def learnable(images: ImageSet, labels: Tensor, predictions: Predictions, rows: Tensor) -> tuple[ImageSet, Hints]:
    """The images with the training labels, and the teacher's predictions for them, which are these ``rows``. A class
    without a label cannot be learned, so the student does not have it."""
    learned = sorted(set(labels.tolist()) - {UNLABELED})
    if len(learned) < 2:
        raise DataError("fewer than two classes have a readable image with a label. A student needs two or more.")
    number = torch.full((len(predictions.classes) + 1,), UNLABELED)  # the last is that of -1
    number[learned] = torch.arange(len(learned))
    classes = tuple(predictions.classes[label] for label in learned)
    label = number[predictions.label[rows]]
    hints = Hints(label, predictions.confidence[rows] * (label >= 0))
    return ImageSet(images.images, number[labels], classes, images.ids), hints


def ending_of(whose: str, found: Evaluation) -> Ending:
    """Predictions of all images. The true labels are not known: what is counted is how often the student agrees with
    its training labels, those of its ``teacher`` or of a ``person``."""
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
