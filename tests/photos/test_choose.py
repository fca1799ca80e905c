"""What is chosen for a folder of photos, and which of its labels check the outcome."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

pytest.importorskip("transformers")

from debiaspl.data import GivenLabels, ImageSet, Task
from debiaspl.data.label_table import Columns
from debiaspl.data.task import fold_of
from debiaspl.encoders import load_encoder
from debiaspl.photos.api import encoder_or_none, plan
from debiaspl.photos.check import Check, check_for
from debiaspl.photos.choose import choose, wanted_size, working_size
from debiaspl.photos.survey import Photos, survey
from tests.photos.user import SIDE


def made(*counts, unlabeled=100, side=64):
    labels = [number for number, count in enumerate(counts) for _ in range(count)]
    classes = tuple(f"class {number}" for number in range(len(counts)))
    return Photos(Path("photos"), None, torch.tensor(labels + [-1] * unlabeled), classes, side)


def test_enough_labels_are_held_out_and_fewer_cross_checked():
    assert check_for(made(200, 100)) == Check(folds=5, all_in_turn=False, labels=60)
    assert check_for(made(200, 9)) == Check(folds=3, all_in_turn=True, labels=209)
    assert check_for(made(20, 20)) == Check(folds=3, all_in_turn=True, labels=40)
    assert check_for(made(2, 1, 1)) == Check(folds=2, all_in_turn=True, labels=2)
    assert check_for(made(1, 1)) == Check(folds=0, all_in_turn=True, labels=0)


@pytest.mark.parametrize("counts", [(5, 5, 5), (1, 2, 7, 3), (2, 2), (40, 1)])
@pytest.mark.parametrize("folds", [2, 3, 5])
def test_folds(counts, folds):
    labels = made(*counts, unlabeled=4).labels
    found = fold_of(labels, folds, seed=3)
    held_out = [number for number, count in enumerate(counts) if count > 1]
    for number in range(len(counts)):
        own = found[labels == number]
        assert (own >= 0).all() == (number in held_out)
        # Something of each class is always left to train with.
        assert all((own != fold).any() for fold in range(folds))
    sizes = torch.bincount(found[found >= 0], minlength=folds)
    assert sizes.max() - sizes.min() <= 1
    assert (found[labels < 0] == -1).all()
    assert any(not torch.equal(fold_of(labels, folds, seed), found) for seed in range(10))
    for fold in range(folds):
        protocol = GivenLabels(folds=folds, fold=fold)
        split, part = protocol.split(labels, 3), protocol.held_out(labels, 3)
        assert not set(split.labeled.tolist()) & {*part.tolist(), *split.unlabeled.tolist()}
        assert set(part.tolist()) <= set(split.unlabeled.tolist())


def test_what_the_table_calls_its_columns_is_part_of_the_recipe(place, tmp_path):
    table = tmp_path / "labels.csv"
    table.write_text((place / "labels.csv").read_text().replace("file_name,label", "photo,kind"))
    photos = survey(place / "photos", table, Columns("photo", "kind"))
    recipe = choose(photos, "cpu")
    assert recipe.protocol.settings == {"table": str(table), "file_column": "photo", "label_column": "kind"}
    assert GivenLabels(**recipe.protocol.settings).read(recipe.data, 8, True).counts() == photos.counts == [3, 3]
    assert choose(survey(place / "photos", place / "labels.csv"), "cpu").protocol.settings == {
        "table": str(place / "labels.csv")
    }


def test_held_out_labels_reach_no_loss():
    labels = made(6, 6, unlabeled=8).labels
    images = ImageSet(torch.zeros((20, 3, 8, 8), dtype=torch.uint8), labels, ("a", "b"))
    task = Task.of_given(images, GivenLabels(folds=3, fold=1), seed=0)
    assert (task.unlabeled.labels == -1).all()
    assert not set(task.labeled.ids) & set(task.test.ids)
    assert set(task.test.ids) <= set(task.unlabeled.ids)
    with pytest.raises(ValueError, match=r"fold is 3 and folds is 3, expected"):
        GivenLabels(folds=3, fold=3)


@pytest.mark.parametrize(("unlabeled", "memory"), [(90, 0), (885, 0), (886, 224), (9990, 2500), (10**5, 4096)])
def test_no_photo_is_told_from_itself(unlabeled, memory):
    """On a GPU: the contrast remembers a quarter of the photos at most, and without a memory steps are smaller."""
    chosen = choose(made(5, 5, unlabeled=unlabeled), "cuda")
    assert chosen.algorithm.settings["memory"] == memory
    assert (chosen.algorithm.settings["relations"], chosen.learning_rate) == ((0.5, 0.25) if memory else (0, 0.06))


def test_what_is_chosen(place):
    photos = made(5, 5, side=400)
    encoder = load_encoder(str(place / "encoder"))
    small, wide = choose(photos, "cpu"), choose(photos, "cuda")
    assert (small.network.name, small.image_size) == ("small", 32)
    assert (wide.network.name, wide.image_size) == ("resnet9", 64)
    frozen, tuned = (choose(photos, "cuda", encoder, frozen=kept) for kept in (True, False))
    assert frozen.network.settings["frozen"]
    assert "frozen" not in tuned.network.settings
    assert frozen.image_size == tuned.image_size == encoder.image_size
    assert not frozen.stream
    many = replace(photos, labels=torch.cat((photos.labels, torch.full((10**6,), -1))))
    assert choose(many, "cpu").stream
    assert choose(made(5, 5, unlabeled=0), "cpu").algorithm.name == "supervised"
    assert type(choose(photos, "cpu", encoder)).from_json(json.loads(json.dumps(frozen.to_json()))) == frozen


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@torch.no_grad()
def test_the_chosen_network_takes_the_chosen_size(device):
    for side in range(1, 10):
        chosen = choose(made(5, 5, side=side), device)
        network = chosen.network.build("network", num_classes=2, channels=3)
        assert network(torch.zeros(2, 3, chosen.image_size, chosen.image_size)).shape == (2, 2)
        assert chosen.image_size == (side if device == "cpu" else max(side, 8))


@pytest.mark.parametrize(
    ("side", "device", "size"),
    [(64, "cpu", 160), (20, "cpu", 160), (170, "cpu", 192), (3000, "cpu", 224), (64, "cuda", 224)],
)
def test_small_photos_are_enlarged_for_an_encoder(side, device, size):
    photos, encoder = made(2, 2, side=side), SimpleNamespace(image_size=224)
    assert working_size(photos, device, encoder) == size
    assert working_size(photos, device, SimpleNamespace(image_size=32)) == 32


def test_an_image_size_acts_or_is_refused(place):
    photos, folder = survey(place / "photos", place / "labels.csv"), str(place / "encoder")
    encoder = encoder_or_none(photos, "cpu", folder, ["image_size=48"])
    recipe = choose(photos, "cpu", encoder).changed(image_size=48)
    assert encoder.image_size == recipe.image_size == recipe.network.settings["architecture"]["image_size"] == 48
    assert " at 48 x 48 pixels. " in plan(photos, "cpu", str(place / "encoder"), None, ["image_size=48"]).words()
    fixed = SimpleNamespace(image_size=224, any_size=False, name="vit")
    with pytest.raises(ValueError, match="image_size is 448, but vit takes images of 224 x 224 only"):
        wanted_size(["steps=3", "image_size=448"], fixed)
    assert wanted_size(["image_size=64"], fixed) == 64
    assert wanted_size(["image_size=x"], fixed) == wanted_size(["steps=3"], fixed) == 0
    assert (photos.side, photos.counts, photos.unlabeled) == (SIDE, [3, 3], 24)
