"""From a folder without labels to a trained student, and to a table that compares it with its teacher."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from debiaspl._measures import Cells
from debiaspl._version import __version__
from debiaspl.data import DataError, ImageSet
from debiaspl.data.label_table import USUAL, Columns
from debiaspl.data.text import csv_line, is_utf8
from debiaspl.deploy.labeled import PERSON, TEACHER, ZEROSHOT as MARK
from debiaspl.encoders.feature_folder import FEATURES
from debiaspl.features.run import encode_images, save_fit
from debiaspl.files import exists_already, replacing, write_json, write_text
from debiaspl.training import Run, RunError
from debiaspl.training.process import find_device
from debiaspl.zeroshot.check import (
    ENOUGH_TO_TEST,
    GivenTable,
    HandedOut,
    against_labels,
    check_with_labels,
    check_without_labels,
)
from debiaspl.zeroshot.predictions import HEADER, PER_CLASS, Predictions, Row, class_counts, column_notes, markdown
from debiaspl.zeroshot.student import DEBIASPL, FIXMATCH, HINTED, TAUGHT, Student, Students
from debiaspl.zeroshot.teacher import EncodingTeacher, Progress, Teacher, no_progress, open_photos, sized
from debiaspl.zeroshot.verdict import CHANCE, TeacherVerdict, judge

Say = Callable[[str], None]


@dataclass(frozen=True)
class ZeroShotOutcome:
    """The results of an experiment, in addition to its folder."""

    rows: list[Row]
    """The teacher, then its students."""
    used: HandedOut

    @property
    def teacher_is_used(self) -> bool:
        return self.used.chosen == self.rows[0].method


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
        say: Say = lambda line: None,
        progress: Progress = no_progress,
        go_on: str = "run(..., resume=True)",
        overwrite: bool = False,
    ) -> ZeroShotOutcome:
        """Fill the folder ``out`` and return the results. ``say`` is called with what to know before the training.
        ``evaluate`` is a table of true labels: checked first, so that an error in it costs no training, then dropped,
        and read again when everything else is written, only for the table."""
        images = self.images or open_photos(self.photos, self.classes)
        given = self._given_labels()
        truth = None if evaluate is None else self._truth(evaluate)
        encoder = self.student.encoder(min(images.images.shape[2:]), self.teacher).to(find_device(device))
        # A wrong setting is told first.
        recipes = self.student.recipes(self.photos, out / "labels.csv", len(images), encoder, self._hinted)
        check_place(out, resume or overwrite)
        with replacing(out, overwrite and (out / MARK).exists(), self._inputs(evaluate)):
            predictions = self.predictions(images, progress)
            for line in truth.notes(predictions.skipped) if truth else ():
                say(line)
            del truth
            verdict, labels = self._labels(images, predictions, given, say)
            self._write_teacher(out, predictions, labels)
            readable = [row for row, name in enumerate(images.ids) if name not in predictions.skipped]
            own = sized(images.select(readable), encoder.image_size)
            encoded = encode_images(own, encoder, self.features or out.resolve().parent / FEATURES, "zeroshot", go_on)
            students = Students(encoded, predictions, labels)
            names = {FIXMATCH: "+ FixMatch", DEBIASPL: "+ DebiasPL"}
            if given is not None:
                names = {FIXMATCH: "FixMatch, labels alone", DEBIASPL: "DebiasPL, labels alone"}
                names[TAUGHT] = f"DebiasPL, labels + {self.teacher.name}"
            fits = {name: students.fit(recipes[name]) for name in names}
            found = {f"{self.teacher.name} alone": predictions.label}
            found |= {names[name]: students.label(fitted) for name, fitted in fits.items()}
            if given is None:
                at_chance = verdict is not None and verdict.word == CHANCE
                used = check_without_labels(predictions, names[DEBIASPL], found[names[DEBIASPL]], at_chance)
            else:
                candidates = students.crosscheck({names[name]: recipes[name] for name in (DEBIASPL, TAUGHT)})
                used = check_with_labels(predictions, labels, *candidates)
            chosen = next((name for name in names if names[name] == used.chosen), list(names)[-1])
            run = Run(out)
            run.config_path.unlink(missing_ok=True)  # an earlier one is replaced, with all results
            with run.begin(recipes[chosen]):
                ending = students.ending(fits[chosen], TEACHER if given is None else PERSON)
                save_fit(run, recipes[chosen], students.encoded, fits[chosen], ending)
            if used.chosen not in names.values():
                write_text(out / "predictions.csv", predictions.to_csv())
            return ZeroShotOutcome(self._finish(out, predictions, labels, found, evaluate, used, verdict), used)

    def predictions(self, images: ImageSet, progress: Progress = no_progress) -> Predictions:
        """The teacher's predictions for every readable image."""
        probabilities, bad = self.teacher.predict(images, self.classes, self.templates, progress)
        kept = [position for position in range(len(images)) if position not in bad]
        ids = tuple(images.ids[position] for position in kept)
        skipped = {images.ids[position]: reason for position, reason in bad.items()}
        return Predictions(probabilities[kept], self.classes, ids, self.teacher.name, skipped)

    def _labels(
        self, images: ImageSet, predictions: Predictions, given: GivenTable | None, say: Say
    ) -> tuple[TeacherVerdict | None, Tensor]:
        """The verdict about a teacher that uses the photos, unless labels test it; and the training labels."""
        verdict = None
        if isinstance(self.teacher, EncodingTeacher) and (given is None or len(given.labels) < ENOUGH_TO_TEST):
            verdict = judge(self.teacher, images, predictions, self.templates)
        if verdict is not None:
            say(verdict.line(self.teacher.name, self.photos, self.classes, given is not None))
        if given is not None:
            labels = given.of(predictions.ids)
            say(against_labels(self.teacher.name, Cells.of(labels, predictions.label, len(self.classes))))
            return verdict, labels
        labels = predictions.choose(self.confidence, self.per_class)
        for line in predictions.label_lines(labels, self.confidence):
            say(line)
        return verdict, labels

    def _inputs(self, evaluate: Path | None) -> list[Any]:
        """Files that are needed, which must not lie in a folder that is overwritten."""
        settings = [setting.partition("=")[2] for setting in self.student.settings]
        return [self.labels, evaluate, self.photos, getattr(self.teacher, "path", None), self.student.name, *settings]

    def _given_labels(self) -> GivenTable | None:
        if self.labels is None:
            return None
        given = GivenTable.read(self.photos, self.labels, self.classes, self.columns)
        if len(set(given.labels.values())) < 2:
            named = self.classes[next(iter(given.labels.values()))]
            raise DataError(f"{self.labels} only labels images of {named!r}. Expected two classes or more.")
        return given

    def _truth(self, table: Path) -> GivenTable:
        return GivenTable.read(self.photos, table, self.classes, self.columns, whole=False)

    def _write_teacher(self, out: Path, predictions: Predictions, labels: Tensor) -> None:
        table = labels_table(predictions, labels)
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
        evaluate: Path | None,
        used: HandedOut,
        verdict: TeacherVerdict | None,
    ) -> list[Row]:
        """Write the table, and complete the results of the run."""
        truth, results, notes = None, used.to_json(), [self.teacher.note]
        results |= {} if verdict is None else {"verdict": verdict.to_json()}
        if evaluate is not None:
            known = self._truth(evaluate)
            truth = known.of(predictions.ids)
            results |= {"absent from the folder": list(known.absent)} if known.absent else {}
            notes += known.notes(predictions.skipped)
            notes.append(against_labels(self.teacher.name, Cells.of(truth, predictions.label, len(self.classes))))
        rows = [Row(method, label, len(self.classes), truth) for method, label in found.items()]
        tables = [markdown(HEADER, [row.cells() for row in rows]), used.to_markdown()]
        write_text(out / "table.md", "\n".join([*tables, column_notes(rows), *notes, ""]))
        run = json.loads((out / "results.json").read_text())
        write_json(out / "results.json", run | {"zeroshot": self._results(predictions, labels, rows) | results})
        return rows

    @property
    def _hinted(self) -> float | None:
        """The lowest confidence of a teacher's label beside given ones, if there are any."""
        if self.labels is None:
            return None
        return HINTED if self.confidence is None else self.confidence

    def _results(self, predictions: Predictions, labels: Tensor, rows: list[Row]) -> dict[str, Any]:
        chosen = {"per_class": self.per_class} if self.confidence is None else {"confidence": self.confidence}
        return {
            "teacher": self.teacher.name,
            "about the teacher": f"{self.teacher.about} {self.teacher.note}",
            "classes": list(self.classes),
            "templates": list(self.templates),
            **(chosen if self.labels is None else {"confidence": self._hinted}),
            "images": len(predictions),
            "skipped": predictions.skipped,
            "labels": class_counts(labels[labels >= 0], len(self.classes)),
            "methods": {row.method: row.to_json() for row in rows},
            "versions": {"debiaspl": __version__, "torch": torch.__version__},
        }


def labels_table(predictions: Predictions, labels: Tensor) -> str:
    """``file_name,label`` of the students' training labels, for people; in UTF-8, without names that are not."""
    pairs = zip(predictions.ids, labels.tolist(), strict=True)
    named = [(name, predictions.classes[label]) for name, label in pairs if label >= 0 and is_utf8(name)]
    return "file_name,label\n" + "".join(map(csv_line, named))


def check_place(out: Path, resume: bool) -> None:
    """Check that ``out`` is free or, with ``resume``, contains an earlier part of the same. Writes nothing."""
    if out.is_file():
        raise RunError(f"{out} is a file, expected a folder or an unused name. Choose another --out.")
    # Hidden files are features that a teacher has computed before its labels turned out to be too few.
    if out.exists() and any(not path.name.startswith(".") for path in out.iterdir()):
        if not (out / MARK).exists():
            raise RunError(f"{out} is not empty and contains no run of debiaspl zeroshot. Choose another --out.")
        if not resume:
            raise RunError(exists_already(out, "a zero-shot run"))
