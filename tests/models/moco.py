"""Checkpoints as MoCo v2, EMAN and others write them, of any network."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor


def trained(own: Mapping[str, Tensor], seed: int = 1) -> dict[str, Tensor]:
    """Other weights for a ResNet, without its classifier: those of a pre-training."""
    generator = torch.Generator().manual_seed(seed)
    made = {}
    for name, value in own.items():
        if not name.startswith("head."):
            around = 1.0 if name.endswith("running_var") or (value.ndim == 1 and name.endswith("weight")) else 0.0
            noise = torch.rand(value.shape, generator=generator) - 0.5
            made[name] = (around + 0.2 * noise).to(value.dtype)
    return made


def under(prefix: str, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {prefix + name: value for name, value in weights.items()}


def projection(features: int, prefix: str = "fc.") -> dict[str, Tensor]:
    """MoCo v2's head of two layers."""
    shapes = {"0.weight": (features, features), "0.bias": (features,), "2.weight": (128, features), "2.bias": (128,)}
    return {prefix + name: torch.zeros(shape) for name, shape in shapes.items()}


def moco(own: Mapping[str, Tensor], seed: int = 1) -> dict[str, Any]:
    """A checkpoint of MoCo v2: the trained encoder, its average, and the queue."""
    query = trained(own, seed) | projection(8)
    key = trained(own, seed + 1) | projection(8)
    state = under("module.encoder_q.", query) | under("module.encoder_k.", key)
    state |= {"module.queue": torch.zeros(128, 4), "module.queue_ptr": torch.zeros(1, dtype=torch.int64)}
    return {"epoch": 800, "arch": "resnet50", "state_dict": state, "optimizer": {"param_groups": [{"lr": 0.03}]}}


def write(path: Path, content: Any, old_format: bool = False) -> Path:
    torch.save(content, path, _use_new_zipfile_serialization=not old_format)
    return path
