"""A short start of a folder of digits, and what is in its folder."""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file

from tests.photos.user import debiaspl

SHORT = ("--set", "steps=8", "--set", "network.width=4", "--set", "log_every=4", "--set", "checkpoint_every=2")


def pretrain(photos, out, *more):
    ran = debiaspl("train", photos, "--method", "moco", "--out", out, "--device", "cpu", *SHORT, *more)
    assert ran.exit_code == 0, ran.output
    return ran.output.splitlines()


def results(folder: Path) -> dict:
    return json.loads((folder / "results.json").read_text())


def features(folder: Path) -> dict[str, torch.Tensor]:
    weights = load_file(folder / "model.safetensors")
    return {name: value for name, value in weights.items() if not name.startswith("head.")}


def same(one: Path, other: Path) -> bool:
    ours, theirs = features(one), features(other)
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)
