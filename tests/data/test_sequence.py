"""Data sets of other libraries become image sets: what they have in common, without these libraries."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

from debiaspl import ImageSet
from debiaspl.data import DataError
from debiaspl.data.decode import decode


class Columns(list):
    """As ``datasets`` gives them."""

    features = {"img": None, "label": SimpleNamespace(names=["cat", "dog"])}  # noqa: RUF012


class Vision(list):
    """As torchvision gives them."""

    classes = ["cat", "dog"]  # noqa: RUF012


@pytest.fixture
def picture():
    pixels = np.random.default_rng(0).integers(0, 256, (10, 16, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


@pytest.mark.parametrize(
    "dataset",
    [
        lambda one: Columns([{"img": one, "label": 1}, {"img": one, "label": -1}]),
        lambda one: Vision([(one, 1), (one, None)]),
        lambda one: [(one, "dog"), (one, "")],
        lambda one: Vision([(np.asarray(one), np.int64(1)), (torch.tensor(np.asarray(one)).permute(2, 0, 1), -1)]),
    ],
)
def test_every_form_gives_the_same_set(dataset, picture):
    made = ImageSet.from_dataset(dataset(picture), classes=("cat", "dog"))
    assert made.labels.tolist() == [1, -1]
    assert made.classes == ("cat", "dog")
    expected = torch.tensor(np.asarray(picture)).permute(2, 0, 1)
    assert all(torch.equal(image, expected) for image in made.images)


def test_names_are_those_of_the_data_set(picture):
    assert ImageSet.from_dataset(Columns([{"img": picture, "label": 1}])).classes == ("cat", "dog")
    assert ImageSet.from_dataset(Vision([(picture, 0)])).classes == ("cat", "dog")
    assert ImageSet.from_dataset([(picture, "b"), (picture, "a")]).classes == ("a", "b")
    assert ImageSet.from_dataset([(picture, 2)]).classes == ("0", "1", "2")
    assert ImageSet.from_dataset([(picture, -1)]).classes == ()
    assert ImageSet.from_dataset([(picture, label) for label in ("b", -1, "a")]).labels.tolist() == [1, -1, 0]
    whole = [(picture, label) for label in (1.0, -1.0, np.int64(2), torch.tensor(0))]  # as pandas gives them, and torch
    assert ImageSet.from_dataset(whole).labels.tolist() == [1, -1, 2, 0]


def test_images_are_resized_as_photos_are(picture, tmp_path):
    picture.save(tmp_path / "one.png")
    small = picture.convert("L").resize((6, 6))
    made = ImageSet.from_dataset([(picture, 0), (small, 1)], size=8)
    assert made.images.shape == (2, 3, 8, 8)
    assert torch.equal(made.images[0], decode(tmp_path / "one.png", (8, 8)))
    assert ImageSet.from_dataset([(small, 0), (picture, 1)], channels=1).images.shape == (2, 1, 6, 6)
    exif = Image.Exif()
    exif[0x0112] = 6
    picture.save(tmp_path / "turned.png", exif=exif)
    turned = Image.open(tmp_path / "turned.png")
    assert ImageSet.from_dataset([(turned, 0), (picture, 1)]).images.shape == (2, 3, 16, 10)
    made = ImageSet.from_dataset([(turned, 0), (turned, 1)], size=8)
    assert torch.equal(made.images[0], decode(tmp_path / "turned.png", (8, 8)))


@pytest.mark.parametrize(
    ("items", "word"),
    [
        ([], "empty"),
        (iter(()), "length"),
        ([3], "int"),
        ([{"picture": 1, "label": 0}], "picture"),
        ([("photo.jpg", 0)], "no image"),
        ([(np.full((4, 4, 3), -2.0), 0)], "uint8"),
        ([(np.zeros((4, 4), np.uint8), 0.5)], "whole number"),
        ([(np.zeros((4, 4), np.uint8), label) for label in ("cat", "dog", 1)], "a label is 1"),
        ([(np.zeros((4, 4), np.uint8), [0, 1])], "class numbers"),
    ],
)
def test_anything_else_is_refused(items, word):
    with pytest.raises(DataError, match=word):
        ImageSet.from_dataset(items)
