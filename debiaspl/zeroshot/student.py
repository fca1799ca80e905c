"""Students: classifiers of a frozen encoder's features, which learn from the teacher's confident labels, or from a few
given ones, and from all other images."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from debiaspl._measures import Cells
from debiaspl.data import UNLABELED, DataError, Hints, ImageSet
from debiaspl.deploy.labeled import PERSON, TEACHER
from debiaspl.encoders import Encoder, load_encoder
from debiaspl.encoders.efficientnet import NAME as LITE0
from debiaspl.features import Fitted, TableTask, fit_recipe
from debiaspl.features.crosscheck import Candidate, crosscheck
from debiaspl.features.run import EncodedImages, frozen, is_frozen, unmeasured
from debiaspl.features.shares import PHOTOS
from debiaspl.models import MODELS
from debiaspl.training import Choice, Recipe
from debiaspl.training.evaluate import Ending
from debiaspl.training.settings import parse_settings
from debiaspl.zeroshot.check import HandedOut
from debiaspl.zeroshot.predictions import Predictions
from debiaspl.zeroshot.teacher import EncodingTeacher, Teacher, lite0_size

HINTED = 0.4
"""Minimum confidence of a zero-shot model beside a few labels, from the authors' scripts; lower than for the initial
labels of a training without any."""
FOLDS = 3
FIXMATCH, DEBIASPL, TAUGHT = "fixmatch", "debiaspl", "taught"
WHOLE = "To train a whole network with the teacher's labels: debiaspl train PHOTOS --labels OUT/labels.csv"
GIVEN = ("data", "protocol", "name", "correction")
"""Settings that every student has already."""


@dataclass(frozen=True)
class Student:
    """Which encoder's features are used, and how they are fitted."""

    name: str = LITE0
    """efficientnet-lite0, a vision model of the hub, or a folder of one."""
    settings: tuple[str, ...] = ()
    """Changes of the recipe, such as ``"steps=500"``; those of the correction are for DebiasPL."""

    def __post_init__(self) -> None:
        if self.name.partition("-")[0] in MODELS:
            raise ValueError(f"the student is {self.name!r}, expected an encoder. {WHOLE} --encoder none.")
        for setting in self.settings:
            if setting.partition("=")[0] in GIVEN:
                raise ValueError(f"--set {setting} would have no effect, as the students decide that. Leave it out.")

    def encoder(self, images: ImageSet, features: Path | None, teacher: Teacher) -> Encoder:
        """Its encoder for these images: that of the teacher, if it is the same. ``features`` as for ``lite0_size``."""
        if isinstance(teacher, EncodingTeacher) and teacher.encoder.source == self.name:
            return teacher.encoder
        return load_encoder(self.name, image_size=lite0_size(images, features) if self.name == LITE0 else None)

    def recipes(
        self, photos: Path, table: Path, images: int, encoder: Encoder, confidence: float | None = None
    ) -> dict[str, Recipe]:
        """The recipe of each student. The first two only differ in the correction. ``table`` has the training labels.
        If they are given ones, a third uses the teacher's label, from this ``confidence`` on, where it is unsure."""
        # A teacher's labels are as many of each class, and say nothing of how many photos there are. Measured in
        # results/zeroshot/made-teachers.json, and beside given labels in verdict.json.
        threshold, optimise = (0.7, PHOTOS) if confidence is None else (0.95, "")
        shared = Recipe(
            "zeroshot",
            data=str(photos),
            image_size=encoder.image_size,
            stream=True,
            protocol=Choice("given", {"table": str(table)}),
            algorithm=Choice("fixmatch", {"threshold": threshold, "joint": False}),
            correction=Choice("debiaser", {"strength": 0.5, "momentum": 0.99}),
            # Labels are first propagated over the graph of the photos: results/zeroshot/verdict.json.
            first_classifier="graph",
            optimise=optimise,
        )
        base = frozen(shared, images, encoder)
        debiaspl = parse_settings(base, self.settings, load_files=True)
        if not is_frozen(debiaspl):
            raise ValueError(f"a student is a classifier of a frozen encoder. {WHOLE} --set frozen=false.")
        recipes = {
            FIXMATCH: replace(debiaspl, name=f"zeroshot-{FIXMATCH}", correction=Choice("none")),
            DEBIASPL: replace(debiaspl, name=f"zeroshot-{DEBIASPL}"),
        }
        if confidence is not None:
            taught = Choice("taught", {**debiaspl.algorithm.settings, "sure": confidence})
            recipes[TAUGHT] = replace(debiaspl, name=f"zeroshot-{TAUGHT}", algorithm=taught)
        return recipes


class Students:
    """Classifiers of one table of features that learn from the same labels."""

    def __init__(self, encoded: EncodedImages, predictions: Predictions, labels: Tensor) -> None:
        """``labels`` are one for each of the teacher's predictions, -1 for none. A class without a label cannot be
        learned, so students do not have it."""
        place = {name: row for row, name in enumerate(predictions.ids)}
        self.predictions = predictions
        self.rows = torch.tensor([place[name] for name in encoded.images.ids])
        given = labels[self.rows]
        self.learned = torch.tensor(sorted(set(given.tolist()) - {UNLABELED}))
        if len(self.learned) < 2:
            raise DataError("fewer than two classes have a readable image with a label. A student needs two or more.")
        number = torch.full((len(predictions.classes) + 1,), UNLABELED)  # the last is that of -1
        number[self.learned] = torch.arange(len(self.learned))
        classes = tuple(predictions.classes[label] for label in self.learned)
        images = ImageSet(encoded.images.images, number[given], classes, encoded.images.ids)
        self.encoded = replace(encoded, images=images)
        hint = number[predictions.label[self.rows]]
        hints = Hints(hint, predictions.confidence[self.rows] * (hint >= 0))
        self.task = TableTask(images.labels, classes, images.ids, hints)
        self.folds = min(FOLDS, sum(count for count in images.counts() if count > 1))

    def fit(self, recipe: Recipe) -> Fitted:
        return fit_recipe(recipe, self.encoded.table, self.task)

    def label(self, fitted: Fitted) -> Tensor:
        """Its label of every image; the teacher's for an image that it could not read."""
        label = self.predictions.label.clone()
        label[self.rows] = self.learned[fitted.predict(self.encoded.table.features)[1]]
        return label

    def crosscheck(self, recipes: Mapping[str, Recipe]) -> list[Candidate]:
        """Check these recipes on the labels."""
        return crosscheck(recipes, self.encoded.table, self.task, self.folds)

    def ending(self, fitted: Fitted, used: HandedOut, own: str, whose: str) -> Ending:
        """Predictions of all images, and how good the student, ``own``, was on labels of a ``person`` that it did not
        learn from. Without such it is counted how often it agrees with its training labels."""
        found, images = unmeasured(self.encoded, fitted), self.encoded.images
        confusion = Cells.of(images.labels, found.label, images.num_classes)
        what = f"the averaged weights after the last step, against the labels of a {whose} that it was trained with"
        check: dict[str, Any] = {"kind": TEACHER if whose == TEACHER else "none", "folds": 0}
        # A teacher may predict classes that the labels do not have.
        rows = {one.name: one for one in used.rows if one.checked and one.confusion.classes == images.num_classes}
        if used.chosen in rows:
            confusion = rows[own].confusion
            what = f"each label was predicted by one of {self.folds} students that did not learn from it"
            candidates = [one.to_json(name == used.chosen) for name, one in rows.items()]
            mistakes = [list(one) for one in rows[own].mistakes]
            check = {"kind": "cross-check", "folds": self.folds, "mistakes": mistakes, "candidates": candidates}
        more: dict[str, Any] = {"check": check | {"labels": confusion.images}}
        if whose == PERSON:
            more["learned_from"] = [images.ids[row] for row in (images.labels >= 0).nonzero().flatten().tolist()]
        return Ending(confusion, what, found.to_csv(), more=more)
