"""The Python call for photos."""

import pytest

pytest.importorskip("transformers")

import debiaspl
from debiaspl.training import RunError
from tests.photos.user import CLASSES


def test_photos_from_python(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = ["steps=4"]
    model = debiaspl.train_photos(
        place / "photos", place / "labels.csv", str(place / "encoder"), "runs/mine", settings, device="cpu"
    )
    assert model.classes == CLASSES
    assert (tmp_path / "runs" / "mine" / "results.json").exists()
    photo = place / "photos" / "00.jpg"
    assert model.predict([photo]) == debiaspl.load_model("runs/mine").predict([photo])
    with pytest.raises(RunError, match="already holds a run"):
        debiaspl.train_photos(place / "photos", place / "labels.csv", out="runs/mine", device="cpu")
