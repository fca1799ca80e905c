"""From a folder without labels to a trained student, and to a table that compares it with its teacher."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from debiaspl._measures import Cells
from debiaspl._over_seeds import markdown
from debiaspl._version import __version__
from debiaspl.data import ImageSet
from debiaspl.data.label_table import USUAL, Columns
from debiaspl.data.text import csv_line, is_utf8
from debiaspl.deploy.labeled import PERSON, TEACHER, ZEROSHOT as MARK
from debiaspl.encoders.feature_folder import FEATURES
from debiaspl.features.run import encode_images, save_fit
from debiaspl.files import replacing, write_json, write_text
from debiaspl.training import Run, RunError
from debiaspl.training.process import find_device
from debiaspl.training.run import check_place
from debiaspl.zeroshot.check import (
    ENOUGH_TO_TEST,
    GivenTable,
    HandedOut,
    against_labels,
    check_with_labels,
    check_without_labels,
)
from debiaspl.zeroshot.predictions import HEADER, PER_CLASS, Predictions, Row, class_counts, column_notes
from debiaspl.zeroshot.student import DEBIASPL, FIXMATCH, HINTED, TAUGHT, Student, Students
from debiaspl.zeroshot.teacher import EncodingTeacher, Progress, Teacher, no_progress, open_photos, sized
from debiaspl.zeroshot.verdict import CHANCE, TeacherVerdict, judge


@dataclass(frozen=True)
class Experiment:
    """Everything that determines what is computed; the true labels do not."""

    photos: Path
    classes: tuple[str, ...]
    teacher: Teacher
    templates: tuple[str, ...]
    confidence: float | None
    """Minimum confidence of a teacher's prediction that becomes a label; None: the most confident ones of each class
    that it predicts or, beside given labels, ``HINTED``."""
    student: Student
    labels: Path | None = None
    """A few labels from a person; then the teacher only helps where the student is not confident."""
    columns: Columns = USUAL
    features: Path | None = None
    """Where features are kept; by default beside the folder."""
    images: ImageSet | None = None
    per_class: int = PER_CLASS
    """How many of the most confident predictions of each predicted class become labels."""

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
    ) -> tuple[list[Row], HandedOut]:
        """Fill the folder ``out``; returns the rows of its table, the teacher's first, and who is used. ``say`` is
        called with what to know before the training. ``evaluate`` is a table of true labels: it is checked first, so
        that an error in it costs no training, and used when everything else is written, only for the table."""
        images = self.images or open_photos(self.photos, self.classes)
        where = self.photos, self.classes, self.columns
        given = None if self.labels is None else GivenTable.read(self.labels, *where)
        truth = None if evaluate is None else GivenTable.read(evaluate, *where, given.labels if given else ())
        kept = self.features or out.resolve().parent / FEATURES
        encoder = self.student.encoder(images, self.features, self.teacher).to(find_device(device))
        # A wrong setting is told first.
        hinted = None if given is None else self._least
        recipes = self.student.recipes(self.photos, out / "labels.csv", len(images), encoder, hinted)
        check_place(out, MARK, "run of debiaspl zeroshot", resume or overwrite)
        settings = [setting.partition("=")[2] for setting in self.student.settings]
        inputs = [self.labels, evaluate, self.photos, getattr(self.teacher, "path", None), self.student.name, *settings]
        with replacing(out, overwrite and (out / MARK).exists(), inputs):
            predictions = self.predictions(images, progress)
            for line in truth.notes(predictions.skipped) if truth else ():
                say(line)
            verdict, labels = self._labels(images, predictions, given, say)
            self._write_teacher(out, predictions, labels)
            readable = [row for row, name in enumerate(images.ids) if name not in predictions.skipped]
            own = sized(images.select(readable), encoder, kept)
            encoded = encode_images(own, encoder, kept, "zeroshot", go_on)
            students = Students(encoded, predictions, labels)
            names = {FIXMATCH: "+ FixMatch", DEBIASPL: "+ DebiasPL"}
            if given is not None:
                names = {FIXMATCH: "FixMatch, labels alone", DEBIASPL: "DebiasPL, labels alone"}
                names[TAUGHT] = f"DebiasPL, labels + {self.teacher.name}"
            methods = {method: recipes[name] for name, method in names.items()}
            fits = {method: students.fit(recipe) for method, recipe in methods.items()}
            found = {f"{self.teacher.name} alone": predictions.label}
            found |= {method: students.label(fitted) for method, fitted in fits.items()}
            if given is None:
                at_chance = verdict is not None and verdict.word == CHANCE
                used = check_without_labels(predictions, names[DEBIASPL], found[names[DEBIASPL]], at_chance)
            else:
                candidates = students.crosscheck({names[name]: recipes[name] for name in (DEBIASPL, TAUGHT)})
                used = check_with_labels(predictions, labels, *candidates)
            chosen = used.chosen if used.chosen in methods else list(methods)[-1]
            run = Run(out)
            run.config_path.unlink(missing_ok=True)  # an earlier one is replaced, with all results
            with run.begin(methods[chosen]):
                ending = students.ending(fits[chosen], used, chosen, TEACHER if given is None else PERSON)
                save_fit(run, methods[chosen], students.encoded, fits[chosen], ending)
            if used.chosen != chosen:
                write_text(out / "predictions.csv", predictions.to_csv())
            return self._finish(out, predictions, labels, found, truth, used, verdict), used

    def predictions(self, images: ImageSet, progress: Progress = no_progress) -> Predictions:
        """The teacher's predictions for every readable image."""
        probabilities, bad = self.teacher.predict(images, self.classes, self.templates, progress)
        kept = [position for position in range(len(images)) if position not in bad]
        ids = tuple(images.ids[position] for position in kept)
        skipped = {images.ids[position]: reason for position, reason in bad.items()}
        return Predictions(probabilities[kept], self.classes, ids, self.teacher.name, skipped)

    def _labels(
        self, images: ImageSet, predictions: Predictions, given: GivenTable | None, say: Callable[[str], None]
    ) -> tuple[TeacherVerdict | None, Tensor]:
        """The verdict about a teacher that uses the photos, unless labels test it; and the training labels."""
        verdict = None
        if isinstance(self.teacher, EncodingTeacher) and (given is None or len(given.labels) < ENOUGH_TO_TEST):
            verdict = judge(self.teacher, images, predictions, self.templates)
        if verdict is not None:
            say(verdict.line(self.teacher.name))
        if given is not None:
            labels = given.of(predictions.ids)
            if unlearned := predictions.unlearned(labels):
                say(f"{unlearned} Label photos of each.")
            say(against_labels(self.teacher.name, Cells.of(labels, predictions.label, len(self.classes))))
            return verdict, labels
        labels = predictions.choose(self.confidence, self.per_class)
        say(predictions.about_labels(labels, self.confidence))
        return verdict, labels

    def _write_teacher(self, out: Path, predictions: Predictions, labels: Tensor) -> None:
        """Write the teacher's predictions, and ``labels.csv`` for people: in UTF-8, without names that are not."""
        pairs = zip(predictions.ids, labels.tolist(), strict=True)
        named = [(name, self.classes[label]) for name, label in pairs if label >= 0 and is_utf8(name)]
        table = "file_name,label\n" + "".join(map(csv_line, named))
        # A resumed run must learn from the labels it was started with.
        if (out / "labels.csv").exists() and (out / "labels.csv").read_bytes() != table.encode():
            what = "labels of its teacher: images, classes or settings have changed since"
            raise RunError(f"{out} was started with other {what}. Choose another --out.")
        whose = TEACHER if self.labels is None else PERSON
        write_text(out / MARK, json.dumps({"debiaspl": __version__, "labels": whose}) + "\n")
        write_text(out / "labels.csv", table)
        write_text(out / "zeroshot.csv", predictions.to_csv())

    def _finish(
        self,
        out: Path,
        predictions: Predictions,
        labels: Tensor,
        found: dict[str, Tensor],
        truth: GivenTable | None,
        used: HandedOut,
        verdict: TeacherVerdict | None,
    ) -> list[Row]:
        """Write the table, and complete the results of the run."""
        true = None if truth is None else truth.of(predictions.ids)
        learned = None if self.labels is None else labels
        rows = [Row(method, label, len(self.classes), true, learned) for method, label in found.items()]
        results: dict[str, Any] = {
            "teacher": self.teacher.name,
            "about the teacher": self.teacher.about,
            "classes": list(self.classes),
            "templates": list(self.templates),
            **({"per_class": self.per_class} if self._least is None else {"confidence": self._least}),
            "images": len(predictions),
            "skipped": predictions.skipped,
            "labels": class_counts(labels[labels >= 0], len(self.classes)),
            "methods": {row.method: row.to_json() for row in rows},
            "versions": {"debiaspl": __version__, "torch": torch.__version__},
            **used.to_json(),
        }
        notes = [column_notes(rows), f"The teacher is {self.teacher.about}"]
        if verdict is not None:
            results["verdict"] = verdict.to_json()
        if truth is not None:
            notes += [*truth.notes(predictions.skipped), against_labels(self.teacher.name, rows[0].confusion)]
            if truth.absent:
                results["absent from the folder"] = list(truth.absent)
        tables = [markdown([HEADER, *(row.cells() for row in rows)]), used.to_markdown()]
        write_text(out / "table.md", "\n".join([*tables, *notes, ""]))
        run = json.loads((out / "results.json").read_text())
        write_json(out / "results.json", run | {"zeroshot": results})
        return rows

    @property
    def _least(self) -> float | None:
        """The lowest confidence of a teacher's label that is used."""
        return HINTED if self.labels is not None and self.confidence is None else self.confidence
