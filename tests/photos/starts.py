"""A short start of a folder of digits, and what is in its folder."""

from pathlib import Path

import torch
from safetensors.torch import load_file

from tests.typed import done

SHORT = ("--set", "steps=8", "--set", "network.width=4", "--set", "log_every=4", "--set", "checkpoint_every=2")


def pretrain(photos, out, *more):
    return done("train", photos, "--method", "moco", "--out", out, "--device", "cpu", *SHORT, *more).splitlines()


def features(folder: Path) -> dict[str, torch.Tensor]:
    weights = load_file(folder / "model.safetensors")
    return {name: value for name, value in weights.items() if not name.startswith("head.")}


def same(one: Path, other: Path) -> bool:
    ours, theirs = features(one), features(other)
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)
