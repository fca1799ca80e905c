"""A recipe that trains in a second, and the run's outcome without its timings."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from debiaspl.data import load
from debiaspl.recipes.lengths import DIGITS as ONE_LABEL
from debiaspl.training import Choice, Recipe, RunError, train
from debiaspl.training.evaluate import about
from debiaspl.training.settings import parse_settings
from debiaspl.training.step import Step

TINY = replace(
    ONE_LABEL,
    name="tiny",
    network=Choice("small", {"width": 4}),
    steps=12,
    labeled_batch=8,
    unlabeled_batch=16,
    log_every=5,
    checkpoint_every=4,
)

# Keeps labels from the first step on, so that their loss and the correction matter within a few steps.
EAGER = replace(TINY, algorithm=Choice("fixmatch", {"joint": False, "threshold": 0.1}))


def changed(recipe: Recipe, *settings: str) -> Recipe:
    return parse_settings(recipe, settings)


def results(folder: Path) -> dict[str, Any]:
    values = json.loads((folder / "results.json").read_text())
    del values["timing"]
    return values


def log(folder: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    for line in lines:
        del line["seconds"]
    return lines


def outcome(folder: Path) -> tuple[Any, ...]:
    """All that must be the same bits in two runs of one recipe."""
    weights = {name: value.numpy().tobytes() for name, value in load_file(folder / "model.safetensors").items()}
    return weights, results(folder), log(folder), (folder / "predictions.csv").read_text()


def stop_at(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    original = Step.__call__

    def stopping(self: Step, number: int) -> None:
        if number == step:
            raise RunError("stopped for the test")
        original(self, number)

    monkeypatch.setattr(Step, "__call__", stopping)


def train_until(step: int, recipe: Recipe, folder: Path, **options: Any) -> None:
    """Train, and stop before that step, as after an error."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        stop_at(monkeypatch, step)
        with pytest.raises(RunError, match="stopped for the test"):
            train(recipe, folder, **options)


def check_resume(recipe: Recipe, place: Path, stop: int, **options: Any) -> dict[str, Any]:
    """Train without and with a stop before this step: both end with the same bits. Returns the results."""
    train(recipe, place / "whole", **options)
    train_until(stop, recipe, place / "run", **options)
    reached = train(recipe, place / "run", resume=True, **options)
    assert outcome(place / "run") == outcome(place / "whole")
    return reached


def write_finished(folder: Path, network: Choice = TINY.network, seed: int = 0) -> Path:
    """What a finished run on digits leaves of its model, with random weights that are sure of some images."""
    digits = load("digits").train
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = network.build("network", num_classes=digits.num_classes, channels=digits.channels)
    made.head.weight.data.mul_(12)
    folder.mkdir(parents=True)
    facts = {"debiaspl": json.dumps(about(replace(TINY, network=network), digits))}
    save_file(made.state_dict(), folder / "model.safetensors", facts)
    return folder
