"""The whole way, and its honesty: true labels reach the final table and nothing else."""

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import torch

from debiaspl.data import DataError
from debiaspl.files import FileError
from debiaspl.training import RunError
from debiaspl.zeroshot import experiment as experiment_module
from debiaspl.zeroshot.arrays import ArraysTeacher
from debiaspl.zeroshot.experiment import Experiment
from debiaspl.zeroshot.predictions import Predictions
from debiaspl.zeroshot.student import Student
from tests.data.photos import write_labels, write_photos
from tests.test_docs import PAGES
from tests.typed import results_of, rows_of

CLASSES = ("temple", "flower", "nothing")
COUNT = 12
NAMES = [f"{number:02d}.jpg" for number in range(COUNT)]
TRUE = [number % 2 for number in range(COUNT)]
TRUTHS = {"true": TRUE, "scrambled": [(number // 3) % 2 for number in range(COUNT)], "absent": None}


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Loose files: half temples, half flowers; no name or folder tells which."""
    return write_photos(tmp_path / "photos", NAMES)


def write_table(path: Path, labels: list[int], names: Sequence[str] = ()) -> Path:
    return write_labels(path, dict(zip(names or NAMES, (CLASSES[label] for label in labels), strict=False)))


@pytest.fixture
def experiment(photos: Path, encoder: str, tmp_path: Path) -> Experiment:
    """A teacher that is mostly right, sometimes sure, and never speaks of the third class."""
    shares = np.random.default_rng(0).uniform(0.5, 1, COUNT)
    shares[:6] = 0.96
    table = np.stack([np.where(np.arange(COUNT) % 2, 1 - shares, shares), np.zeros(COUNT), np.zeros(COUNT)], 1)
    table[:, 1] = 1 - table[:, 0]
    np.savez(tmp_path / "teacher.npz", probabilities=table)
    student = Student(encoder, settings=("steps=5",))
    return Experiment(photos, CLASSES, ArraysTeacher(tmp_path / "teacher.npz"), ("{}",), 0.95, student)


def outcome(out: Path) -> dict[str, str]:
    """All that training has made, and all that it has learned from: the digest of each file.

    Not the bytes: where CI is set, pytest explains a failed comparison in full, and a diff of weights takes hours.
    """
    files = [path for path in sorted(out.rglob("*")) if path.suffix in (".csv", ".safetensors")]
    assert len(files) == 4
    return {str(path.relative_to(out)): sha256(path.read_bytes()).hexdigest() for path in files}


def test_settings_without_effect_are_refused_and_a_whole_network_is_trained_by_another_command(experiment):
    for setting in ("data=digits", "protocol=long-tail", "correction=none", "name=mine"):
        with pytest.raises(ValueError, match=f"--set {setting} would have no effect"):
            Student(settings=(setting,))
    for name in ("small", "resnet9", "wrn-28-2"):
        with pytest.raises(ValueError, match="debiaspl train"):
            Student(name)
    tuned = replace(experiment, student=Student(experiment.student.name, ("frozen=false",)))
    with pytest.raises(ValueError, match="debiaspl train"):
        tuned.run(experiment.photos.parent / "out")


def test_scrambled_or_absent_truth_gives_the_same_weights_bit_for_bit(experiment, tmp_path):
    runs = []
    for name, labels in TRUTHS.items():
        # One place for all of them: a run writes down where its labels lie.
        experiment.run(tmp_path / "out", None if labels is None else write_table(tmp_path / f"{name}.csv", labels))
        runs.append(outcome(tmp_path / "out"))
        (tmp_path / "out").rename(tmp_path / name)
    assert runs[0] == runs[1] == runs[2]
    rows = {name: results_of(tmp_path / name)["zeroshot"] for name in TRUTHS}
    assert rows["true"]["methods"]["teacher.npz alone"]["accuracy"] == 1  # the final table alone sees it
    assert rows["scrambled"]["methods"]["teacher.npz alone"]["accuracy"] < 1
    assert "accuracy" not in json.dumps(rows["absent"])


def test_a_table_of_truth_inside_the_photos_is_not_read(experiment, photos, tmp_path):
    runs = []
    for name, labels in TRUTHS.items():
        (photos / "labels.csv").unlink(missing_ok=True)
        if labels is not None:
            write_table(photos / "labels.csv", labels)
        experiment.run(tmp_path / "out")
        runs.append(outcome(tmp_path / "out"))
        (tmp_path / "out").rename(tmp_path / name)
    assert runs[0] == runs[1] == runs[2]


def test_what_a_folder_is_called_is_no_label(experiment, tmp_path):
    inner = experiment.photos / "flower"
    inner.mkdir()
    for name in NAMES:
        (experiment.photos / name).rename(inner / name)
    experiment.run(tmp_path / "out")
    assert {row["label"] for row in rows_of(tmp_path / "out" / "labels.csv")} == {"temple", "flower"}


def test_the_folder_that_comes_out(experiment, tmp_path):
    said: list[str] = []
    table = write_table(tmp_path / "some.csv", TRUE[:5])
    rows, _ = experiment.run(tmp_path / "out", evaluate=table, say=said.append)
    assert [row.method for row in rows] == ["teacher.npz alone", "+ FixMatch", "+ DebiasPL"]
    assert [key for key in results_of(tmp_path / "out") if f"`{key}`" not in PAGES["docs/reference/files.md"]] == []
    results = results_of(tmp_path / "out")["zeroshot"]
    assert results["labels"][2] == 0
    assert results["methods"]["+ DebiasPL"]["evaluated"] == 5
    assert sum(results["methods"]["+ DebiasPL"]["counts"]) == COUNT
    assert "nothing 0. A class without a label cannot be learned" in said[0]
    assert (tmp_path / "out" / "table.md").read_text().count("|") == 5 * 6
    assert [row["file_name"] for row in rows_of(tmp_path / "out" / "predictions.csv")] == NAMES


def test_a_stopped_run_goes_on_and_a_full_folder_is_not_overwritten(experiment, tmp_path, monkeypatch):
    whole = tmp_path / "out"
    experiment.run(whole)
    expected = outcome(whole)
    whole.rename(tmp_path / "first")

    def stops(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(experiment_module, "save_fit", stops)
        with pytest.raises(KeyboardInterrupt):
            experiment.run(whole)
    with pytest.raises(RunError, match=r"already contains a run of debiaspl zeroshot"):
        experiment.run(whole)
    experiment.run(whole, resume=True)
    assert outcome(whole) == expected
    with pytest.raises(RunError, match="was started with other labels of its teacher"):
        replace(experiment, confidence=0.5).run(whole, resume=True)
    with pytest.raises(FileError, match=r"labels.csv is needed"):
        replace(experiment, labels=whole / "labels.csv").run(whole, overwrite=True)
    with pytest.raises(ValueError, match="stepz"):
        replace(experiment, student=replace(experiment.student, settings=("stepz=1",))).run(whole, overwrite=True)
    assert outcome(whole) == expected
    (whole / "repeat.json").touch()
    experiment.run(whole, overwrite=True)
    assert outcome(whole) == expected
    assert not (whole / "repeat.json").exists()
    (tmp_path / "hidden" / ".git").mkdir(parents=True)
    experiment.run(tmp_path / "hidden", overwrite=True)  # free but for a hidden folder, which is not ours to remove
    experiment.run(tmp_path / "hidden", overwrite=True)
    assert [path.name for path in (tmp_path / "hidden.old").iterdir()] == [".git"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    with pytest.raises(RunError, match="is not empty and contains no run of debiaspl zeroshot"):
        experiment.run(tmp_path / "mine")


def test_a_slip_in_the_truth_is_told_before_anything_is_written(experiment, tmp_path):
    bad = tmp_path / "bad.csv"
    rows = (("yy.jpg,temple", "yy.jpg"), ("00.jpg,tempel", "tempel"), ("00.jpg,", "no class"), (None, "missing.csv"))
    for row, noun in rows:
        bad.write_text(f"file_name,label\n{row}\n")
        with pytest.raises(DataError, match=noun):
            experiment.run(tmp_path / "out", evaluate=bad if row else tmp_path / "missing.csv")
    assert not (tmp_path / "out").exists()


def test_a_truth_of_more_files_than_there_are_is_used_and_it_is_said(experiment, tmp_path):
    """As of a table of a whole set, for a part of it; a slip in its paths must be seen."""

    class Looking(ArraysTeacher):
        """One that reads the photos."""

        def predict(self, *arguments):
            return super().predict(*arguments)[0], {2: "damaged"}

    experiment = replace(experiment, teacher=Looking(tmp_path / "teacher.npz"))
    table = write_table(tmp_path / "more.csv", [*TRUE, 0, 1], [*NAMES, "zz.jpg", "day/01.jpg"])
    said: list[str] = []
    rows, _ = experiment.run(tmp_path / "out", evaluate=table, say=said.append)
    absent, unread = said[:2]
    assert "are not in" in absent
    assert "zz.jpg, day/01.jpg" in absent
    assert "cannot be read: 02.jpg" in unread
    results = results_of(tmp_path / "out")["zeroshot"]
    assert results["absent from the folder"] == ["zz.jpg", "day/01.jpg"]
    assert rows[0].to_json()["evaluated"] == 11
    assert all(line in (tmp_path / "out" / "table.md").read_text() for line in (absent, unread))

    with pytest.raises(DataError, match=r"02\.jpg"):
        experiment.run(tmp_path / "other", evaluate=write_table(tmp_path / "bad.csv", [0], ["02.jpg"]))
    assert not (tmp_path / "other").exists()


def predictions(shares: list[float]) -> Predictions:
    rows = torch.tensor([[share, 1 - share, 0.0] for share in shares])
    return Predictions(rows, CLASSES, tuple(map(str, range(len(shares)))), "teacher")


def test_a_threshold_loses_classes_that_the_most_confident_of_each_class_keep():
    """A teacher that is right, but never sure of two of six classes."""
    assert predictions([0.96, 0.94, 0.02, 0.95, 0.5]).choose(0.95, 1).tolist() == [0, -1, 1, 0, -1]
    truth = torch.arange(120) % 6
    sure = torch.where(truth < 4, 0.9, 0.5) + torch.rand(120, generator=torch.Generator().manual_seed(0)) / 11
    rows = torch.full((120, 6), 0.0).scatter(1, truth[:, None], sure[:, None])
    rows += ((1 - sure) / 6)[:, None]
    teacher = Predictions(rows, tuple("abcdef"), tuple(map(str, range(120))), "teacher")
    assert set(teacher.choose(0.95, 5).tolist()) == {-1, 0, 1, 2, 3}
    labels = teacher.choose(None, 5)
    assert torch.bincount(labels + 1).tolist() == [90, 5, 5, 5, 5, 5, 5]
    for number in range(6):
        chosen = teacher.confidence[labels == number]
        assert chosen.min() >= teacher.confidence[(truth == number) & (labels < 0)].max()
    assert "cannot be learned" not in teacher.about_labels(labels, None)
    assert torch.equal(teacher.choose(None, 20), truth)
    assert torch.equal(teacher.choose(None, 1000), truth)


def test_a_student_that_loses_a_class_of_its_teacher_is_not_handed_out(photos, encoder, tmp_path):
    shares = np.full((COUNT, 3), 0.01)
    shares[np.arange(COUNT), np.arange(COUNT) % 2] = 0.98
    shares[8:10] = (0.2, 0.2, 0.6)  # of the third class it is never sure
    np.savez(tmp_path / "teacher.npz", probabilities=shares)
    teacher, student = ArraysTeacher(tmp_path / "teacher.npz"), Student(encoder, settings=("steps=5",))
    experiment = Experiment(photos, CLASSES, teacher, ("{}",), 0.95, student)
    _, used = experiment.run(tmp_path / "out")
    assert used.chosen == "teacher.npz alone"
    assert used.why.endswith("nothing")
    assert (tmp_path / "out" / "predictions.csv").read_bytes() == (tmp_path / "out" / "zeroshot.csv").read_bytes()
    results = results_of(tmp_path / "out")["zeroshot"]
    assert results["handed out"] == "teacher.npz alone"
    replace(experiment, confidence=None).run(tmp_path / "kept")
    assert (tmp_path / "kept" / "labels.csv").read_text().count("nothing") == 2


def test_files_of_any_name_go_the_whole_way(experiment, photos, tmp_path):
    odd = [" space.jpg", 'comma, "quote".jpg', "line\nbreak.jpg", "return\rcarriage.jpg", os.fsdecode(b"caf\xe9.jpg")]
    for number, name in enumerate(odd):
        (photos / f"{number:02d}.jpg").rename(photos / name)
    files = sorted(path.name for path in photos.iterdir())
    sure = np.eye(3)[np.arange(COUNT) % 2]
    np.savez(tmp_path / "teacher.npz", probabilities=sure)
    rows, _ = experiment.run(tmp_path / "out")
    assert [len(row.label) for row in rows] == [COUNT] * 3
    assert [row["file_name"] for row in rows_of(tmp_path / "out" / "predictions.csv")] == files
    told = (tmp_path / "out" / "labels.csv").read_bytes().decode()
    assert "caf" not in told  # a table of labels is UTF-8: this one is learned from without a label
    assert '" space.jpg",' in told


def test_too_few_confident_images():
    highest = r"; its highest is 0\.70\."
    for confidence, found in ((0.95, f"no class .*{highest}"), (None, r"only temple\."), (0.65, f"temple .*{highest}")):
        with pytest.raises(DataError, match=found):
            predictions([0.6, 0.7]).choose(confidence, 1)
