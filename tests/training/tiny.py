"""A recipe that trains in a second, and the run's outcome without its timings."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from debiaspl.recipes.digits import ONE_LABEL
from debiaspl.training import Choice, Recipe

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
    return recipe.with_settings(settings)


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
