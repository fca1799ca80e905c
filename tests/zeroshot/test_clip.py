"""CLIP and SigLIP through the real loading code, against a calculation by hand."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from debiaspl.data import DataError
from debiaspl.zeroshot.teacher import open_photos
from tests.data.photos import write_folder
from tests.zeroshot.models import LENGTH, SIZE, save_model

pytest.importorskip("transformers", reason="zero-shot models need transformers")

CLASSES = ("china temple", "red flower", "a photo")
TEMPLATES = ("a photo of {}.", "{}", "the picture of the {}")


@pytest.fixture(scope="module", params=["clip", "siglip"])
def folder(request, tmp_path_factory) -> Path:
    return save_model(tmp_path_factory.mktemp("models") / f"tiny-{request.param}", request.param)


@pytest.fixture(scope="module")
def photos(tmp_path_factory) -> Path:
    return write_folder(tmp_path_factory.mktemp("photos") / "all", per_class=3)


def by_hand(folder: Path, pixels: torch.Tensor) -> torch.Tensor:
    """One text at a time, one image at a time, with plain loops over classes and templates."""
    from transformers import AutoModel, AutoTokenizer

    model, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    siglip = model.config.model_type == "siglip"
    rows = []
    with torch.no_grad():
        known = []
        for name in CLASSES:
            total = torch.zeros(())
            for template in TEMPLATES:
                ids = tokenizer(template.replace("{}", name))["input_ids"]
                ids = ids + [0] * (LENGTH - len(ids)) if siglip else ids
                pooled = model.text_model(input_ids=torch.tensor([ids])).pooler_output[0]
                pooled = pooled if siglip else model.text_projection(pooled)
                total = total + pooled / pooled.square().sum().sqrt()
            known.append(total / total.square().sum().sqrt())
        for image in pixels:
            scaled = (image.double() / 255 - 0.4) / 0.3
            pooled = model.vision_model(pixel_values=scaled[None].float()).pooler_output[0]
            pooled = pooled if siglip else model.visual_projection(pooled)
            pooled = pooled / pooled.square().sum().sqrt()
            logits = torch.stack([model.logit_scale.exp().squeeze() * (pooled * other).sum() for other in known])
            rows.append(logits.exp() / logits.exp().sum())
    return torch.stack(rows)


def teacher_of(folder: Path, features: Path):
    from debiaspl.zeroshot.teacher import ClipTeacher

    return ClipTeacher(str(folder), features, torch.device("cpu"))


def test_probabilities_equal_a_calculation_by_hand(folder, photos, tmp_path):
    images = open_photos(photos, CLASSES)
    probabilities, skipped = teacher_of(folder, tmp_path / "features").predict(images, CLASSES, TEMPLATES)
    pixels = torch.stack([_decoded(photos / name) for name in images.ids])
    torch.testing.assert_close(probabilities, by_hand(folder, pixels), atol=1e-5, rtol=1e-4)
    assert skipped == {}
    assert probabilities.std(0).min() > 1e-3  # a test of equal rows would see nothing
    assert probabilities.std(1).min() > 1e-3


def _decoded(path: Path) -> torch.Tensor:
    from debiaspl.data.decode import decode

    return decode(path, (SIZE, SIZE))


def test_a_damaged_photo_is_named_and_the_others_are_predicted(folder, tmp_path):
    photos = write_folder(tmp_path / "photos", per_class=2)
    (photos / "china" / "0000.jpg").write_bytes(b"no picture")
    images = open_photos(photos, CLASSES)
    probabilities, skipped = teacher_of(folder, tmp_path / "features").predict(images, CLASSES, TEMPLATES)
    assert list(skipped) == [0]
    torch.testing.assert_close(probabilities.sum(1), torch.ones(4))


def test_a_folder_that_is_not_a_complete_model_is_refused(folder, tmp_path):
    with pytest.raises(DataError, match=r"config.json"):
        teacher_of(tmp_path, tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}))
    with pytest.raises(DataError, match="clip or siglip"):
        teacher_of(tmp_path, tmp_path)
    for missing in ("model.safetensors", "tokenizer.json"):
        broken = Path(shutil.copytree(folder, tmp_path / missing.partition(".")[0]))
        (broken / missing).unlink()
        with pytest.raises(ValueError, match="load"):
            teacher_of(broken, tmp_path)


def test_nobody_is_asked_whether_to_execute_code(folder, tmp_path, monkeypatch):
    from debiaspl.encoders.hub import Pretrained

    monkeypatch.setattr("builtins.input", lambda *_: "y")
    foreign = shutil.copytree(folder, tmp_path / "foreign")
    (foreign / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    (foreign / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "Evil", "auto_map": {"AutoTokenizer": ["evil.Evil", None]}})
    )
    Pretrained(str(foreign)).tokenizer()  # one that transformers knows stands in
    (foreign / "config.json").write_text(json.dumps({"model_type": "evil", "auto_map": {"AutoConfig": "evil.Evil"}}))
    with pytest.raises(DataError, match="loaded"):
        Pretrained(str(foreign)).config()
    assert not (tmp_path / "ran").exists()
