"""``debiaspl compare PHOTOS --encoder``: methods on the features of a frozen encoder."""

import json
import shutil

import pytest
import torch

from debiaspl.photos.choose import base_recipe
from debiaspl.photos.survey import survey
from tests.typed import done, refused


@pytest.mark.slow(seconds=25)
def test_methods_on_frozen_features(place, tmp_path):
    where = place / "photos", "--labels", place / "labels.csv", "--encoder", place / "encoder"
    methods = "fixmatch", "uda+none", "uda+debiaser", "contrastmatch"
    which = "--methods", ",".join(methods), "--seeds", 2
    ran = done("compare", *where, *which, "--set", "steps=6", "--out", tmp_path / "matrix", "--jobs", 2)
    numbers = json.loads((tmp_path / "matrix" / "results.json").read_text())
    assert numbers["recipe"]["network"]["settings"]["frozen"] is True
    assert "it trains the features themselves" in " ".join(ran.split())
    runs = sorted(path.name for path in (tmp_path / "matrix").iterdir() if path.is_dir() and path.name[0] != ".")
    assert runs == sorted(f"{name}-seed{seed}" for name in methods[:3] for seed in (0, 1))
    assert len(list((tmp_path / "matrix" / ".features").iterdir())) == 1  # computed once, for all of them
    results = json.loads((tmp_path / "matrix" / "uda+debiaser-seed1" / "results.json").read_text())
    assert results["labels"] == [2, 2]  # a third of the labels is held out, and measured with
    assert results["test"] == 2


def test_where_every_photo_has_a_label_some_are_hidden(place, tmp_path):
    for name in ("china", "flower"):
        (tmp_path / name).mkdir()
    for number, path in enumerate(sorted((place / "photos").iterdir())):
        shutil.copy(path, tmp_path / ("china", "flower")[number % 2])
    recipe = base_recipe(survey(tmp_path, None))
    assert recipe.protocol.name == "few-labels"
    assert recipe.protocol.settings == {"per_class": 5}
    assert recipe.algorithm.name == "fixmatch"


def test_a_gpu_is_refused_for_frozen_features_and_chooses_another_network_otherwise(place, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    where = place / "photos", "--labels", place / "labels.csv", "--encoder", place / "encoder"
    said = refused("compare", *where, "--methods", "fixmatch", "--device", "cuda", "--out", tmp_path / "out")
    assert "Use --device cpu" in said
    found = survey(place / "photos", place / "labels.csv")
    assert [base_recipe(found, None, device).network.name for device in ("cpu", "cuda")] == ["small", "resnet9"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--encoder", "efficientnet-lite0"), "--labels, --folders and --encoder are for a folder of photos"),
        (("photos", "--recipe", "digits-10"), "photos is given, and --recipe or --length too"),
    ],
)
def test_options_that_belong_to_the_other_kind_are_refused(options, message):
    assert message in refused("compare", *options)
