"""Predictions are made once, and found again by what they were made from."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch

from debiaspl.data import DataError, ImageSet
from debiaspl.zeroshot.arrays import ArraysTeacher
from debiaspl.zeroshot.cache import contents, predict_once
from debiaspl.zeroshot.photos import open_photos
from tests.data.photos import write_folder

CLASSES, TEMPLATES = ("china", "flower"), ("a photo of {}.",)


@dataclass
class Counted:
    """A teacher that counts how often it is asked."""

    version: int = 0
    name: str = "counted"
    about: str = ""
    note: str = ""
    size: int | None = 8
    default_templates: str = "name"
    asked: list[tuple] = field(default_factory=list)

    def identity(self) -> dict:
        return {"version": self.version}

    def predict(self, images, classes, templates, progress=None):
        self.asked.append((tuple(classes), tuple(templates)))
        generator = torch.Generator().manual_seed(len(self.asked))
        return torch.rand(len(images), len(classes), generator=generator).softmax(-1), {1: "torn"}


def images() -> ImageSet:
    pixels = torch.arange(3 * 3 * 4, dtype=torch.uint8).reshape(3, 3, 2, 2)
    return ImageSet(pixels, torch.full((3,), -1), CLASSES)


def test_the_same_question_is_asked_once(tmp_path):
    teacher = Counted()
    first = predict_once(teacher, images(), CLASSES, TEMPLATES, tmp_path)
    second = predict_once(teacher, images(), CLASSES, TEMPLATES, tmp_path)
    assert len(teacher.asked) == 1
    assert torch.equal(first[0], second[0])
    assert first[1] == second[1] == {1: "torn"}
    assert (first[2], second[2]) == (False, True)
    assert [path.suffix for path in tmp_path.iterdir()] == [".safetensors"]  # nothing half-written is left


def test_whatever_decides_the_answer_is_asked_anew(tmp_path):
    teacher = Counted()
    predict_once(teacher, images(), CLASSES, TEMPLATES, tmp_path)
    changed = images()
    changed.images[2, 0, 0, 0] += 1
    predict_once(teacher, changed, CLASSES, TEMPLATES, tmp_path)
    predict_once(teacher, images(), CLASSES[::-1], TEMPLATES, tmp_path)
    predict_once(teacher, images(), CLASSES, ("{}",), tmp_path)
    predict_once(Counted(1, asked=teacher.asked), images(), CLASSES, TEMPLATES, tmp_path)
    predict_once(Counted(size=9, asked=teacher.asked), images(), CLASSES, TEMPLATES, tmp_path)
    assert len(teacher.asked) == 6


def test_a_teacher_that_goes_by_names_is_asked_again_when_files_are_renamed(tmp_path):
    photos = write_folder(tmp_path / "photos", per_class=1)
    files = open_photos(photos, CLASSES).ids
    renamed = [f"{file}-other.jpg" for file in files]
    shares = np.linspace(0.1, 0.9, 2 * len(files))
    table = {"probabilities": np.stack((shares, 1 - shares), 1), "file_name": np.array([*files, *renamed])}
    np.savez(tmp_path / "teacher.npz", **table)
    teacher = ArraysTeacher(tmp_path / "teacher.npz")
    for names, expected in ((files, shares[: len(files)]), (renamed, shares[len(files) :])):
        for old, new in zip(files, names, strict=True):
            (photos / old).rename(photos / new)
        found, _, _ = predict_once(teacher, open_photos(photos, CLASSES), CLASSES, TEMPLATES, tmp_path / "kept")
        assert found[:, 0].tolist() == pytest.approx(expected)


def test_reading_the_files_ends_at_the_last_one(tmp_path):
    """The progress bar disappears there; before, it stood at 0 during all that followed."""
    told = []
    photos = open_photos(write_folder(tmp_path / "photos", per_class=2), CLASSES)
    contents(photos, lambda what, done, total: told.append((done, total)))
    assert (told[0], told[-1]) == ((0, len(photos)), (len(photos), len(photos)))


def test_without_a_folder_nothing_is_kept():
    teacher = Counted()
    for _ in range(2):
        assert not predict_once(teacher, images(), CLASSES, TEMPLATES, None)[2]
    assert len(teacher.asked) == 2


def test_the_bytes_of_a_file_count_and_not_its_name(tmp_path):
    photos = write_folder(tmp_path / "a", per_class=2)
    before = contents(open_photos(photos, CLASSES))
    (photos / "china").rename(photos / "aaa")
    assert contents(open_photos(photos, CLASSES)) == before
    path = photos / "flower" / "0001.jpg"
    path.write_bytes(path.read_bytes() + b" ")
    assert contents(open_photos(photos, CLASSES)) != before


@pytest.mark.parametrize("damage", ["half", "flipped", "empty", "foreign"])
def test_a_damaged_file_says_so_and_what_to_do(tmp_path, damage):
    teacher = Counted()
    predict_once(teacher, images(), CLASSES, TEMPLATES, tmp_path)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    flipped = whole[:-1] + bytes([whole[-1] ^ 1])
    path.write_bytes({"half": whole[: len(whole) // 2], "flipped": flipped, "empty": b"", "foreign": b"hello"}[damage])
    with pytest.raises(DataError, match=r"are damaged \(.*Delete this file: they will be computed again"):
        predict_once(teacher, images(), CLASSES, TEMPLATES, tmp_path)
    path.unlink()
    predict_once(teacher, images(), CLASSES, TEMPLATES, tmp_path)
    assert len(teacher.asked) == 2


def test_a_write_that_breaks_off_leaves_nothing_to_be_read(tmp_path, monkeypatch):
    def broken(path: Path, content: bytes) -> None:
        path.with_name(f".{path.name}.partial").write_bytes(content[:50])
        raise KeyboardInterrupt

    teacher = Counted()
    with monkeypatch.context() as patch:
        patch.setattr("debiaspl.zeroshot.cache.write_bytes", broken)
        with pytest.raises(KeyboardInterrupt):
            predict_once(teacher, images(), CLASSES, TEMPLATES, tmp_path)
    assert not predict_once(teacher, images(), CLASSES, TEMPLATES, tmp_path)[2]
    assert predict_once(teacher, images(), CLASSES, TEMPLATES, tmp_path)[2]
