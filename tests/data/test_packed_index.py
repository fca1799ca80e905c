"""The index of a packed set may be damaged, or somebody else's: it is refused in plain words."""

import json

import numpy as np
import pytest
import torch

from debiaspl.data.packed import open_packed, pack
from debiaspl.data.text import DataError

GOOD = {
    "classes": ["a", "b"],
    "labels": [0, 1, -1],
    "ids": ["x", "y", "z"],
}


@pytest.fixture
def packed(tmp_path):
    images = torch.zeros((3, 3, 4, 4), dtype=torch.uint8)
    pack([(images, [0, 1, -1], ["x", "y", "z"])], ("a", "b"), tmp_path / "set")
    assert json.loads((tmp_path / "set" / "index.json").read_text()) == GOOD
    return tmp_path / "set"


def test_a_good_one_is_opened(packed):
    assert open_packed(packed).ids == ("x", "y", "z")
    (packed / "index.json").write_text(json.dumps(GOOD | {"more": "of a later version"}))
    assert len(open_packed(packed)) == 3


CHANGES = {
    "classes": ("ab", ["a", "a"], None),
    "labels": ([0, 1], [0, 1, 2], [0, 1, 10**30], [0, 1, "0"], [[0], [1], [0]], 7),
    "ids": ([], ["x", "y", 3], ["x", "x", "y"]),
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in CHANGES.items() for value in values])
def test_a_changed_value_is_refused(packed, name, value):
    (packed / "index.json").write_text(json.dumps(GOOD | {name: value}))
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


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 100_000])
def test_what_is_no_index_is_refused(packed, text):
    (packed / "index.json").write_text(text)
    with pytest.raises(DataError, match="Pack the set again"):
        open_packed(packed)
