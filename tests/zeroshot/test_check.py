"""What is handed out: with ``--labels`` the model that the labels support, also where the teacher is wrong."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from debiaspl._measures import Cells
from debiaspl.data import DataError
from debiaspl.features.crosscheck import Candidate
from debiaspl.report.runs import read_run
from debiaspl.report.runs.photos import photo_values
from debiaspl.zeroshot.arrays import ArraysTeacher
from debiaspl.zeroshot.check import against_labels, decide, is_clear
from debiaspl.zeroshot.experiment import Experiment
from debiaspl.zeroshot.student import Student
from tests.data.photos import write_labels, write_photos

COUNT = 12
CLASSES = ("temple", "flower")


@pytest.fixture
def wrong(encoder: str, tmp_path: Path) -> Experiment:
    """Twelve photos, ten of them labeled, and a teacher that is sure of each and right on two."""
    names = [f"{number:02d}.jpg" for number in range(COUNT)]
    photos = write_photos(tmp_path / "photos", names)
    few = write_labels(tmp_path / "few.csv", {name: CLASSES[number % 2] for number, name in enumerate(names[:-2])})
    said = (np.arange(COUNT) + (np.arange(COUNT) >= 2)) % 2
    np.savez(tmp_path / "teacher.npz", probabilities=np.eye(2)[said])
    student, teacher = Student(encoder, ("steps=20",)), ArraysTeacher(tmp_path / "teacher.npz")
    return Experiment(photos, CLASSES, teacher, ("{}",), 0.4, student, few)


def test_a_wrong_teacher_is_not_handed_out_and_the_table_says_so(wrong, tmp_path):
    out, said = tmp_path / "out", []
    _, used = wrong.run(out, say=said.append, device="cpu")
    assert "teacher.npz is right on 2 of 10 true labels (20 %, 95 % interval 6 to 51). A random guess is" in said[0]
    assert used.chosen == "DebiasPL, labels alone"
    results = json.loads((out / "results.json").read_text())
    check, checked = results["check"], results["zeroshot"]["checked"]
    assert (check["kind"], check["folds"], check["labels"]) == ("cross-check", 3, 10)
    assert {one["name"]: sum(row[n] for n, row in enumerate(one["confusion"])) for one in check["candidates"]} == (
        checked["right"]
    )
    assert results["accuracy"] == checked["right"]["DebiasPL, labels alone"] / 10
    assert len(results["learned_from"]) == 10
    values = photo_values(read_run(out), list(CLASSES))
    assert [one["name"] for one in values["models"] if one["used"]] == ["DebiasPL, labels alone"]
    assert values["why"] == f"Used because {used.why}."
    assert results["zeroshot"]["handed out"] == "DebiasPL, labels alone"
    assert (checked["labels"], checked["right"]["teacher.npz alone"]) == (10, 2)
    assert checked["right"]["DebiasPL, labels alone"] > 5


def test_the_teachers_own_predictions_are_handed_out_where_labels_support_them(wrong, tmp_path, monkeypatch):
    monkeypatch.setattr("debiaspl.zeroshot.check.decide", lambda teacher, *others: (teacher.name, "it is better"))
    rows, used = wrong.run(tmp_path / "out", device="cpu")
    assert used.chosen == rows[0].method
    assert (tmp_path / "out" / "predictions.csv").read_bytes() == (tmp_path / "out" / "zeroshot.csv").read_bytes()


def test_photos_whose_label_is_given_measure_no_student(wrong, tmp_path):
    truth = write_labels(tmp_path / "truth.csv", {f"{number:02d}.jpg": CLASSES[number % 2] for number in range(COUNT)})
    rows, _ = wrong.run(tmp_path / "out", truth, device="cpu")
    assert {row.to_json()["evaluated"] for row in rows} == {2}
    assert {row.to_json()["distance_from"] for row in rows} == {"true shares"}
    few, said = write_labels(tmp_path / "one.csv", {"00.jpg": "temple", "01.jpg": "flower"}), list[str]()
    np.savez(tmp_path / "three.npz", probabilities=np.eye(3)[np.arange(COUNT) % 2])
    teacher = ArraysTeacher(tmp_path / "three.npz")
    _, used = replace(wrong, labels=few, classes=(*CLASSES, "nothing"), teacher=teacher).run(
        tmp_path / "one", say=said.append, device="cpu"
    )
    assert said[0] == "A class without a label cannot be learned: nothing. Label photos of each."
    assert used.rows == (), "nothing was checked"
    with pytest.raises(DataError, match=r"no class of photos without one in --labels"):
        wrong.run(tmp_path / "other", tmp_path / "few.csv", device="cpu")


def candidate(name: str, marks: str) -> Candidate:
    right = frozenset(str(place) for place, mark in enumerate(marks) if mark == "1")
    return Candidate(name, Cells.of_dense([[len(right), len(marks) - len(right)], [0, 0]]), right)


@pytest.mark.parametrize(
    ("teacher", "alone", "taught", "clear", "handed_out", "why"),
    [
        # The teacher is right on 8 of 35, and its student far worse than the one of the labels.
        ("1" * 8 + "0" * 27, "1" * 24 + "0" * 11, "1" * 13 + "0" * 22, False, "alone", "not clearly above chance"),
        ("1" * 8 + "0" * 2, "1" * 2 + "0" * 8, "1" * 9 + "0", False, "taught", "significantly better than 'alone'"),
        ("1111111100", "1111100000", "1111111000", True, "taught", "at least as often"),
        ("1111111100", "1111111000", "1111110000", True, "alone", "right more often than 'taught'"),
        # CIFAR-10, first draw of results/zeroshot/verdict.json: a tie, and the taught student is far worse elsewhere.
        ("1111110000", "1111111000", "1111111000", True, "alone", "right less often than the student without it"),
        ("1111111111", "1000000000", "1000000000", True, "T", "significantly better than 'taught'"),
        ("", "", "", False, "alone", "0 labels"),
        ("", "", "", True, "taught", "0 labels"),
    ],
)
def test_who_is_handed_out(teacher, alone, taught, clear, handed_out, why):
    rows = (candidate(name, marks) for name, marks in (("T", teacher), ("alone", alone), ("taught", taught)))
    chosen, reason = decide(*rows, clear)
    assert chosen == handed_out
    assert why in reason


def test_a_teacher_is_clear_only_above_chance_and_above_the_largest_class():
    truth = torch.tensor([0] * 16 + [1] * 8 + [-1] * 5)
    always, right, few = (
        Cells.of(known, label, 4)
        for known, label in ((truth, truth * 0), (truth, truth.clamp_min(0)), (truth[:4], truth[:4]))
    )
    assert not is_clear(always)  # 16 of 24 are right, where a guess has 6
    assert "not clearly better" in against_labels("T", always)
    assert is_clear(right)
    assert "clearly better than both" in against_labels("T", right)
    assert "20 labels or more" in against_labels("T", few)
    assert not is_clear(Cells.of([], [], 4))
