"""Vision models of a few thousand weights, of chance, saved the way the hub keeps them."""

import json
from pathlib import Path
from typing import Any

import torch
import transformers

SIZE = 32
SHAPE = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
VISION = {**SHAPE, "image_size": SIZE, "patch_size": 16}
MEAN, STD = [0.4, 0.5, 0.6], [0.2, 0.25, 0.3]


def save(kind: str, folder: Path) -> Any:
    """A tiny model of this kind, saved; and itself."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = _model(kind)
    model.eval().save_pretrained(folder)
    size = {"shortest_edge": SIZE} if kind == "clip" else {"height": SIZE, "width": SIZE}
    values = {"do_normalize": True, "image_mean": MEAN, "image_std": STD, "size": size}
    (folder / "preprocessor_config.json").write_text(json.dumps(values))
    return model


def _model(kind: str) -> Any:
    if kind == "vit":
        return transformers.ViTModel(transformers.ViTConfig(**VISION))
    if kind == "resnet":
        return transformers.ResNetModel(
            transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic")
        )
    text = {**SHAPE, "vocab_size": 50, "max_position_embeddings": 8}
    if kind == "siglip":
        return transformers.SiglipModel(transformers.SiglipConfig(text_config=text, vision_config=VISION))
    return transformers.CLIPModel(transformers.CLIPConfig(text_config=text, vision_config=VISION, projection_dim=12))
