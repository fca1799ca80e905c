"""From a folder without labels to a trained student, and to a table that compares it with its teacher."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from debiaspl._version import __version__
from debiaspl.data import DataError, ImageSet
from debiaspl.data.csv_text import cell
from debiaspl.data.table_form import USUAL, Columns
from debiaspl.deploy.labeled import PERSON, TEACHER
from debiaspl.deploy.labeled import ZEROSHOT as MARK
from debiaspl.encoders.feature_folder import FEATURES
from debiaspl.files import exists_already, replacing, write_json, write_text
from debiaspl.training import RunError
from debiaspl.training.device import find_device
from debiaspl.training.loop import RunOptions
from debiaspl.training.run import OTHER_OUT
from debiaspl.zeroshot import photos as folder_of_photos
from debiaspl.zeroshot.check import ENOUGH_TO_TEST, FOLDS, LabelCheck, against_labels, check_with_labels
from debiaspl.zeroshot.predictions import Predictions, count_lines
from debiaspl.zeroshot.student import DEBIASPL, FIXMATCH, TAUGHT, FrozenStudents, Student, Students, TrainedStudents
from debiaspl.zeroshot.table import HEADER, Row, column_notes, markdown
from debiaspl.zeroshot.teacher import EncodingTeacher, Progress, Teacher, no_progress
from debiaspl.zeroshot.verdict import CHANCE, TeacherVerdict, judge

Say = Callable[[str], None]


@dataclass(frozen=True)
class ZeroShotOutcome:
    """The results of an experiment, in addition to its folder."""

    rows: list[Row]
    """The teacher, then its students."""
    model: Path
    """The run of the selected student; of the one that was taught, if the teacher's own predictions are used."""
    runs: list[Path]
    """All runs that are kept."""
    check: LabelCheck | None
    """Results with given labels: how often each model was right on labels that it was not trained with."""

    @property
    def teacher_is_used(self) -> bool:
        return self.check is not None and self.check.chosen == self.rows[0].method


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
    images: ImageSet | None = None
    """The photos, if they are opened already."""

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

        ``evaluate`` is a table of true labels. It is checked first, so that an error in it costs no training, and then
        dropped. It is read again when everything else is done and written, only for the table.
        """
        images = self.images or folder_of_photos.open_photos(self.photos, self.classes)
        given = self._given_labels()
        truth = None if evaluate is None else self._truth(evaluate)
        side, table = min(images.images.shape[2:]), out / "labels.csv"
        encoder = self.student.encoder(side, self.teacher)
        # A wrong setting is told first.
        recipes = self.student.recipes(self.photos, table, len(images), side, encoder, self.confidence)
        check_place(out, resume or overwrite)
        for line in truth.left_out() if truth else ():
            say(line)
        with replacing(out, overwrite and (out / MARK).exists(), self._inputs(evaluate)):
            predictions = self.predictions(images, progress)
            for line in truth.unread(predictions.skipped) if truth else ():
                say(line)
            del truth
            verdict, labels = self._labels(images, predictions, given, say)
            self._write_teacher(out, predictions, labels)
            whose = TEACHER if given is None else PERSON
            students: Students
            if self.student.is_frozen:
                assert encoder is not None
                features = out.resolve().parent / FEATURES
                own = encoder.to(find_device(device))
                students = FrozenStudents(out, own, images, predictions, whose, features, progress)
            else:
                options, total = RunOptions(True, device, go_on=go_on), 2 if given is None else 3 + 2 * FOLDS
                students = TrainedStudents(out, recipes[DEBIASPL], images, predictions, whose, options, total)
            names = {FIXMATCH: "+ FixMatch", DEBIASPL: "+ DebiasPL"}
            if given is not None:
                names = {FIXMATCH: "FixMatch, labels alone", DEBIASPL: "DebiasPL, labels alone"}
                names[TAUGHT] = f"DebiasPL, labels + {self.teacher.name}"
            found = {f"{self.teacher.name} alone": predictions.label}
            found |= {names[name]: students.train(name, recipes[name], labels) for name in names}
            checked, chosen = None, list(names)[-1]
            if given is not None:
                two = {names[name]: partial(students.train_fold, name, recipes[name]) for name in (DEBIASPL, TAUGHT)}
                checked = check_with_labels(two, predictions, labels, recipes[DEBIASPL].seed)
                chosen = next((name for name in names if names[name] == checked.chosen), TAUGHT)
            model = students.finish(chosen)
            own_labels = checked is not None and checked.chosen not in names.values()
            source = out / "zeroshot.csv" if own_labels else model / "predictions.csv"
            write_text(out / "predictions.csv", _text(source))
            rows = self._finish(out, model, predictions, found, evaluate, checked, verdict)
            return ZeroShotOutcome(rows, model, students.runs, checked)

    def predictions(self, images: ImageSet, progress: Progress = no_progress) -> Predictions:
        """The teacher's predictions for every readable image."""
        probabilities, bad = self.teacher.predict(images, self.classes, self.templates, progress)
        kept = [position for position in range(len(images)) if position not in bad]
        ids = tuple(images.ids[position] for position in kept)
        skipped = {images.ids[position]: reason for position, reason in bad.items()}
        return Predictions(probabilities[kept], self.classes, ids, self.teacher.name, skipped)

    def _labels(
        self, images: ImageSet, predictions: Predictions, given: dict[str, int] | None, say: Say
    ) -> tuple[TeacherVerdict | None, Tensor]:
        """The verdict about the teacher, unless there are labels to test it or it does not use the photos; and the
        training labels."""
        verdict = None
        if isinstance(self.teacher, EncodingTeacher) and (given is None or len(given) < ENOUGH_TO_TEST):
            verdict = judge(self.teacher, images, predictions, self.templates)
        if verdict is not None:
            say(verdict.line(self.teacher.name, self.photos, self.classes, given is not None))
        if given is not None:
            labels = folder_of_photos.as_tensor(given, predictions.ids)
            say(against_labels(self.teacher.name, predictions.label, labels, len(self.classes)))
            return verdict, labels
        reliable = verdict is None or verdict.word != CHANCE
        labels = predictions.confident(self.confidence, reliable)
        for line in count_lines(predictions, self.confidence, reliable):
            say(line)
        return verdict, labels

    def _inputs(self, evaluate: Path | None) -> list[Any]:
        """Files that are needed, which must not lie in a folder that is overwritten."""
        settings = [setting.partition("=")[2] for setting in self.student.settings]
        return [self.labels, evaluate, self.photos, getattr(self.teacher, "path", None), self.student.name, *settings]

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

    def _finish(
        self,
        out: Path,
        model: Path,
        predictions: Predictions,
        found: dict[str, Tensor],
        evaluate: Path | None,
        checked: LabelCheck | None,
        verdict: TeacherVerdict | None,
    ) -> list[Row]:
        truth, results, notes = None, {} if checked is None else checked.to_json(), [self.teacher.note]
        results |= {} if verdict is None else {"verdict": verdict.to_json()}
        if evaluate is not None:
            known = self._truth(evaluate)
            truth = folder_of_photos.as_tensor(known.labels, predictions.ids)
            results |= {"absent from the folder": list(known.absent)} if known.absent else {}
            notes += [*known.left_out(), *known.unread(predictions.skipped)]
            notes.append(against_labels(self.teacher.name, predictions.label, truth, len(self.classes)))
        rows = [Row(method, label, len(self.classes), truth) for method, label in found.items()]
        tables = [
            markdown(HEADER, [row.cells() for row in rows]),
            *([] if checked is None else [checked.to_markdown()]),
        ]
        write_text(out / "table.md", "\n".join([*tables, column_notes(rows), *notes, ""]))
        # With a frozen encoder the folder is a run, whose results are completed here.
        run = json.loads((out / "results.json").read_text()) if model == out else {}
        write_json(out / "results.json", run | {"zeroshot": self._results(predictions, rows) | results})
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
            "methods": {row.method: row.to_json() for row in rows},
            "versions": {"debiaspl": __version__, "torch": torch.__version__},
        }


def labels_table(predictions: Predictions, labels: Tensor) -> str:
    """``file_name,label`` of the student's training labels, for people to read. It is UTF-8, without images whose names
    are not."""
    lines = ["file_name,label"]
    for name, label in zip(predictions.ids, labels.tolist(), strict=True):
        if label >= 0 and not any("\ud800" <= letter <= "\udfff" for letter in name):
            lines.append(f"{cell(name)},{cell(predictions.classes[label])}")
    return "".join(f"{line}\n" for line in lines)


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
