"""Training on images that stay in files: the same bits after a stop, and bad files named."""

from dataclasses import replace
from pathlib import Path

import pytest

from debiaspl.data.open import read_place
from debiaspl.data.packed import pack
from debiaspl.training import Choice, Recipe, train
from debiaspl.training.run import newest_checkpoint
from tests.data.photos import write_folder, write_shards
from tests.training.tiny import EAGER, check_resume, log


def recipe(data: Path, **changes: object) -> Recipe:
    values = {"name": "photos", "data": str(data), "image_size": 16, "protocol": Choice("few-labels", {"per_class": 2})}
    return replace(EAGER, **{**values, **changes})


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["shards", "folder", "packed", "memory"])
def test_any_place_trains_adopts_images_and_resumes_to_the_same_bits(tmp_path, kind):
    """Over three generations, with features measured at every step."""
    data = write_shards(tmp_path / "data") if kind == "shards" else write_folder(tmp_path / "data")
    if kind == "packed":
        pack(read_place(data, 16), tmp_path / "packed")
        data = tmp_path / "packed"
    generations = Choice("crest", {"threshold": 0.1, "joint": False, "generations": 3})
    chosen = recipe(data, stream=kind == "folder", algorithm=generations, health_every=1)
    reached = check_resume(chosen, tmp_path, 9, workers=int(kind == "folder"))
    assert (reached["labels"], reached["test"]) == ([2, 2], 4)
    assert (newest_checkpoint(tmp_path / "run" / "checkpoint").tensors["adopted"] >= 0).any()
    assert [line["step"] for line in log(tmp_path / "run") if "health" in line] == list(range(13))


def test_bad_files_are_named_in_the_log_and_the_results(tmp_path):
    write_folder(tmp_path / "data")
    bad = ["china/0003.jpg", "flower/0007.jpg"]
    for name in bad:
        (tmp_path / "data" / name).write_bytes(b"\xff\xd8\xff broken")
    reached = train(recipe(tmp_path / "data", stream=True), tmp_path / "run", workers=0)
    named = {name for line in log(tmp_path / "run") for name in line.get("skipped", {})}
    assert named <= set(bad)
    assert reached["skipped"] == bad
    assert len(named) + (4 - reached["test"]) == 2  # each of the two was met in training, or left out of the test


def test_labels_held_out_for_validation_are_reported(tmp_path):
    data = write_folder(tmp_path / "data", per_class=20)
    chosen = recipe(data, protocol=Choice("few-labels", {"per_class": 6}), validation=0.5)
    reached = train(chosen, tmp_path / "run")
    assert reached["labels"] == [3, 3]
    assert reached["validation"]["labels"] == 6
    assert 0 <= reached["validation"]["accuracy"] <= 1
