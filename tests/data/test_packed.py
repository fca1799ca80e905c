"""Packed sets: the same set as its files, written whole or not at all; an index of somebody else's is refused."""

import json

import numpy as np
import pytest
import torch

from debiaspl.data import DataError, ImageSet, open_data
from debiaspl.data.open import read_place
from debiaspl.data.packed import open_packed, pack
from tests.data.photos import write_folder

GOOD = {"classes": ["a", "b"], "labels": [0, 1, -1], "ids": ["x", "y", "z"]}
SMALL = ImageSet(torch.zeros((3, 3, 4, 4), dtype=torch.uint8), GOOD["labels"], ("a", "b"), ("x", "y", "z"))


@pytest.fixture
def packed(tmp_path):
    pack(SMALL, tmp_path / "set")
    assert json.loads((tmp_path / "set" / "index.json").read_text()) == GOOD
    return tmp_path / "set"


def test_a_packed_set_is_the_same_set_without_what_cannot_be_read(tmp_path):
    folder = write_folder(tmp_path / "photos")
    images = read_place(folder, 16)
    (folder / "china" / "0003.jpg").write_bytes(b"")
    assert pack(images, tmp_path / "packed") == (19, {"china/0003.jpg": "the file is empty (zero bytes)"})
    images = images.select([place for place in range(20) if place != 3])
    packed = open_packed(tmp_path / "packed")
    assert packed.ids == images.ids
    assert packed.classes == images.classes
    assert torch.equal(packed.labels, images.labels)
    some = torch.tensor([18, 0, 7, 7, 13])
    assert torch.equal(packed.images[some], images.images[some])
    assert torch.equal(packed.select(some).images[torch.tensor([1])], images.images[some[1:2]])
    parts = open_data(str(tmp_path / "packed"))
    assert (len(parts.train), len(parts.test)) == (15, 4)


def test_packing_is_all_or_nothing(tmp_path):
    def fails(done: int, total: int) -> None:
        raise DataError("interrupted")

    with pytest.raises(DataError, match="interrupted"):
        pack(SMALL, tmp_path / "packed", fails)
    assert list((tmp_path / "packed").iterdir()) == []
    (tmp_path / "packed" / "mine").touch()
    with pytest.raises(DataError, match="exists already"):
        pack(SMALL, tmp_path / "packed")


def test_what_a_later_version_adds_is_left_alone(packed):
    (packed / "index.json").write_text(json.dumps(GOOD | {"more": "of a later version"}))
    assert len(open_packed(packed)) == 3


CHANGES = {
    "classes": ("ab", ["a", "a"], None),
    "labels": ([0, 1], [0, 1, 2], [0, 1, 10**30], [0, 1, "0"], [[0], [1], [0]], 7),
    "ids": ([], ["x", "y", 3], ["x", "x", "y"]),
}
TEXTS = [json.dumps(GOOD | {name: value}) for name, values in CHANGES.items() for value in values]


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 100_000, *TEXTS], ids=lambda text: text[:40])
def test_another_index_is_refused(packed, text):
    (packed / "index.json").write_text(text)
    with pytest.raises(DataError, match="Pack the set again"):
        open_packed(packed)


@pytest.mark.parametrize(
    "pixels",
    [np.zeros((3, 3, 4, 4)), np.zeros((2, 3, 4, 4), np.uint8), np.zeros((3, 2, 4, 4), np.uint8), np.array([{}, 1, 2])],
)
def test_other_pixels_are_refused(packed, pixels):
    np.save(packed / "images.npy", pixels)
    with pytest.raises(DataError, match="Pack the set again"):
        open_packed(packed)


def test_pixels_that_were_cut_are_refused(packed):
    content = (packed / "images.npy").read_bytes()
    (packed / "images.npy").write_bytes(content[:-1])
    with pytest.raises(DataError, match="missing or damaged"):
        open_packed(packed)
