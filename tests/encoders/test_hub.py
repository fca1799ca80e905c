"""Vision models through transformers: our features equal what transformers itself computes."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

pytest.importorskip("transformers")

from debiaspl.encoders import EncoderNetwork, build_encoder, fingerprint, load_encoder
from debiaspl.models import scale
from tests.encoders.tiny import MEAN, SIZE, STD, save

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
IMAGES = torch.randint(0, 256, (3, 3, SIZE, SIZE), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
PIXELS = (IMAGES / 255 - torch.tensor(MEAN).reshape(3, 1, 1)) / torch.tensor(STD).reshape(3, 1, 1)


def expected(kind, model):
    if kind == "clip":
        return model.visual_projection(model.vision_model(pixel_values=PIXELS).pooler_output)
    if kind == "siglip":
        return model.vision_model(pixel_values=PIXELS).pooler_output
    found = model(pixel_values=PIXELS)
    return found.last_hidden_state[:, 0] if kind == "vit" else found.pooler_output.flatten(1)


@pytest.mark.parametrize("kind", ["vit", "resnet", "clip", "siglip"])
@torch.no_grad()
def test_features_are_those_of_transformers(kind, tmp_path):
    model = save(kind, tmp_path / kind)
    encoder = load_encoder(str(tmp_path / kind))
    assert (encoder.image_size, encoder.mean, encoder.std) == (SIZE, tuple(MEAN), tuple(STD))
    assert encoder.name == kind
    assert not encoder.training
    features = encoder.embed(scale(IMAGES))
    assert features.shape == (3, encoder.num_features)
    torch.testing.assert_close(features, expected(kind, model), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["vit", "resnet", "clip", "siglip"])
@torch.no_grad()
def test_a_network_is_rebuilt_from_json_and_weights_alone(kind, tmp_path):
    """The folder that the encoder came from is gone, and nothing is asked of any network."""
    folder = tmp_path / kind
    save(kind, folder)
    encoder = load_encoder(str(folder))
    architecture = json.loads(json.dumps(encoder.architecture))
    assert architecture == encoder.architecture
    network = EncoderNetwork(4, source=str(folder), architecture=architecture).eval()
    network.load_pretrained()
    torch.testing.assert_close(network.embed(scale(IMAGES)), encoder.embed(scale(IMAGES)))
    folder.rename(tmp_path / "elsewhere")
    again = EncoderNetwork(4, source=str(folder), architecture=architecture).eval()
    assert fingerprint(again.encoder) != fingerprint(encoder)
    again.load_state_dict(network.state_dict())
    assert torch.equal(again(scale(IMAGES)), network(scale(IMAGES)))
    assert fingerprint(again.encoder) == fingerprint(encoder)


@torch.no_grad()
def test_convolutional_ones_take_any_size_and_others_resize_images_inside(tmp_path):
    save("resnet", tmp_path / "resnet")
    save("vit", tmp_path / "vit")
    assert load_encoder(str(tmp_path / "resnet"), image_size=48).image_size == 48
    with pytest.raises(ValueError, match="48 x 48"):
        load_encoder(str(tmp_path / "vit"), image_size=48)
    encoder = load_encoder(str(tmp_path / "vit"))
    small = torch.full((2, 3, 20, 20), 77, dtype=torch.uint8)
    large = torch.full((2, 3, SIZE, SIZE), 77, dtype=torch.uint8)
    torch.testing.assert_close(encoder.embed(scale(small)), encoder.embed(scale(large)))
    grey = encoder.embed(scale(small[:, :1]))
    torch.testing.assert_close(grey, encoder.embed(scale(small)))


def test_what_is_no_encoder_or_lacks_weights_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    for name, noun in (("nothing", "config.json"), ("empty", "config.json")):
        with pytest.raises(ValueError, match=noun):
            load_encoder(str(tmp_path / name))
    save("vit", tmp_path / "vit")
    weights = tmp_path / "vit" / "model.safetensors"
    tensors = load_file(weights)
    del tensors[next(name for name in tensors if "query" in name)]
    save_file(tensors, weights, metadata={"format": "pt"})
    with pytest.raises(ValueError, match="no weights for 1 tensors of a vit"):
        load_encoder(str(tmp_path / "vit"))
    weights.write_bytes(weights.read_bytes()[: weights.stat().st_size // 2])
    for _ in ("cut", "missing"):
        with pytest.raises(ValueError, match="loaded"):
            load_encoder(str(tmp_path / "vit"))
        weights.unlink(missing_ok=True)
    with pytest.raises(ValueError, match=r"kind is 'mine', expected efficientnet-lite0 or transformers"):
        build_encoder({"kind": "mine"})


def test_nobody_is_asked_whether_to_execute_code(tmp_path: Path, monkeypatch):
    # A configuration that transformers knows, without a model that it knows: there it would ask, and take yes.
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    for kind in ("evil", "blip_vision_model"):
        config = {"model_type": kind, "auto_map": {"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}}
        (tmp_path / "config.json").write_text(json.dumps(config))
        with pytest.raises(ValueError, match="could not be loaded"):
            load_encoder(str(tmp_path))
    facts = {"kind": "transformers", "name": "mine", "image_size": 32, "mean": [0.5] * 3, "std": [0.5] * 3}
    config = {"model_type": "blip_vision_model", "auto_map": {"AutoModel": f"{tmp_path}--evil.Model"}}
    with pytest.raises(ValueError, match="custom code"):
        build_encoder(facts | {"config": config})
    assert not (tmp_path / "ran").exists()
