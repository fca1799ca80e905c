"""What a second attack found, and that it holds now; --overwrite is in tests/files/test_overwrite.py."""

import os
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from debiaspl.data import DataError, ImageSet, Task
from debiaspl.data.file_names import FileNames
from debiaspl.deploy.saved import CHOSEN, chosen_folder
from debiaspl.estimator import DebiasedClassifier
from debiaspl.files import memory
from debiaspl.label.table import Table
from debiaspl.photos.survey import survey
from debiaspl.training import RunError, train
from tests.data.photos import write_labels, write_photos
from tests.training.tiny import TINY


@pytest.mark.parametrize("label", ["nan", "None", "?", "-1"])
def test_a_missing_value_is_not_a_class(tmp_path, label):
    names = [f"{number:02d}.jpg" for number in range(12)]
    write_photos(tmp_path, names)
    write_labels(tmp_path / "labels.csv", {name: ("cat", "dog", label)[place % 3] for place, name in enumerate(names)})
    with pytest.raises(DataError, match=re.escape(repr(label))):
        survey(tmp_path, None)
    assert label in survey(tmp_path, None, allow_names=True).classes
    y = np.array(["cat", "dog", label] * 10, dtype=object if label == "-1" else None)
    if label != "-1":  # NumPy turns ["cat", -1] into strings: that is no label
        with pytest.raises(ValueError, match="no label"):
            DebiasedClassifier(max_iter=2).fit(np.eye(30), y)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_numbers_that_overflow_are_refused_with_their_range(dtype):
    images = np.zeros((8, 8, 8), dtype)
    images[0], images[1] = 0.9 * np.finfo(dtype).max, -0.9 * np.finfo(dtype).max
    with pytest.raises(ValueError, match="range"):
        DebiasedClassifier(max_iter=2).fit(images, [0, 1] * 4)


def test_a_run_does_not_go_on_with_other_pixels(tmp_path):
    images = ImageSet.of(np.random.default_rng(0).integers(0, 255, (40, 8, 8), np.uint8), [0, 1] * 20)
    recipe = TINY.changed(steps=4)
    task = Task(images.select(range(4)), images.select(range(4, 30)).without_labels(), images.select(range(30, 40)))
    train(replace(recipe, checkpoint_every=2), tmp_path / "run", data=task)
    (tmp_path / "run" / "results.json").unlink()
    pixels = task.unlabeled.images
    assert isinstance(pixels, torch.Tensor)
    other = replace(task, unlabeled=replace(task.unlabeled, images=255 - pixels))
    with pytest.raises(RunError, match="images"):
        train(replace(recipe, checkpoint_every=2), tmp_path / "run", resume=True, data=other)


def test_chosen_json_is_a_regular_file_that_fits_in_memory(tmp_path, monkeypatch):
    (tmp_path / "taught").mkdir()
    chosen = tmp_path / CHOSEN
    chosen.write_text('{"folder": "taught"}')
    assert chosen_folder(tmp_path) == tmp_path / "taught"
    (tmp_path / "taught" / "model.safetensors").symlink_to("/etc/hostname")
    with pytest.raises(RunError, match="damaged"):
        chosen_folder(tmp_path)
    (tmp_path / "taught" / "model.safetensors").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(memory, "fits", lambda size: False)
        with pytest.raises(RunError, match="damaged"):
            chosen_folder(tmp_path)
    chosen.unlink()
    os.mkfifo(chosen)
    with pytest.raises(RunError, match="damaged"):
        chosen_folder(tmp_path)


def test_two_label_tables_that_are_open_at_once_lose_no_answer(tmp_path):
    names = tuple(f"{number}.jpg" for number in range(4))
    for name in names:
        (tmp_path / name).touch()
    one, other = (Table(tmp_path / "labels.csv", FileNames(tmp_path, names), ("x", "y")) for _ in range(2))
    for number, name in enumerate(names):
        (one, other)[number % 2].answer(name, "xy"[number % 2])
    one.refresh()
    assert dict(one.answers) == dict(zip(names, "xyxy", strict=True))
