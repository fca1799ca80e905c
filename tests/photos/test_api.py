"""The Python call for photos."""

import pytest

pytest.importorskip("transformers")

import debiaspl
from debiaspl.data import DataError
from debiaspl.encoders import load_encoder
from debiaspl.features.run import is_frozen
from debiaspl.photos import api, choose as choose_module
from debiaspl.photos.survey import survey
from debiaspl.training import RunError
from tests.photos.user import CLASSES


def test_photos_from_python(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings, table = ["steps=4"], tmp_path / "odd.csv"
    table.write_text((place / "labels.csv").read_text().replace("file_name,label", "a,b").replace("flower", "rest"))
    asked = place / "photos", table, str(place / "encoder"), "runs/mine", settings
    with pytest.raises(DataError, match=r"'rest' .*--allow-names, in Python allow_names=True\."):
        debiaspl.train_photos(*asked, device="cpu", columns=("a", "b"))
    model = debiaspl.train_photos(*asked, device="cpu", columns=("a", "b"), allow_names=True)
    assert model.classes == (CLASSES[0], "rest")
    assert all((tmp_path / "runs" / "mine" / name).exists() for name in ("results.json", "report.html"))
    photo = place / "photos" / "00.jpg"
    assert model.predict([photo]) == debiaspl.load_model("runs/mine").predict([photo])
    with pytest.raises(RunError, match="already contains a run"):
        debiaspl.train_photos(place / "photos", place / "labels.csv", out="runs/mine", device="cpu")
    with pytest.raises(ValueError, match="overwrite"):
        debiaspl.train_photos(*asked, device="cpu", resume=True, overwrite=True)
    other = place / "photos", place / "labels.csv", str(place / "encoder"), "runs/mine", settings
    assert debiaspl.train_photos(*other, device="cpu", overwrite=True).classes == CLASSES
    assert not (tmp_path / "runs" / "mine.old").exists()


@pytest.mark.parametrize(
    ("named", "settings", "chosen"),
    [
        (None, [], "efficientnet-lite0"),
        (None, ["steps=3"], "efficientnet-lite0"),
        (None, ["network=small"], None),
        (None, ["start="], None),
        ("none", [], None),
    ],
)
def test_an_encoder_that_is_installed_is_the_default_and_none_trains_from_scratch(
    place, monkeypatch, named, settings, chosen
):
    small = load_encoder(str(place / "encoder"))
    photos = survey(place / "photos", place / "labels.csv")
    names = []
    monkeypatch.setattr(api, "load_encoder", lambda name: names.append(name) or small)
    assert api.encoder_or_none(photos, "cpu", None) is None  # nothing is installed
    monkeypatch.setattr(api, "lite0_is_installed", lambda: True)
    assert (api.encoder_or_none(photos, "cpu", named, settings) is not None) == (chosen is not None)
    assert names == [chosen] * (chosen is not None)
    for device in ("cpu", "cuda"):
        planned = api.plan(photos, device, named, None, settings)
        assert planned.frozen == (chosen is not None and device == "cpu")
        assert (planned.recipe.network.name == "encoder") == (chosen is not None)


@pytest.mark.parametrize(
    ("settings", "method", "parameters", "tuned"),
    [
        ([], None, 30_000_000, True),
        (["frozen=true"], None, 30_000_000, False),
        (["optimise=classes"], None, 30_000_000, False),
        ([], "fixmatch", 30_000_000, False),
        ([], None, 10, False),
        (["frozen=false"], None, 10, True),
    ],
)
def test_a_gpu_fine_tunes_a_small_encoder_unless_told_otherwise(
    place, monkeypatch, settings, method, parameters, tuned
):
    monkeypatch.setattr(choose_module, "FINE_TUNED_UP_TO", parameters)
    photos = survey(place / "photos", place / "labels.csv")
    planned = api.plan(photos, "cuda", str(place / "encoder"), method, settings)
    assert planned.frozen is not tuned
    assert (planned.first is not None and is_frozen(planned.first)) is tuned
    assert api.plan(photos, "cpu", str(place / "encoder"), method, settings).frozen == (settings != ["frozen=false"])
