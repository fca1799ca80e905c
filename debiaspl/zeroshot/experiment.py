"""From a folder without labels to a trained student, and to a table that compares it with its teacher."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from debiaspl._version import __version__
from debiaspl.data import DataError, ImageSet
from debiaspl.data.table_form import USUAL, Columns
from debiaspl.deploy.labeled import PERSON, TEACHER
from debiaspl.deploy.labeled import ZEROSHOT as MARK
from debiaspl.encoders.feature_folder import FEATURES
from debiaspl.files import exists_already, replacing, write_bytes, write_json, write_text
from debiaspl.predictions import read_predictions
from debiaspl.training import Recipe, RunError
from debiaspl.training.loop import RunOptions, train_as
from debiaspl.training.run import OTHER_OUT
from debiaspl.zeroshot import photos as folder_of_photos
from debiaspl.zeroshot.check import ENOUGH_TO_TEST, LabelCheck, against_labels
from debiaspl.zeroshot.folds import check_with_labels, folds
from debiaspl.zeroshot.predictions import Predictions, shown_counts
from debiaspl.zeroshot.student import (
    Student,
    labels_table,
    on_every_image,
    student_images,
    student_task,
    taught_by,
)
from debiaspl.zeroshot.table import Row, columns_told, to_json, to_markdown
from debiaspl.zeroshot.teacher import EncodingTeacher, Progress, Teacher, no_progress
from debiaspl.zeroshot.verdict import CHANCE, TeacherVerdict, judge


@dataclass(frozen=True)
class ZeroShotOutcome:
    """The results of an experiment, in addition to its folder."""

    rows: list[Row]
    """The teacher, then its students."""
    models: list[Path]
    """The runs that are kept, in the order of their rows."""
    model: Path | None
    """The selected run; None if that is the teacher itself."""
    check: LabelCheck | None
    """Results with given labels: how often each model was right on labels that it was not trained with."""


@dataclass(frozen=True)
class Experiment:
    """Everything that determines what is computed; the true labels do not."""

    photos: Path
    classes: tuple[str, ...]
    teacher: Teacher
    templates: tuple[str, ...]
    confidence: float
    """Minimum confidence of a teacher's prediction that becomes a label."""
    student: Student
    labels: Path | None = None
    """A few labels from a person; then the teacher only helps where the student is not confident."""
    columns: Columns = USUAL
    """Names of the columns in tables of labels."""

    def predictions(self, images: ImageSet, progress: Progress = no_progress) -> Predictions:
        """The teacher's predictions for every readable image."""
        probabilities, bad = self.teacher.predict(images, self.classes, self.templates, progress)
        kept = [position for position in range(len(images)) if position not in bad]
        ids = tuple(images.ids[position] for position in kept)
        skipped = {images.ids[position]: reason for position, reason in bad.items()}
        return Predictions(probabilities[kept], self.classes, ids, self.teacher.name, skipped)

    def run(
        self,
        out: Path,
        evaluate: Path | None = None,
        resume: bool = False,
        device: str | None = None,
        say: Callable[[str], None] = lambda line: None,
        progress: Progress = no_progress,
        go_on: str = "run(..., resume=True)",
        overwrite: bool = False,
    ) -> ZeroShotOutcome:
        """Fill the folder ``out`` and return the results. ``say`` is called with what to know before the training.

        ``evaluate`` is a table of true labels. It is checked first, so that an error in it costs no training, and then
        dropped. It is read again when everything else is done and written, only for the table.
        """
        images = folder_of_photos.open_photos(self.photos, self.classes)
        given = self._given_labels()
        truth = None if evaluate is None else self._truth(evaluate)
        side = min(images.images.shape[2:])
        self.student.recipes(self.photos, out / "labels.csv", len(images), side)  # a wrong setting is told first
        check_place(out, resume or overwrite)
        with self._replacing(out, evaluate, overwrite):
            return self._run(out, evaluate, device, say, progress, go_on, (images, given, truth, side))

    def _run(
        self,
        out: Path,
        evaluate: Path | None,
        device: str | None,
        say: Callable[[str], None],
        progress: Progress,
        go_on: str,
        read: tuple[ImageSet, dict[str, int] | None, folder_of_photos.Truth | None, int],
    ) -> ZeroShotOutcome:
        images, given, truth, side = read
        for line in truth.left_out() if truth else ():
            say(line)
        predictions = self.predictions(images, progress)
        for line in truth.unread(predictions.skipped) if truth else ():
            say(line)
        del truth
        verdict = None
        if given is None or len(given) < ENOUGH_TO_TEST:
            verdict = self._verdict(images, predictions)
        if verdict is not None:
            say(verdict.line(self.teacher.name, self.photos, self.classes, given is not None))
        if given is None:
            reliable = verdict is None or verdict.word != CHANCE
            labels = predictions.confident(self.confidence, reliable)
            for line in shown_counts(predictions, self.confidence, reliable):
                say(line)
        else:
            labels = folder_of_photos.as_tensor(given, predictions.ids)
            say(against_labels(self.teacher.name, predictions.label, labels, len(self.classes)))
        recipes = self.student.recipes(self.photos, out / "labels.csv", len(labels), side)
        self._write_teacher(out, predictions, labels)

        places = self._places(out, recipes)
        whose = TEACHER if self.labels is None else PERSON
        # Whether a run exists was already checked with the folder; features are stored once for all students.
        features = out.resolve().parent / FEATURES
        options = RunOptions(True, device, go_on=go_on, end=partial(on_every_image, whose), features=features)
        own = student_images(recipes["DebiasPL"], images, predictions)

        numbers = count(1)
        total = len(places) + (0 if given is None else 2 * len(folds(labels, recipes["DebiasPL"].seed)))

        def trained(recipe: Recipe, place: Path, labels: Tensor, name: str) -> Tensor:
            """The student's label of each image."""
            told = replace(options, part=f"run {next(numbers)} of {total} ({name})")
            train_as(told, recipe, place, student_task(own, labels, predictions))
            return self._labels_of(place, predictions)

        found = {f"{self.teacher.name} alone": predictions.label}
        for method, (recipe, place) in places.items():
            found[method] = trained(recipe, place, labels, method.removeprefix("+ "))
        shown, handed_out = None, list(places)[-1]
        if given is not None:
            two = dict(list(places.items())[-2:])  # FixMatch is only there for comparison
            shown = check_with_labels(out, two, predictions, labels, trained)
            handed_out = shown.decision.method
        model = places[handed_out][1] if handed_out in places else None
        source = out / "zeroshot.csv" if model is None else model / "predictions.csv"
        write_bytes(out / "predictions.csv", source.read_bytes())
        rows = self._finish(out, predictions, found, evaluate, shown, verdict)
        return ZeroShotOutcome(rows, [place for _, place in places.values()], model, shown)

    def _replacing(self, out: Path, evaluate: Path | None, overwrite: bool) -> AbstractContextManager[None]:
        """With ``overwrite``, an earlier zero-shot run is renamed before."""
        given = self.labels, evaluate, self.photos, getattr(self.teacher, "path", None)
        student = (
            self.student.name,
            list(self.student.settings),
            [one.partition("=")[2] for one in self.student.settings],
        )
        return replacing(out, overwrite and (out / MARK).exists(), [given, student])

    def _places(self, out: Path, recipes: dict[str, Recipe]) -> dict[str, tuple[Recipe, Path]]:
        """Recipe and folder of each student, by its name in the table."""
        if self.labels is None:
            return {f"+ {method}": (recipe, out / method.lower()) for method, recipe in recipes.items()}
        found = {f"{method}, labels alone": (recipe, out / method.lower()) for method, recipe in recipes.items()}
        taught = taught_by(recipes["DebiasPL"], self.confidence)
        return found | {f"DebiasPL, labels + {self.teacher.name}": (taught, out / "taught")}

    def _verdict(self, images: ImageSet, predictions: Predictions) -> TeacherVerdict | None:
        """The verdict about the teacher without labels; None for a teacher that does not use the photos."""
        if not isinstance(self.teacher, EncodingTeacher):
            return None
        return judge(self.teacher, images, predictions, self.templates)

    def _given_labels(self) -> dict[str, int] | None:
        if self.labels is None:
            return None
        given = folder_of_photos.read_labels(self.photos, self.labels, self.classes, self.columns)
        if len(set(given.values())) < 2:
            named = self.classes[next(iter(given.values()))]
            raise DataError(f"{self.labels} only labels images of {named!r}. Expected two classes or more.")
        return given

    def _truth(self, table: Path) -> folder_of_photos.Truth:
        return folder_of_photos.read_truth(self.photos, table, self.classes, self.columns)

    def _write_teacher(self, out: Path, predictions: Predictions, labels: Tensor) -> None:
        table = labels_table(predictions, labels)
        # A resumed run must learn from the labels it was started with.
        if (out / "labels.csv").exists() and _text(out / "labels.csv") != table:
            raise RunError(
                f"{out} was started with other labels of its teacher: images, classes or settings have changed since. "
                "Choose another --out."
            )
        whose = TEACHER if self.labels is None else PERSON
        write_text(out / MARK, json.dumps({"debiaspl": __version__, "labels": whose}) + "\n")
        write_text(out / "labels.csv", table)
        write_text(out / "zeroshot.csv", predictions.to_csv())

    def _labels_of(self, place: Path, predictions: Predictions) -> Tensor:
        """The student's label of each image; the teacher's if the student could not read it."""
        found = read_predictions(place / "predictions.csv", classes=self.classes)
        own = dict(zip(found.file_names or (), found.label.tolist(), strict=True))
        pairs = zip(predictions.ids, predictions.label.tolist(), strict=True)
        return torch.tensor([own.get(name, label) for name, label in pairs])

    def _finish(
        self,
        out: Path,
        predictions: Predictions,
        found: dict[str, Tensor],
        evaluate: Path | None,
        shown: LabelCheck | None,
        verdict: TeacherVerdict | None,
    ) -> list[Row]:
        truth, told, notes = None, {} if shown is None else shown.to_json(), [self.teacher.note]
        told |= {} if verdict is None else {"verdict": verdict.to_json()}
        if evaluate is not None:
            known = self._truth(evaluate)
            truth = folder_of_photos.as_tensor(known.labels, predictions.ids)
            told |= {"absent from the folder": list(known.absent)} if known.absent else {}
            notes += [*known.left_out(), *known.unread(predictions.skipped)]
            notes.append(against_labels(self.teacher.name, predictions.label, truth, len(self.classes)))
        rows = [Row(method, label, len(self.classes), truth) for method, label in found.items()]
        tables = [to_markdown(rows), *([] if shown is None else [shown.to_markdown()])]
        write_text(out / "table.md", "\n".join([*tables, columns_told(rows), *notes, ""]))
        write_json(out / "results.json", self._results(predictions, rows) | told)
        return rows

    def _results(self, predictions: Predictions, rows: list[Row]) -> dict[str, Any]:
        return {
            "teacher": self.teacher.name,
            "about the teacher": f"{self.teacher.about} {self.teacher.note}",
            "classes": list(self.classes),
            "templates": list(self.templates),
            "confidence": self.confidence,
            "images": len(predictions),
            "skipped": predictions.skipped,
            "labels": predictions.counts(self.confidence),
            "methods": to_json(rows),
            "versions": {"debiaspl": __version__, "torch": torch.__version__},
        }


def _text(path: Path) -> str:
    """Read a text written by ``write_text``, including file names that are not UTF-8."""
    return path.read_bytes().decode(errors="surrogateescape")


def check_place(out: Path, resume: bool) -> None:
    """Check that ``out`` is free or, with ``resume``, contains an earlier part of the same. Writes nothing."""
    if out.is_file():
        raise RunError(f"{out} is a file, expected a folder or an unused name. Choose another --out.")
    # Hidden files are features that a teacher has computed before its labels turned out to be too few.
    if out.exists() and any(not path.name.startswith(".") for path in out.iterdir()):
        if not (out / MARK).exists():
            raise RunError(f"{out} is not empty and contains no run of debiaspl zeroshot. Choose another --out.")
        if not resume:
            raise RunError(exists_already(out, "a zero-shot run", resume=True, other=OTHER_OUT))
