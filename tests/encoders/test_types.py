"""Image models of many types, tiny and with random weights: each gives features, or is refused with the reason."""

import json

import pytest
import torch

transformers = pytest.importorskip("transformers")

from debiaspl.encoders import build_encoder, load_encoder  # noqa: E402

SIZE = 32
WIDE = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
VIT = {**WIDE, "image_size": SIZE, "patch_size": 8}
MAPS = {"hidden_sizes": [8, 16], "depths": [1, 1]}
SWIN = {"embed_dim": 8, "depths": [1, 1], "num_heads": [1, 2]}
FOUR = {"depths": [1] * 4, "num_attention_heads": [1, 1, 2, 2], "image_size": SIZE}
TYPES = {
    "vit": VIT,
    "deit": VIT,
    "beit": VIT,
    "ijepa": VIT,
    "dinov2": {**VIT, "image_size": 56},  # the preprocessor says 32: positions interpolate
    "dinov2_with_registers": VIT,
    "dinov3_vit": VIT,
    "dinov3_convnext": {"hidden_sizes": [8, 8, 16, 16], "depths": [1] * 4},
    "swin": {**SWIN, "image_size": SIZE, "patch_size": 4, "window_size": 4},
    "hiera": {"image_size": [SIZE, SIZE], "embed_dim": 8, "depths": [1, 1, 1, 1], "num_heads": [1, 1, 2, 2]},
    "pvt_v2": {**FOUR, "hidden_sizes": [8, 8, 16, 16], "mlp_ratios": [2] * 4},
    "levit": {"image_size": SIZE, "hidden_sizes": [16, 16, 16], "num_attention_heads": [1, 1, 1], "depths": [1, 1, 1]},
    "resnet": {**MAPS, "embedding_size": 8, "layer_type": "basic"},
    "regnet": {**MAPS, "embedding_size": 8, "groups_width": 8},
    "convnextv2": {"hidden_sizes": [8, 8, 16, 16], "depths": [1] * 4},
    "efficientnet": {"hidden_dim": 320, "width_coefficient": 0.25, "depth_coefficient": 0.1},
    "mobilenet_v1": {"depth_multiplier": 0.25},
    "mobilenet_v2": {"depth_multiplier": 0.25},
    "mobilevit": {"hidden_sizes": [16, 16, 16], "neck_hidden_sizes": [8, 8, 8, 16, 16, 16, 24], "image_size": SIZE},
}
PAIRS = ("clip", "metaclip_2", "chinese_clip", "siglip", "siglip2")


def save(kind, folder):
    if kind in PAIRS:
        text = {**WIDE, "vocab_size": 50, "max_position_embeddings": 8}
        vision = {**WIDE, "num_patches": 16, "patch_size": 8} if kind == "siglip2" else VIT
        values = {"text_config": text, "vision_config": vision, "projection_dim": 12}
    else:
        values = TYPES.get(kind, VIT)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = transformers.AutoConfig.for_model(kind, **values)
        model = transformers.AutoModel.from_config(config)
        for parameter in model.parameters():  # the first weights of some are so small that images look alike
            if parameter.ndim > 1:
                parameter.data = 0.3 * torch.randn_like(parameter)
        model.save_pretrained(folder)
    size = {"height": SIZE, "width": SIZE}
    (folder / "preprocessor_config.json").write_text(json.dumps({"size": size, "crop_size": size}))


@pytest.mark.parametrize("kind", [*TYPES, *PAIRS])
@torch.no_grad()
def test_a_model_gives_features_of_its_own_width(kind, tmp_path):
    save(kind, tmp_path / kind)
    encoder = load_encoder(str(tmp_path / kind))
    assert encoder.image_size == SIZE
    images = torch.randn(2, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(0)).clamp(-1, 1)
    features = encoder.embed(images)
    assert features.shape == (2, encoder.num_features)
    assert not torch.equal(features[0], features[1])
    again = build_encoder(json.loads(json.dumps(encoder.architecture)))
    again.load_state_dict(encoder.state_dict())
    torch.testing.assert_close(again.embed(images), features)


def test_a_model_that_masks_at_random_is_refused(tmp_path):
    save("vit_mae", tmp_path / "mae")
    with pytest.raises(ValueError, match="different features"):
        load_encoder(str(tmp_path / "mae"))
